//! Which era a server speaks (PR-27), and what its listings are worth (PR-01, PR-18).

use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_upstream::{ConnectError, Connection, Era, Permit, ProtocolChoice};
use toolgate_wire::ListKind;

use crate::http_server::{Answer, Seen, Server, header, legacy, modern, result};
use crate::support::{call, open, server, try_open, web};

/// PR-27 (a) and (c): any error to the first question leads to `initialize` on the same pipe.
#[tokio::test]
async fn pr_27_an_error_to_discover_means_legacy_whatever_its_code() {
    for mode in ["plain", "odd-code"] {
        let directory = tempfile::tempdir().unwrap();
        let pids = directory.path().join("pids");
        let connection = open(&server(mode, &[("PIDS", &pids)])).await;
        assert_eq!((connection.era(), connection.protocol_version()), (Era::Legacy, "2025-11-25"));
        assert_eq!(crate::support::pids(&pids).len(), 1, "one process is enough");
        assert!(call(&connection, "t").await.is_ok());
        connection.close().await;
    }
}

/// PR-27 (b): silence costs the probe's time once; the hint spares it.
#[tokio::test]
async fn pr_27_silence_costs_one_probe_and_the_hint_spares_the_next() {
    let mut spec = server("silent", &[]);
    spec.timeouts.probe = Duration::from_millis(700);
    let start = Instant::now();
    let connection = open(&spec).await;
    assert!(start.elapsed() >= spec.timeouts.probe);
    assert_eq!(connection.era(), Era::Legacy);
    let hint = Some(connection.era());
    connection.close().await;

    let start = Instant::now();
    let (sender, _events) = tokio::sync::mpsc::channel(8);
    let again = Connection::open(&spec, Permit::decided("weather"), sender, hint).await.unwrap();
    assert!(start.elapsed() < spec.timeouts.probe, "{:?}", start.elapsed());
    again.close().await;
}

#[tokio::test]
async fn pr_27_a_server_that_exits_on_discover_is_started_again() {
    for mode in ["exit-on-discover", "refuse-and-exit"] {
        let directory = tempfile::tempdir().unwrap();
        let pids = directory.path().join("pids");
        let connection = open(&server(mode, &[("PIDS", &pids)])).await;
        assert_eq!(connection.era(), Era::Legacy);
        assert_eq!(crate::support::pids(&pids).len(), 2, "{mode}");
        connection.close().await;
    }
}

#[tokio::test]
async fn a_pipe_locked_to_the_other_era_is_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let pids = directory.path().join("pids");
    let mut spec = server("locked", &[("PIDS", &pids)]);
    spec.timeouts.probe = Duration::from_millis(500);
    spec.timeouts.init = Duration::from_secs(4);
    let connection = open(&spec).await;
    assert_eq!(connection.era(), Era::Legacy);
    assert_eq!(crate::support::pids(&pids).len(), 2);
    connection.close().await;
}

/// PR-27: a slow server is taken for what it is. It refuses the second question because the first one
/// settled its era, and its answer to that is on the way.
#[tokio::test]
async fn pr_27_a_slow_modern_server_is_not_taken_for_a_legacy_one() {
    let directory = tempfile::tempdir().unwrap();
    let (pids, ledger) = (directory.path().join("pids"), directory.path().join("ledger"));
    let mut spec = server("slow-modern", &[("PIDS", &pids), ("LEDGER", &ledger)]);
    spec.timeouts.probe = Duration::from_millis(600);
    let connection = open(&spec).await;
    assert_eq!(connection.era(), Era::Modern);
    assert_eq!(crate::support::pids(&pids).len(), 1, "its first process is kept");
    assert!(std::fs::read_to_string(&ledger).unwrap().contains("initialize"), "both questions were asked");
    connection.close().await;
}

/// PR-27: where both answers are there at once, the one to the first question counts, each time.
#[tokio::test]
async fn pr_27_of_two_answers_that_come_at_once_the_first_questions_counts() {
    let mut spec = server("at-once", &[]);
    spec.timeouts.probe = Duration::from_millis(50);
    for _ in 0..12 {
        let connection = open(&spec).await;
        assert_eq!(connection.era(), Era::Modern);
        connection.close().await;
    }
}

