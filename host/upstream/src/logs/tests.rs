use super::*;
use crate::hub::{Asked, Hub};
use crate::spec::Limits;

fn message(level: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"d"}}}}"#
    )
}

#[test]
fn a_level_is_told_once_and_again_only_for_more() {
    let told = Told::default();
    assert!(told.needs(LogLevel::Warning));
    assert!(!told.needs(LogLevel::Warning) && !told.needs(LogLevel::Error));
    assert!(told.needs(LogLevel::Debug));
}

#[test]
fn a_message_goes_to_the_one_call_it_can_belong_to_and_otherwise_to_nobody() {
    let hub = Hub::new("s", Limits::default());
    let (out, mut received) = mpsc::channel(8);
    let (questions, _asked) = mpsc::channel(1);
    let logs = || Some(Logs { level: LogLevel::Info, out: out.clone() });
    let one = hub.pending.open(None, Some(questions.clone()), logs()).unwrap();
    one.shared.begin();
    hub.inbound(message("debug").as_bytes(), Asked::Nobody);
    hub.inbound(message("loud").as_bytes(), Asked::Nobody);
    assert!(received.try_recv().is_err(), "less severe than wanted, or no level at all");
    hub.inbound(message("info").as_bytes(), Asked::Nobody);
    assert!(received.try_recv().unwrap().params.get().contains("\"d\""));
    // Another call that wants no log makes it uncertain all the same.
    let two = hub.pending.open(None, Some(questions), None).unwrap();
    two.shared.begin();
    hub.inbound(message("error").as_bytes(), Asked::Nobody);
    assert!(received.try_recv().is_err(), "it may be about either");
    hub.inbound(message("error").as_bytes(), Asked::Event(two.id));
    assert!(received.try_recv().is_err(), "the second wants none");
    hub.inbound(message("error").as_bytes(), Asked::Event(one.id));
    assert!(received.try_recv().is_ok(), "the stream says which");
}
