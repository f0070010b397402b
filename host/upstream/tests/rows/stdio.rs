//! Transport and child processes (ST rows), and what rides on them (PR rows).

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_upstream::{Event, RequestError, RequestOptions, State};
use toolgate_wire::{ListKind, Outcome};

use crate::support::{call, call_with, open, server, stdio, try_open};

#[tokio::test]
async fn st_01_a_banner_on_stdout_is_logged_and_not_parsed() {
    let connection = open(&server("banner", &[])).await;
    let listing = connection.list(ListKind::Tools).await.unwrap();
    assert_eq!(listing.items.len(), 1);
    assert_eq!(connection.state(), State::Connected);
    let tail = connection.stderr_tail();
    assert_eq!(tail, "ready v9\n[INFO] listening\ndbg: x\n");
    connection.close().await;
}

#[tokio::test]
async fn st_04_a_byte_order_mark_does_not_tear_the_stream() {
    let connection = open(&server("bom", &[])).await;
    assert_eq!(connection.list(ListKind::Tools).await.unwrap().items.len(), 1);
    connection.close().await;
}

#[tokio::test]
async fn st_05_blank_lines_and_chunking_change_nothing() {
    let whole = open(&server("crlf", &[])).await;
    let bytes = open(&server("crlf-bytes", &[])).await;
    let one = whole.list(ListKind::Tools).await.unwrap().items;
    let two = bytes.list(ListKind::Tools).await.unwrap().items;
    assert_eq!(one[0].get(), two[0].get());
    assert_eq!(whole.stderr_tail() + &bytes.stderr_tail(), "", "blank lines are no news");
    tokio::join!(whole.close(), bytes.close());
}