/// PR-27: a process that took both questions is in the era of the second one, so a new one is asked the
/// first alone, however long it takes.
#[tokio::test]
async fn pr_27_a_process_that_took_both_questions_is_replaced_by_one_that_was_asked_the_first_alone() {
    let directory = tempfile::tempdir().unwrap();
    let (pids, ledger) = (directory.path().join("pids"), directory.path().join("ledger"));
    let mut spec = server("takes-both", &[("PIDS", &pids), ("LEDGER", &ledger)]);
    spec.timeouts.probe = Duration::from_millis(300);
    let connection = open(&spec).await;
    assert_eq!(connection.era(), Era::Modern);
    assert_eq!(crate::support::pids(&pids).len(), 2);
    let ledger = std::fs::read_to_string(&ledger).unwrap();
    let asked = |method: &str| ledger.matches(&format!("\"{method}\"")).count();
    assert_eq!((asked("server/discover"), asked("initialize")), (2, 1), "{ledger}");
    connection.close().await;
}

/// PR-27: the same over HTTP, where each question has a request of its own.
#[tokio::test]
async fn pr_27_a_slow_modern_server_over_http_is_not_taken_for_a_legacy_one() {
    let server = Server::start(|seen| {
        if seen.rpc() == "server/discover" {
            let said =
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}});
            let event = format!("data: {}\n\n", result(seen, &said));
            return Answer::Stream(vec![(Duration::from_millis(900), event)], false);
        }
        if seen.rpc() == "initialize" {
            let error = json!({"code": -32022, "message": "no", "data": {"supported": ["2026-07-28"]}});
            let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error});
            return Answer::Full(400, vec![header("content-type", "application/json")], body.to_string());
        }
        modern(seen)
    })
    .await;
    let mut spec = web(&server.url());
    spec.timeouts.probe = Duration::from_millis(600);
    let connection = open(&spec).await;
    assert_eq!(connection.era(), Era::Modern);
    assert_eq!(server.asked("initialize").len(), 1, "both questions were asked");
}

/// `ttlMs` and `cacheScope` are missing in its answer, and it is modern all the same.
#[tokio::test]
async fn a_modern_server_on_a_pipe_is_recognised() {
    let connection = open(&server("modern", &[])).await;
    assert_eq!(connection.era(), Era::Modern);
    assert!(connection.server_info().unwrap().get().contains("\"m\""));
    let sent = call(&connection, "t").await.unwrap();
    let meta = &sent["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(connection.list(ListKind::Tools).await.unwrap().items.len(), 1);
    connection.close().await;
}

#[tokio::test]
async fn a_pinned_era_shows_the_servers_own_error() {
    let mut spec = server("plain", &[]);
    spec.protocol = ProtocolChoice::Modern;
    let error = try_open(&spec).await.err().unwrap();
    assert!(matches!(error, ConnectError::Handshake { code: -32601, .. }), "{error}");
}

#[tokio::test]
async fn a_timeout_of_the_greeting_names_the_key_and_quotes_stderr() {
    let mut spec = server("silent", &[]);
    spec.protocol = ProtocolChoice::Modern;
    spec.timeouts.init = Duration::from_millis(700);
    let error = try_open(&spec).await.err().unwrap().to_string();
    assert!(error.contains("timeouts.init") && error.contains("warming up"), "{error}");
}

#[tokio::test]
async fn a_permit_opens_the_server_it_names_only() {
    let (sender, _events) = tokio::sync::mpsc::channel(8);
    let outcome = Connection::open(&server("plain", &[]), Permit::decided("other"), sender, None).await;
    assert!(matches!(outcome, Err(ConnectError::WrongPermit { .. })));
}

/// What says nothing about the era is an error, and never leads to `initialize`.
#[tokio::test]
async fn sign_in_overload_and_failure_are_no_verdict_about_the_era() {
    for (status, code) in [
        (401, "authentication_needed"),
        (403, "authentication_needed"),
        (500, "upstream_lost"),
        (503, "upstream_lost"),
        (429, "upstream_rate_limited"),
    ] {
        let server = Server::start(move |_| Answer::status(status)).await;
        let error = try_open(&web(&server.url())).await.err().unwrap();
        assert_eq!(error.code(), code, "{status}: {error}");
        assert!(server.asked("initialize").is_empty(), "{status}");
    }
    let error = try_open(&web("http://127.0.0.1:1/mcp")).await.err().unwrap();
    assert_eq!(error.code(), "upstream_unavailable", "{error}");
}

#[tokio::test]
async fn over_http_an_unknown_discover_means_legacy_in_all_its_forms() {
    let no_session =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Missing session ID"}});
    let forms = [
        Answer::status(400),
        Answer::status(404),
        Answer::status(405),
        Answer::Full(400, vec![header("content-type", "application/json")], no_session.to_string()),
        Answer::Full(404, vec![header("content-type", "text/plain")], "not found".into()),
    ];
    for form in forms {
        let server = Server::start(
            move |seen| if seen.rpc() == "server/discover" { form.clone() } else { legacy(seen) },
        )
        .await;
        let connection = open(&web(&server.url())).await;
        assert_eq!(connection.era(), Era::Legacy);
    }
}

#[tokio::test]
async fn a_version_error_of_a_modern_server_is_not_answered_with_initialize() {
    let server = Server::start(|seen| {
        let error =
            json!({"code": -32022, "message": "no", "data": {"supported": ["2027-01-01"], "requested": "x"}});
        let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "error": error});
        Answer::Full(400, vec![header("content-type", "application/json")], body.to_string())
    })
    .await;
    let error = try_open(&web(&server.url())).await.err().unwrap();
    assert!(
        matches!(error, ConnectError::Version { .. }) && error.to_string().contains("2027-01-01"),
        "{error}"
    );
    assert!(server.asked("initialize").is_empty());
}

