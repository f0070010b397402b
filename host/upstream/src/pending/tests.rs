use super::*;
use toolgate_wire::ErrorObject;

fn outcome() -> Reply {
    Reply::Outcome(Outcome::Error(ErrorObject::new(1, "x")))
}

#[test]
fn ids_are_own_and_unique_and_a_reply_ends_one_request_once() {
    let pending = Pending::new("s");
    let mut one = pending.open(None, None, None).unwrap();
    let two = pending.open(None, None, None).unwrap();
    assert_ne!(one.id, two.id);
    assert!(pending.resolve(one.id, outcome()));
    assert!(!pending.resolve(one.id, outcome()), "a second reply has no taker");
    assert!(matches!(one.reply.try_recv(), Ok(Reply::Outcome(_))));
    assert_eq!(pending.only(), Some(two.id));
    drop(two);
    assert_eq!(pending.only(), None, "a dropped ticket gives its place up");
}

/// Every pending request ends, and says whether it may have run.
#[test]
fn the_end_of_the_connection_ends_every_request() {
    let pending = Pending::new("s");
    let mut sent = pending.open(None, None, None).unwrap();
    let mut queued = pending.open(None, None, None).unwrap();
    assert!(sent.shared.begin());
    pending.close("its process ended");
    let Ok(Reply::Unusable { error, .. }) = sent.reply.try_recv() else { panic!() };
    assert!(error.may_have_run() && error.to_string().contains("its process ended"), "{error}");
    let Ok(Reply::Unusable { error, .. }) = queued.reply.try_recv() else { panic!() };
    assert!(!error.may_have_run(), "{error}");
    assert!(!queued.shared.begin(), "what was given up is not sent afterwards");
    assert!(pending.open(None, None, None).is_err(), "nothing waits behind the end");
}

/// HT-23: signs of life extend the call, never the total.
#[tokio::test]
async fn progress_extends_the_idle_limit_and_not_the_total() {
    let shared = Shared::new();
    let (idle, total) = (Duration::from_millis(100), Duration::from_millis(400));
    assert_eq!(shared.expired(idle, total).await, ("call", idle));
    let shared = Shared::new();
    let signs = async {
        loop {
            tokio::time::sleep(Duration::from_millis(20)).await;
            shared.touch();
        }
    };
    let end = tokio::select! {
        () = signs => unreachable!("signs go on for ever"),
        end = shared.expired(idle, total) => end,
    };
    assert_eq!(end, ("max_total", total));
    assert!(shared.started.elapsed() >= total);
}
