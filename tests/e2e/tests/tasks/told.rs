//! Servers that tell of their tasks unasked, over both transports, on streams that end.

use super::lost::Web;
use super::*;

/// A task that is over in 1.5 s, of a server that wants to be asked twice a minute.
fn is_told(sandbox: &Sandbox) {
    let mut client = plain(sandbox);
    let begun = Instant::now();
    let result = client.call("fix__job", &json!({ "ms": 1_500, "poll": 30_000, "say": "made it" }));
    assert_eq!(text(&result), "made it");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let task = with_status(sandbox, "completed");
    assert!(task["counters"]["pushes"].as_u64().unwrap() >= 1, "{task}");
    assert_eq!(task["counters"]["reads"], 1, "nothing else was needed: {task}");
    let wanted = reached(sandbox, "subscriptions/listen");
    assert!(
        wanted.iter().any(|listen| listen["params"]["notifications"]["taskIds"][0] == "theirs-1"),
        "{wanted:?}"
    );
}

#[test]
fn a_server_that_tells_of_its_tasks_is_listened_to_over_stdio_and_http_tsk_004() {
    is_told(&server(&["--tasks-push"], ""));
    let sandbox = sandbox();
    let _web = Web::serve(&sandbox, &["--tasks-push"]);
    is_told(&sandbox);
}

#[test]
fn a_stream_that_ends_is_opened_again_and_what_was_missed_is_asked_for_tsk_005() {
    let sandbox = server(&["--tasks-push", "--listen-ends", "600"], "");
    let mut client = plain(&sandbox);
    let begun = Instant::now();
    let result = client.call("fix__job", &json!({ "ms": 4_000, "poll": 30_000, "say": "made it" }));
    assert_eq!(text(&result), "made it");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    let wanted = reached(&sandbox, "subscriptions/listen");
    let times =
        wanted.iter().filter(|listen| listen["params"]["notifications"]["taskIds"].is_array()).count();
    assert!(times >= 2, "{wanted:?}");
}

#[test]
fn a_server_that_does_not_tell_of_tasks_is_asked_tsk_006() {
    let sandbox = server(&["--full"], "");
    let mut client = plain(&sandbox);
    assert_eq!(text(&client.call("fix__job", &json!({ "ms": 1_500, "say": "made it" }))), "made it");
    let task = with_status(&sandbox, "completed");
    assert_eq!(task["counters"]["pushes"], 0);
    assert!(task["counters"]["reads"].as_u64().unwrap() >= 3, "{task}");
}
