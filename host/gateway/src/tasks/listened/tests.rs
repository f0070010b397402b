use super::*;
use crate::subscriptions::Told;

fn told(told: &[Told]) -> Vec<&str> {
    let ids = told.iter().map(|told| match told {
        Told::Task(id) => id.as_str(),
        other => panic!("{other:?}"),
    });
    ids.collect()
}

#[tokio::test]
async fn changes_of_one_task_that_come_together_are_told_once_and_to_who_listens_alone() {
    let listeners = Listeners::default();
    let (one, two) = (Subscriber::new(), Subscriber::new());
    listeners.add("task_a", &one.inbox);
    listeners.add("task_b", &one.inbox);
    listeners.add("task_b", &two.inbox);
    // Listening twice is listening once.
    listeners.add("task_a", &one.inbox);
    for _ in 0..200 {
        listeners.tell("task_a");
    }
    listeners.tell("task_b");
    listeners.tell("task_nobody_listens_for");
    assert_eq!(told(&one.next().await), ["task_a", "task_b"]);
    assert_eq!(told(&two.next().await), ["task_b"]);
    let more = tokio::time::timeout(std::time::Duration::from_millis(800), one.next()).await;
    assert!(more.is_err(), "told once");
}

#[tokio::test]
async fn a_client_that_has_gone_is_forgotten() {
    let listeners = Listeners::default();
    let (one, two) = (Subscriber::new(), Subscriber::new());
    for subscriber in [&one, &two] {
        listeners.add("task_a", &subscriber.inbox);
    }
    listeners.leave(&one.inbox);
    listeners.tell("task_a");
    assert_eq!(told(&two.next().await), ["task_a"]);
    drop(two);
    listeners.leave(&one.inbox);
    assert!(listeners.of.lock().unwrap().is_empty());
}