#[tokio::test]
async fn st_06_a_flood_on_stderr_blocks_nothing() {
    let connection = open(&server("flood", &[])).await;
    let start = Instant::now();
    for _ in 0..3 {
        let outcome = connection.request("ping", None, RequestOptions::default()).await.unwrap();
        assert!(matches!(outcome, Outcome::Result(_)));
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(connection.stderr_tail().len(), 64 * 1024);
    connection.close().await;
}

#[tokio::test]
async fn st_08_long_lines_arrive_byte_for_byte() {
    let connection = open(&server("large", &[])).await;
    assert_eq!(connection.instructions().unwrap().len(), 129 * 1024);
    let result = call(&connection, "any").await.unwrap();
    assert_eq!(result["content"][0]["text"].as_str().unwrap().len(), 300 * 1024);
    connection.close().await;
}

#[tokio::test]
async fn st_11_bad_utf8_fails_one_request_and_not_the_connection() {
    let connection = open(&server("plain", &[])).await;
    let start = Instant::now();
    let (bad, good) = tokio::join!(call(&connection, "bad-utf8"), call(&connection, "clean"));
    let bad = bad.unwrap_err();
    assert!(matches!(bad, RequestError::BadReply { .. }), "{bad}");
    assert!(good.is_ok());
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(connection.state(), State::Connected);
    connection.close().await;
}

#[tokio::test]
async fn a_line_over_the_limit_fails_its_request_with_the_limit_named() {
    let mut spec = server("plain", &[]);
    spec.limits.max_message = 16 * 1024;
    let connection = open(&spec).await;
    let (huge, clean) = tokio::join!(call(&connection, "huge"), call(&connection, "clean"));
    let huge = huge.unwrap_err();
    assert!(huge.to_string().contains("16384 bytes"), "{huge}");
    assert!(clean.is_ok());
    connection.close().await;
}

#[tokio::test]
async fn st_15_a_child_that_dies_in_a_call_fails_it_at_once_and_once() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let (connection, mut events) = try_open(&server("exit3", &[("LEDGER", &ledger)])).await.unwrap();
    let start = Instant::now();
    let options = RequestOptions { timeout: Some(Duration::from_mins(10)), ..RequestOptions::default() };
    let error = call_with(&connection, "write", options).await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    let text = error.to_string();
    for part in ["`weather`", "exit status 3", "the disk is full"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    assert!(error.may_have_run());
    assert!(matches!(connection.state(), State::Closed { .. }));
    assert!(!call(&connection, "write").await.unwrap_err().may_have_run(), "nothing is sent any more");
    let Some(Event::Closed { reason }) = events.recv().await else { panic!("no Closed event") };
    assert!(reason.contains("exit status 3"), "{reason}");
    assert_eq!(executions(&ledger), 1);
}

#[tokio::test]
async fn st_15_a_child_that_dies_before_its_greeting_says_why_at_once() {
    let start = Instant::now();
    let error = try_open(&server("exit-init", &[])).await.err().unwrap();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    let text = error.to_string();
    for part in ["`weather`", "exit status 4", "cannot open the database"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
}

#[tokio::test]
async fn a_missing_command_names_the_path_that_was_searched() {
    let mut spec = stdio("no-such-server-command", &[], &[("PATH", Path::new("/nowhere:/bin"))]);
    spec.name = "typo".into();
    let error = try_open(&spec).await.err().unwrap();
    assert!(error.to_string().contains("/nowhere:/bin") && !error.is_transient(), "{error}");
}

/// ST-18, on the child's real environment. The test runner's own holds `CARGO_*` variables, which
/// stand for the secrets of a shell here.
#[tokio::test]
async fn st_18_a_child_sees_allowed_variables_and_its_own_only() {
    assert!(std::env::var("CARGO_PKG_NAME").is_ok(), "the test needs something to hide");
    let connection = open(&server("plain", &[("A", Path::new("1"))])).await;
    let result = call(&connection, "env").await.unwrap();
    let env = result["env"].as_object().unwrap();
    assert_eq!(env["A"], "1");
    assert!(env.contains_key("PATH"));
    let allowed =
        ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR", "TZ", "XDG_RUNTIME_DIR", "A"];
    for name in env.keys() {
        assert!(allowed.contains(&name.as_str()) || name.starts_with("LC_"), "{name} has leaked");
    }
    connection.close().await;
}

#[tokio::test]
async fn pr_14_a_cancel_reaches_the_server_with_its_own_id() {
    let directory = tempfile::tempdir().unwrap();
    let (ledger, other) = (directory.path().join("ledger"), directory.path().join("other"));
    let connection = open(&server("plain", &[("LEDGER", &ledger)])).await;
    let bystander = open(&server("plain", &[("LEDGER", &other)])).await;
    let cancel = CancellationToken::new();
    let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
    let waiting = call_with(&connection, "silent", options);
    let cancelling = async {
        crate::support::until(Duration::from_secs(5), "the call arrived", || executions(&ledger) == 1).await;
        cancel.cancel();
    };
    let (error, ()) = tokio::join!(waiting, cancelling);
    assert!(matches!(error, Err(RequestError::Cancelled { sent: true, .. })), "{error:?}");
    let sent = lines(&ledger).into_iter().find(|line| line["method"] == "tools/call").unwrap();
    let told = || lines(&ledger).into_iter().find(|line| line["method"] == "notifications/cancelled");
    crate::support::until(Duration::from_millis(200), "the server was told", || told().is_some()).await;
    assert_eq!(told().unwrap()["params"]["requestId"], sent["id"]);
    assert!(call(&connection, "clean").await.is_ok(), "the connection goes on");
    assert!(lines(&other).iter().all(|line| line["method"] != "notifications/cancelled"));
    tokio::join!(connection.close(), bystander.close());
}

#[tokio::test]
async fn pr_14_a_caller_that_goes_away_counts_as_a_cancel() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let connection = open(&server("plain", &[("LEDGER", &ledger)])).await;
    let gone = tokio::time::timeout(Duration::from_millis(300), call(&connection, "silent")).await;
    assert!(gone.is_err());
    let told = || lines(&ledger).iter().any(|line| line["method"] == "notifications/cancelled");
    crate::support::until(Duration::from_secs(2), "the server was told", told).await;
    connection.close().await;
}

#[tokio::test]
async fn a_deadline_ends_a_call_and_says_which_limit() {
    let connection = open(&server("plain", &[])).await;
    let options = RequestOptions { timeout: Some(Duration::from_millis(200)), ..RequestOptions::default() };
    let error = call_with(&connection, "silent", options).await.unwrap_err();
    assert!(error.to_string().contains("timeouts.call") && error.may_have_run(), "{error}");
    connection.close().await;
}

#[tokio::test]
async fn progress_arrives_under_a_token_of_our_own() {
    let connection = open(&server("plain", &[])).await;
    let (sender, mut steps) = mpsc::channel(8);
    let options = RequestOptions { progress: Some(sender), ..RequestOptions::default() };
    call_with(&connection, "progress", options).await.unwrap();
    let mut seen = Vec::new();
    while let Some(step) = steps.recv().await {
        let params: Value = serde_json::from_str(step.params.get()).unwrap();
        seen.push(params["progress"].as_i64().unwrap());
    }
    assert_eq!(seen, [1, 2, 3]);
    connection.close().await;
}

#[tokio::test]
async fn a_servers_question_inside_a_call_is_refused_and_does_not_stall_it() {
    let connection = open(&server("plain", &[])).await;
    let result = call(&connection, "asks").await.unwrap();
    assert_eq!(result["answer"]["id"], "q");
    assert_eq!(result["answer"]["error"]["code"], -32601);
    connection.close().await;
}

#[tokio::test]
async fn pr_22_what_is_not_declared_is_not_asked() {
    let directory = tempfile::tempdir().unwrap();
    let ledger = directory.path().join("ledger");
    let connection = open(&server("plain", &[("LEDGER", &ledger)])).await;
    for method in ["prompts/list", "resources/list", "completion/complete"] {
        let error = connection.request(method, None, RequestOptions::default()).await.unwrap_err();
        assert!(matches!(error, RequestError::NotOffered { .. }), "{error}");
    }
    assert!(call(&connection, "clean").await.is_ok());
    assert!(lines(&ledger).iter().all(|line| {
        let method = line["method"].as_str().unwrap_or_default();
        !method.starts_with("prompts") && !method.starts_with("resources")
    }));
    connection.close().await;
}

fn executions(ledger: &Path) -> usize {
    lines(ledger).iter().filter(|line| line["method"] == "tools/call").count()
}

/// What the server received. A line that is still being written is not there yet.
fn lines(ledger: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(ledger).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
