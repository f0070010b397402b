//! Streamable HTTP (HT rows) without sessions: bodies, streams, redirects, limits of time.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_upstream::{Era, ProtocolChoice, RequestError, RequestOptions};

use crate::http_server::{Answer, Seen, Server, header, legacy, modern, reply_event, result};
use crate::support::{call, call_with, open, try_open, until, web};

/// A legacy server that answers calls in its own way.
async fn calls(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Server {
    Server::start(move |seen| if seen.rpc() == "tools/call" { answer(seen) } else { legacy(seen) }).await
}

#[tokio::test]
async fn ht_01_events_without_data_are_no_messages() {
    let server = calls(|seen| Answer::events(format!("id: 7\ndata:\n\n: hb\n\n{}", reply_event(seen)))).await;
    let connection = open(&web(&server.url())).await;
    assert_eq!(call(&connection, "t").await.unwrap()["ok"], true);
}

#[tokio::test]
async fn ht_02_line_ends_of_events_may_be_crlf() {
    let server = calls(|seen| Answer::events(reply_event(seen).replace('\n', "\r\n"))).await;
    let connection = open(&web(&server.url())).await;
    assert_eq!(call(&connection, "t").await.unwrap()["ok"], true);
}

#[tokio::test]
async fn ht_05_unknown_events_are_ignored() {
    let server = calls(|seen| {
        Answer::events(format!(
            "event: status\ndata: warming up\n\ndata: [not json\n\ndata: hello\n\n{}",
            reply_event(seen)
        ))
    })
    .await;
    let connection = open(&web(&server.url())).await;
    assert_eq!(call(&connection, "t").await.unwrap()["ok"], true);
}

#[tokio::test]
async fn ht_06_the_reply_counts_when_it_arrives_and_not_when_the_stream_ends() {
    let server = calls(|seen| Answer::Stream(vec![(Duration::ZERO, reply_event(seen))], true)).await;
    let connection = open(&web(&server.url())).await;
    let start = Instant::now();
    assert!(call(&connection, "t").await.is_ok());
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn ht_18_path_and_query_arrive_byte_for_byte() {
    let server =
        Server::start(|seen| if seen.target == "/mcp/?k=a%2Fb" { legacy(seen) } else { Answer::status(404) })
            .await;
    let url = format!("http://{}/mcp/?k=a%2Fb", server.address);
    let connection = open(&web(&url)).await;
    assert!(call(&connection, "t").await.is_ok());
    let error = try_open(&web("http://h/a/../b")).await.err().unwrap();
    assert!(error.to_string().contains("`/b`"), "{error}");
}

#[tokio::test]
async fn ht_19_content_types_in_any_letter_case_and_with_charset() {
    let server = calls(|seen| {
        let (kind, body) = if seen.body.contains("stream") {
            ("Text/Event-Stream; charset=utf-8", reply_event(seen))
        } else {
            ("application/json;charset=UTF-8", result(seen, &json!({"content": [], "ok": true})).to_string())
        };
        Answer::Full(200, vec![header("Content-Type", kind)], body)
    })
    .await;
    let connection = open(&web(&server.url())).await;
    assert_eq!(call(&connection, "stream").await.unwrap()["ok"], true);
    assert_eq!(call(&connection, "json").await.unwrap()["ok"], true);
}

#[tokio::test]
async fn a_page_that_is_no_mcp_endpoint_says_so() {
    let page = |_: &Seen| Answer::Full(200, vec![header("content-type", "text/html")], "<p>hi".into());
    let server = Server::start(page).await;
    let error = try_open(&web(&server.url())).await.err().unwrap();
    assert!(error.to_string().contains("text/html") && error.to_string().contains("MCP endpoint"), "{error}");
}

#[tokio::test]
async fn ht_23_any_bytes_extend_a_call_and_silence_ends_it() {
    let beats = |seen: &Seen| {
        let mut pieces: Vec<_> =
            (0..8).map(|_| (Duration::from_millis(100), ": hb\n\n".to_owned())).collect();
        pieces.push((Duration::from_millis(100), reply_event(seen)));
        Answer::Stream(pieces, false)
    };
    let server =
        calls(move |seen| if seen.body.contains("slow") { beats(seen) } else { Answer::Silence }).await;
    let connection = open(&web(&server.url())).await;
    let options = || RequestOptions {
        timeout: Some(Duration::from_millis(300)),
        max_total: Some(Duration::from_secs(2)),
        ..RequestOptions::default()
    };
    let start = Instant::now();
    assert!(call_with(&connection, "slow", options()).await.is_ok());
    assert!(start.elapsed() > Duration::from_millis(800));
    let error = call_with(&connection, "silent", options()).await.unwrap_err();
    assert!(error.to_string().contains("timeouts.call"), "{error}");
    let short = RequestOptions { max_total: Some(Duration::from_millis(500)), ..options() };
    let error = call_with(&connection, "slow", short).await.unwrap_err();
    assert!(error.to_string().contains("timeouts.max_total"), "{error}");
}

#[tokio::test]
async fn ht_15_a_redirect_within_the_origin_keeps_everything() {
    let server = Server::start(|seen| {
        if seen.target == "/mcp" && seen.method == "POST" {
            return Answer::status(307).with("location", "/mcp/");
        }
        legacy(seen)
    })
    .await;
    let connection = open(&web(&server.url())).await;
    assert!(call(&connection, "t").await.is_ok());
    let calls = server.asked("tools/call");
    assert_eq!(calls.iter().map(|seen| seen.target.as_str()).collect::<Vec<_>>(), ["/mcp", "/mcp/"]);
    assert_eq!(calls[0].body, calls[1].body);
    for seen in &calls {
        assert_eq!(seen.header("authorization"), Some("Bearer t0p"));
        assert_eq!(seen.header("mcp-session-id"), Some("s1"));
        assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn ht_15_the_eleventh_redirect_is_refused() {
    let server = Server::start(|_| Answer::status(308).with("location", "/mcp")).await;
    let mut spec = web(&server.url());
    spec.protocol = ProtocolChoice::Legacy;
    let error = try_open(&spec).await.err().unwrap();
    assert!(error.to_string().contains("more than 10 redirects"), "{error}");
    assert_eq!(server.seen().len(), 11);
}

#[tokio::test]
async fn ht_15_credentials_do_not_follow_a_redirect_to_another_origin() {
    let other = Server::start(legacy).await;
    let target = other.url();
    let server = Server::start(move |_| Answer::status(307).with("location", &target)).await;
    let error = try_open(&web(&server.url())).await.err().unwrap();
    assert!(error.to_string().contains(&other.address.to_string()), "{error}");
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn gw_07_a_short_wait_is_waited_and_a_long_one_is_told() {
    let server = calls(|seen| {
        let wait = if seen.body.contains("long") { "3600" } else { "1" };
        Answer::status(429).with("retry-after", wait)
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let start = Instant::now();
    let error = call(&connection, "long").await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(1));
    assert!(error.to_string().contains("3600 s") && !error.may_have_run(), "{error}");

    let tries = std::sync::atomic::AtomicU32::new(0);
    let server = calls(move |seen| {
        if tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            Answer::status(429).with("retry-after", "1")
        } else {
            legacy(seen)
        }
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let start = Instant::now();
    assert!(call(&connection, "t").await.is_ok());
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(server.asked("tools/call").len(), 2);
}

#[tokio::test]
async fn a_call_that_may_have_run_is_sent_once() {
    let server = calls(|_| Answer::status(503)).await;
    let connection = open(&web(&server.url())).await;
    let error = call(&connection, "t").await.unwrap_err();
    assert!(error.may_have_run() && error.to_string().contains("503"), "{error}");
    let server = calls(|_| Answer::events(": the end\n\n")).await;
    let connection = open(&web(&server.url())).await;
    assert!(call(&connection, "t").await.unwrap_err().may_have_run());
    assert_eq!(server.asked("tools/call").len(), 1);
}

#[tokio::test]
async fn a_body_over_the_limit_fails_with_the_limit_named() {
    let server = calls(|seen| Answer::json(&result(seen, &json!({"text": "x".repeat(9_000)})))).await;
    let mut spec = web(&server.url());
    spec.limits.max_message = 8_000;
    let connection = open(&spec).await;
    let error = call(&connection, "t").await.unwrap_err();
    assert!(matches!(error, RequestError::TooLarge { limit: 8_000, .. }), "{error}");
}

#[tokio::test]
async fn modern_requests_carry_their_headers_and_envelope() {
    let server = Server::start(modern).await;
    let connection = open(&web(&server.url())).await;
    assert_eq!(connection.era(), Era::Modern);
    let options = RequestOptions {
        mcp_param_headers: vec![("Mcp-Param-Region".into(), "eu".into())],
        ..RequestOptions::default()
    };
    call_with(&connection, "größe", options).await.unwrap();
    let seen = server.asked("tools/call").remove(0);
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(seen.header("mcp-param-region"), Some("eu"));
    assert_eq!(seen.header("mcp-session-id"), None);
    let meta = &seen.json()["params"]["_meta"];
    assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "toolgate");
    assert!(server.http("GET").is_empty(), "the modern era has no standing stream");
}

#[tokio::test]
async fn a_modern_cancel_closes_the_stream_and_sends_nothing() {
    let server =
        Server::start(|seen| if seen.rpc() == "tools/call" { Answer::Silence } else { modern(seen) }).await;
    let connection = open(&web(&server.url())).await;
    let cancel = CancellationToken::new();
    let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
    let waiting = call_with(&connection, "t", options);
    let cancelling = async {
        until(Duration::from_secs(5), "the call arrived", || server.asked("tools/call").len() == 1).await;
        cancel.cancel();
    };
    let (error, ()) = tokio::join!(waiting, cancelling);
    assert!(matches!(error, Err(RequestError::Cancelled { .. })));
    assert!(server.asked("notifications/cancelled").is_empty());
}
