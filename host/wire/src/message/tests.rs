//! Messages are sorted, not understood: ids and payloads go through unchanged.

use proptest::prelude::*;

use super::*;
use crate::testing::{config, object_text};

fn parse(text: &str) -> Message {
    Message::parse(text).unwrap()
}

fn fault(text: &str) -> ParseError {
    Message::parse(text).unwrap_err()
}

#[test]
fn pr_11_the_reply_carries_the_id_of_the_request_in_type_and_value() {
    for id in [r#""1""#, "1", r#""init-1""#, "9007199254740993", "123456789012345678901234567890"] {
        let Message::Request(request) = parse(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#))
        else {
            panic!("a call with an id is a request")
        };
        let reply = Response::result(request.id, crate::edit::raw("{}".to_owned()).unwrap());
        assert_eq!(reply.to_text(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn pr_03_a_result_keeps_unknown_members_order_and_number_text() {
    let result = r#"{"tools":[{"title":"T","annotations":{"readOnlyHint":true,"x-own":1},"outputSchema":{"b":1,"a":2},"icons":[],"execution":{},"_meta":{"a.b/c":1},"futureField":[1.0,1e2,123456789012345678901234567890]}]}"#;
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    assert_eq!(parse(&text).to_text(), text);
}

#[test]
fn pr_03_an_upstream_error_keeps_unknown_members() {
    let text = r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32000,"message":"no","data":{"n":1.0},"retryable":true}}"#;
    assert_eq!(parse(text).to_text(), text);
}

#[test]
fn a_call_without_an_id_is_a_notification_and_one_with_null_is_nothing() {
    assert!(matches!(parse(r#"{"jsonrpc":"2.0","method":"a"}"#), Message::Notification(_)));
    assert_eq!(fault(r#"{"jsonrpc":"2.0","method":"a","id":null}"#), ParseError::BadId);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","method":"a","id":1.5}"#), ParseError::BadId);
}

#[test]
fn parameters_are_an_object_or_absent() {
    assert_eq!(
        parse(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":null}"#).to_text(),
        r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#
    );
    for params in ["[]", "1", r#""x""#] {
        assert_eq!(
            fault(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"a","params":{params}}}"#)),
            ParseError::BadParams
        );
    }
}

#[test]
fn an_answer_has_exactly_one_of_result_and_error() {
    let outcome = |members: &str| Message::parse(&format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#));
    let error = r#""error":{"code":1,"message":"m"}"#;
    assert!(matches!(
        outcome(r#""result":null"#),
        Ok(Message::Response(Response { outcome: Outcome::Result(_), .. }))
    ));
    assert!(matches!(
        outcome(&format!(r#""result":null,{error}"#)),
        Ok(Message::Response(Response { outcome: Outcome::Error(_), .. }))
    ));
    assert!(matches!(
        outcome(r#""result":1,"error":null"#),
        Ok(Message::Response(Response { outcome: Outcome::Result(_), .. }))
    ));
    assert_eq!(outcome(&format!(r#""result":1,{error}"#)).unwrap_err(), ParseError::Shapeless);
    assert_eq!(outcome(&format!(r#""method":"a",{error}"#)).unwrap_err(), ParseError::Shapeless);
    assert_eq!(outcome(r#""x":1"#).unwrap_err(), ParseError::Shapeless);
    assert_eq!(outcome(r#""error":{"code":"x","message":"m"}"#).unwrap_err(), ParseError::BadError);
}

#[test]
fn an_error_may_be_about_no_known_request_and_a_result_may_not() {
    let error = parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#);
    assert_eq!(error.id(), None);
    assert_eq!(error.to_text(), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#);
    assert_eq!(fault(r#"{"jsonrpc":"2.0","result":{}}"#), ParseError::NoId);
}

#[test]
fn what_is_no_json_rpc_is_refused() {
    for text in [
        "",
        "1",
        "[]",
        "\"x\"",
        "{",
        r#"["2.0",1,"ping",null,null,null]"#,
        r#"{"jsonrpc":"2.0","id":1,"id":1}"#,
        r#"{"jsonrpc":2.0}"#,
    ] {
        assert!(matches!(fault(text), ParseError::NotAnObject(_)), "{text}");
    }
    for text in ["{}", r#"{"jsonrpc":"1.0","method":"a"}"#, r#"{"method":"a","id":1}"#] {
        assert_eq!(fault(text), ParseError::Version, "{text}");
    }
}

#[test]
fn members_with_escaped_names_are_the_same_members() {
    assert_eq!(parse(r#"{"jsonrpc":"2\u002e0","meth\u006fd":"\u0070ing","id":1}"#).method(), Some("ping"));
}

#[test]
fn a_message_is_written_as_one_line() {
    let text = "{\"jsonrpc\":\"2.0\",\r\n \"id\":1,\n\"result\":{\r\n  \"a\":\n[1,\r2]}\n}";
    assert_eq!(parse(text).to_text(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{    \"a\": [1, 2]}}");
}

#[test]
fn each_message_of_a_batch_has_its_own_fate() {
    let batch =
        Message::parse_batch(r#"[{"jsonrpc":"2.0","method":"a"}, 1, {"jsonrpc":"2.0","id":1,"method":"b"}]"#)
            .unwrap();
    assert_eq!(batch.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true]);
    assert!(matches!(Message::parse_batch(" [ ] "), Err(ParseError::EmptyBatch)));
    assert_eq!(Message::parse_batch(r#"{"jsonrpc":"2.0","method":"a"}"#).unwrap().len(), 1);
    assert!(Message::parse_batch("[1").is_err());
}

#[test]
fn an_error_of_our_own_survives_its_raw_form() {
    let error = ErrorObject::new(crate::codes::DENIED, "say \"no\"\n")
        .with_data(crate::edit::raw("[1]".to_owned()).unwrap());
    let again = ErrorObject::from_raw(&error.to_raw()).unwrap();
    assert_eq!(
        (again.code, again.message.as_str(), again.data.unwrap().get()),
        (1001, "say \"no\"\n", "[1]")
    );
    assert!(ErrorObject::from_json(r#"{"code":-32000.0,"message":"m"}"#).is_some());
    for bad in [
        r#"{"code":1}"#,
        r#"{"message":"m"}"#,
        "[]",
        "null",
        r#"{"code":1.5,"message":"m"}"#,
        r#"{"code":1,"message":2}"#,
    ] {
        assert!(ErrorObject::from_json(bad).is_none(), "{bad}");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn params_and_results_are_byte_for_byte_what_they_were(payload in object_text()) {
        let raw = crate::edit::raw(payload.clone()).unwrap();
        let line: String = payload.chars().map(|c| if matches!(c, '\n' | '\r') { ' ' } else { c }).collect();
        let request = Request::new(Id::number(1), "tools/call", Some(raw.clone())).to_text();
        prop_assert!(request.contains(&line));
        let Message::Request(again) = parse(&request) else { panic!("a request stays one") };
        let params = again.params.unwrap();
        prop_assert_eq!(params.get(), &line);
        let Message::Response(again) = parse(&Response::result(Id::text("x"), raw).to_text()) else { panic!() };
        prop_assert!(matches!(again.outcome, Outcome::Result(result) if result.get() == line));
    }

    #[test]
    fn parsing_any_text_does_not_panic(text in "[\\[\\]{}\",:a-e0-9 \\\\]{0,40}") {
        let _ = Message::parse_batch(&text);
    }
}
