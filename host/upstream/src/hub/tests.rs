use super::*;

fn hub() -> Hub {
    Hub::new("s", Limits::default())
}

/// ST-11 and the door: a reply that cannot be used ends its own request and no other.
#[test]
fn a_broken_reply_fails_only_its_request() {
    let hub = hub();
    let mut first = hub.pending.open(None, None, None).unwrap();
    let mut second = hub.pending.open(None, None, None).unwrap();
    let broken =
        [br#"{"jsonrpc":"2.0","id":1,"result":{"text":""#.as_slice(), &[0xC3, 0x28], br#""}}"#].concat();
    assert!(hub.inbound(&broken, Asked::Nobody).is_empty());
    let Ok(Reply::Unusable { error, raw }) = first.reply.try_recv() else { panic!() };
    assert!(matches!(error, RequestError::BadReply { .. }) && raw.is_some(), "{error}");
    assert!(second.reply.try_recv().is_err(), "the other one goes on");
    hub.inbound(br#"{"jsonrpc":"2.0","id":2,"result":{"a":1,"a":2}}"#, Asked::Nobody);
    let Ok(Reply::Unusable { error, .. }) = second.reply.try_recv() else { panic!() };
    assert!(error.to_string().contains("/result/a"), "{error}");
}

/// PR-11: an id of another type is another id.
#[test]
fn only_the_very_id_is_an_answer() {
    let hub = hub();
    let mut ticket = hub.pending.open(None, None, None).unwrap();
    hub.inbound(br#"{"jsonrpc":"2.0","id":"1","result":{}}"#, Asked::Nobody);
    hub.inbound(br#"{"jsonrpc":"2.0","id":9007199254740993,"result":{}}"#, Asked::Nobody);
    assert!(ticket.reply.try_recv().is_err());
    hub.inbound(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Asked::Nobody);
    assert!(matches!(ticket.reply.try_recv(), Ok(Reply::Outcome(Outcome::Result(_)))));
}

#[test]
fn a_ping_is_answered_and_everything_else_is_refused_at_once() {
    let hub = hub();
    let ping = hub.inbound(br#"{"jsonrpc":"2.0","id":"p-1","method":"ping"}"#, Asked::Nobody);
    assert_eq!(ping, [r#"{"jsonrpc":"2.0","id":"p-1","result":{}}"#]);
    let sampling = hub
        .inbound(br#"{"jsonrpc":"2.0","id":3,"method":"sampling/createMessage","params":{}}"#, Asked::Nobody);
    assert!(sampling[0].contains("-32601") && sampling[0].contains(r#""id":3"#), "{sampling:?}");
    hub.set_modern(true);
    assert!(hub.inbound(br#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#, Asked::Nobody).is_empty());
}

#[test]
fn a_batch_is_taken_apart() {
    let hub = hub();
    let mut one = hub.pending.open(None, None, None).unwrap();
    let mut two = hub.pending.open(None, None, None).unwrap();
    hub.inbound(
        br#"[{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}]"#,
        Asked::Nobody,
    );
    assert!(one.reply.try_recv().is_ok() && two.reply.try_recv().is_ok());
}

#[test]
fn a_nameless_error_answers_the_one_that_was_asked() {
    let hub = hub();
    let mut one = hub.pending.open(None, None, None).unwrap();
    let mut two = hub.pending.open(None, None, None).unwrap();
    let nameless = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
    hub.inbound(nameless, Asked::Nobody);
    assert!(
        one.reply.try_recv().is_err() && two.reply.try_recv().is_err(),
        "two wait: nobody knows whose it is"
    );
    hub.inbound(nameless, Asked::Event(2));
    assert!(one.reply.try_recv().is_err() && two.reply.try_recv().is_ok());
}

/// HT-05: an event that is no message may be anything; a body that is none is the reply.
#[test]
fn what_cannot_be_read_ends_a_request_only_where_it_is_the_whole_response() {
    let hub = hub();
    let mut ticket = hub.pending.open(None, None, None).unwrap();
    hub.inbound(b"[not json", Asked::Event(1));
    assert!(ticket.reply.try_recv().is_err());
    hub.inbound(b"[not json", Asked::Body(1));
    assert!(matches!(ticket.reply.try_recv(), Ok(Reply::Unusable { .. })));
}
