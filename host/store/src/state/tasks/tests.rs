use super::{Delivery, NewTask, TASKS_KEPT, TaskAbout, TaskCounters, TaskStatus, TaskUpdate};
use crate::testing::{Bench, digest};

fn add(bench: &Bench, id: &str, owner: &str, handed: bool) {
    let about = TaskAbout { persona: "default".into(), tool: "long".into(), ..TaskAbout::default() };
    let task = NewTask {
        id,
        owner,
        server: "fix",
        server_identity: &digest("fix"),
        task_id: "theirs",
        about: &about,
        caller: "default",
        handed,
        status: TaskStatus::Working,
        snapshot: "{}",
        expires_at_ms: None,
    };
    bench.store().add_task(&task).unwrap();
}

fn over(bench: &Bench, id: &str) {
    let update = TaskUpdate {
        status: TaskStatus::Completed,
        snapshot: r#"{"status":"completed"}"#,
        outcome: Some(r#"{"result":{}}"#),
        delivery: Delivery::Pending,
        counters: TaskCounters { reads: 3, ..TaskCounters::default() },
        expires_at_ms: Some(7),
    };
    bench.store().update_task(id, &update).unwrap();
}

#[test]
fn what_came_while_nobody_waited_is_kept_until_it_is_handed_over_once_tsk_018() {
    let bench = Bench::new();
    add(&bench, "task_1", "own_1", false);
    add(&bench, "task_2", "own_1", true);
    for id in ["task_1", "task_2"] {
        over(&bench, id);
        let kept = bench.store().task(id).unwrap().unwrap();
        assert_eq!((kept.status, kept.delivery), (TaskStatus::Completed, Delivery::Pending));
        assert_eq!(kept.outcome.as_deref(), Some(r#"{"result":{}}"#));
        assert_eq!((kept.counters.reads, kept.expires_at_ms), (3, Some(7)));
        assert!(bench.store().deliver_task(id).unwrap());
        assert!(!bench.store().deliver_task(id).unwrap(), "once");
    }
    assert_eq!(bench.store().task("task_1").unwrap().unwrap().outcome, None, "nobody else reads it");
    assert!(bench.store().task("task_2").unwrap().unwrap().outcome.is_some(), "its client may ask again");
    let listed = bench.store().tasks().unwrap();
    assert_eq!(listed.len(), 2);
    assert!(listed.iter().all(|task| task.outcome.is_none()));
}

#[test]
fn a_cancellation_is_noted_once_and_not_of_what_is_over() {
    let bench = Bench::new();
    add(&bench, "task_1", "own_1", false);
    assert!(bench.store().request_task_cancel("task_1", "caller").unwrap());
    assert!(!bench.store().request_task_cancel("task_1", "operator").unwrap());
    assert_eq!(bench.store().task("task_1").unwrap().unwrap().cancel_requested_by.as_deref(), Some("caller"));
    add(&bench, "task_2", "own_1", false);
    over(&bench, "task_2");
    assert!(!bench.store().request_task_cancel("task_2", "caller").unwrap());
    assert!(!bench.store().request_task_cancel("task_3", "caller").unwrap());
}

#[test]
fn another_process_takes_over_what_is_not_over_and_counts_it_tsk_015() {
    let bench = Bench::new();
    add(&bench, "task_1", "own_1", false);
    add(&bench, "task_2", "own_1", false);
    over(&bench, "task_2");
    let other = bench.another("cli");
    assert_eq!(other.adopt_tasks("own_1", "own_2").unwrap(), 1);
    let task = bench.store().task("task_1").unwrap().unwrap();
    assert_eq!((task.owner.as_str(), task.counters.recoveries), ("own_2", 1));
    assert_eq!(bench.store().task("task_2").unwrap().unwrap().owner, "own_1");
}

#[test]
fn a_task_that_is_over_is_removed_after_seven_days_and_no_other_tsk_017() {
    let mut bench = Bench::new();
    add(&bench, "task_1", "own_1", false);
    add(&bench, "task_2", "own_1", false);
    over(&bench, "task_1");
    bench.clock.advance(u64::try_from(TASKS_KEPT.as_millis()).unwrap());
    assert_eq!(bench.store().remove_old_tasks().unwrap(), 0, "not a moment early");
    bench.clock.advance(1);
    bench.open();
    assert!(bench.store().task("task_1").unwrap().is_none());
    assert!(bench.store().task("task_2").unwrap().is_some());
}