fn listing(page: impl Fn(&Seen) -> String + Send + Sync + 'static) -> impl Fn(&Seen) -> Answer + Send + Sync {
    move |seen| match seen.rpc().as_str() {
        "tools/list" => {
            let body = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{}}}"#, seen.json()["id"], page(seen));
            Answer::Full(200, vec![header("content-type", "application/json")], body)
        }
        _ => modern(seen),
    }
}

fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

#[tokio::test]
async fn pr_01_a_cursor_that_never_advances_ends_the_listing() {
    let server = Server::start(listing(|_| {
        let tools: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h"].map(tool).into();
        format!(r#"{{"tools":[{}],"nextCursor":"z"}}"#, tools.join(","))
    }))
    .await;
    let connection = open(&web(&server.url())).await;
    let listing = connection.list(ListKind::Tools).await.unwrap();
    assert_eq!(server.asked("tools/list").len(), 2);
    assert_eq!(listing.items.len(), 8);
    assert_eq!(listing.warnings.len(), 1, "{:?}", listing.warnings);
}

#[tokio::test]
async fn pages_are_followed_with_the_servers_own_cursor() {
    let server = Server::start(listing(|seen| match seen.json()["params"]["cursor"].as_str() {
        None => format!(r#"{{"tools":[{}],"nextCursor":"p\u00e4ge/2"}}"#, tool("a")),
        Some("päge/2") => format!(r#"{{"tools":[{}]}}"#, tool("b")),
        Some(other) => panic!("unexpected cursor {other}"),
    }))
    .await;
    let connection = open(&web(&server.url())).await;
    let listing = connection.list(ListKind::Tools).await.unwrap();
    assert_eq!(listing.items.iter().map(|tool| tool.get()).collect::<Vec<_>>(), [tool("a"), tool("b")]);
}

#[tokio::test]
async fn pr_18_bad_definitions_are_left_out_one_by_one_and_named() {
    let server = Server::start(listing(|_| {
        format!(
            r#"{{"tools":[{},{{"name":"any","inputSchema":{{"anyOf":[{{"type":"object"}}]}}}},{{"name":"none"}},{{"name":"twice","inputSchema":{{"type":"object"}},"inputSchema":{{"type":"object"}}}}]}}"#,
            tool("good")
        )
    }))
    .await;
    let connection = open(&web(&server.url())).await;
    let listing = connection.list(ListKind::Tools).await.unwrap();
    assert_eq!(listing.items.len(), 1);
    let mut names: Vec<&str> = listing.dropped.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["any", "none", "twice"]);
}

#[tokio::test]
async fn an_unknown_kind_of_modern_result_is_invalid() {
    let server = Server::start(|seen| match seen.rpc().as_str() {
        "tools/call" => Answer::json(&result(seen, &json!({"resultType": "task", "taskId": "1"}))),
        _ => modern(seen),
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let error = call(&connection, "t").await.unwrap_err();
    assert!(error.to_string().contains("`task`"), "{error}");
}
