use tokio::sync::mpsc;
use toolgate_wire::edit;

use super::*;
use crate::hub::{Asked, Hub};
use crate::spec::Limits;

const FORM: &[u8] = br#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"m"}}"#;

fn hub() -> (Hub, mpsc::UnboundedReceiver<String>) {
    let hub = Hub::new("s", Limits::default());
    let (sender, sent) = mpsc::unbounded_channel();
    hub.questions.set_outlet(Box::new(move |text| drop(sender.send(text))));
    (hub, sent)
}

/// A question of a server without streams belongs to the one call that runs, or to nobody.
#[test]
fn a_question_belongs_to_the_only_running_call_and_two_are_never_guessed_between() {
    let (hub, mut sent) = hub();
    assert!(hub.inbound(FORM, Asked::Nobody)[0].contains("no call is running"));
    let (sender, mut asked) = mpsc::channel(4);
    let one = hub.pending.open(None, Some(sender.clone()), None).unwrap();
    one.shared.begin();
    let _listing = hub.pending.open(None, None, None).unwrap();
    assert!(hub.inbound(FORM, Asked::Nobody).is_empty());
    let question = asked.try_recv().unwrap();
    assert_eq!((question.method.as_str(), question.params.get()), (METHODS[0], r#"{"message":"m"}"#));
    question.answer(Outcome::Result(edit::raw(r#"{"action":"decline"}"#.to_owned()).unwrap()));
    assert_eq!(sent.try_recv().unwrap(), r#"{"jsonrpc":"2.0","id":"q","result":{"action":"decline"}}"#);
    let two = hub.pending.open(None, Some(sender), None).unwrap();
    two.shared.begin();
    let declined = hub.inbound(FORM, Asked::Nobody);
    assert!(declined[0].contains(r#""action":"decline""#), "{declined:?}");
    assert!(asked.try_recv().is_err(), "neither of the two was asked");
    // On the stream of a response there is no doubt.
    assert!(hub.inbound(FORM, Asked::Event(two.id)).is_empty());
    assert!(asked.try_recv().is_ok());
}

#[test]
fn a_question_that_nobody_answers_gets_an_error_and_one_taken_back_gets_nothing() {
    let (hub, mut sent) = hub();
    let (sender, mut asked) = mpsc::channel(4);
    let one = hub.pending.open(None, Some(sender), None).unwrap();
    one.shared.begin();
    hub.inbound(FORM, Asked::Nobody);
    drop(asked.try_recv().unwrap());
    assert!(sent.try_recv().unwrap().contains("-32603"));
    hub.inbound(FORM, Asked::Nobody);
    let question = asked.try_recv().unwrap();
    let cancelled = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}"#;
    hub.inbound(cancelled, Asked::Nobody);
    assert!(question.withdrawn().is_cancelled());
    drop(question);
    assert!(sent.try_recv().is_err());
}

#[tokio::test]
async fn a_person_who_thinks_is_no_silence_of_the_server() {
    use std::time::Duration;
    let (hub, _sent) = hub();
    let (sender, mut asked) = mpsc::channel(4);
    let one = hub.pending.open(None, Some(sender), None).unwrap();
    one.shared.begin();
    hub.inbound(FORM, Asked::Nobody);
    let (idle, total) = (Duration::from_millis(20), Duration::from_mins(1));
    let waited = tokio::time::timeout(Duration::from_millis(200), one.shared.expired(idle, total)).await;
    assert!(waited.is_err(), "held while the question is open");
    drop(asked.try_recv().unwrap());
    assert_eq!(one.shared.expired(idle, total).await.0, "call");
}
