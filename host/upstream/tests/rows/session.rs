//! The session of the legacy era over HTTP: its start, its loss, its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolgate_upstream::{Event, ProtocolChoice, RequestOptions};
use toolgate_wire::ListKind;

use crate::http_server::{Answer, Seen, Server, header, legacy, reply_event};
use crate::support::{call, call_with, open, try_open, until, web};

#[tokio::test]
async fn ht_08_any_2xx_acknowledges_a_notification() {
    let acknowledgements = [
        Answer::status(204),
        Answer::status(200),
        Answer::status(202),
        Answer::Full(200, vec![header("content-type", "text/html")], "ok".into()),
    ];
    for acknowledgement in acknowledgements {
        let server = Server::start(move |seen| {
            if seen.rpc() == "notifications/initialized" { acknowledgement.clone() } else { legacy(seen) }
        })
        .await;
        let connection = open(&web(&server.url())).await;
        assert!(call(&connection, "t").await.is_ok());
    }
}

#[tokio::test]
async fn ht_10_a_lost_session_is_renewed_once_and_the_request_repeated() {
    let server = numbered(|seen, session| {
        (seen.rpc() == "tools/call" && session == "s1").then(|| Answer::status(404))
    })
    .await;
    let (connection, mut events) = try_open(&web(&server.url())).await.unwrap();
    let (one, two) = tokio::join!(call(&connection, "a"), call(&connection, "b"));
    assert!(one.is_ok() && two.is_ok(), "{one:?} {two:?}");
    let greetings = server.asked("initialize");
    assert_eq!(greetings.len(), 2, "two refused requests share one renewal");
    assert!(greetings.iter().all(|seen| seen.header("mcp-session-id").is_none()));
    assert_eq!(server.asked("notifications/initialized")[1].header("mcp-session-id"), Some("s2"));
    assert!(
        matches!(events.recv().await, Some(Event::ListChanged(ListKind::Tools))),
        "the surface may be another"
    );
}

#[tokio::test]
async fn ht_10_a_second_refusal_is_final() {
    let server =
        Server::start(|seen| if seen.rpc() == "tools/call" { Answer::status(404) } else { legacy(seen) })
            .await;
    let connection = open(&web(&server.url())).await;
    let error = call(&connection, "t").await.unwrap_err();
    assert!(error.to_string().contains("404") && !error.may_have_run(), "{error}");
    assert_eq!(server.asked("initialize").len(), 2);
    assert_eq!(server.asked("tools/call").len(), 2);
}

/// A legacy server whose sessions are `s1`, `s2` and so on, one for each `initialize`; `answer` may
/// answer in its own way what comes in a session.
async fn numbered(answer: impl Fn(&Seen, &str) -> Option<Answer> + Send + Sync + 'static) -> Server {
    let started = AtomicU32::new(0);
    Server::start(move |seen| {
        if seen.rpc() == "initialize" {
            let number = started.fetch_add(1, Ordering::SeqCst) + 1;
            let Answer::Full(status, _, body) = legacy(seen) else { panic!() };
            let kind = header("content-type", "application/json");
            return Answer::Full(status, vec![kind, header("mcp-session-id", &format!("s{number}"))], body);
        }
        seen.header("mcp-session-id")
            .and_then(|session| answer(seen, session))
            .unwrap_or_else(|| legacy(seen))
    })
    .await
}

#[tokio::test]
async fn ht_10_a_session_that_is_lost_while_nobody_calls_is_renewed_once_by_the_standing_stream() {
    let opened = AtomicU32::new(0);
    let server = numbered(move |seen, session| {
        let get = seen.method == "GET";
        match session {
            // It stands for a moment; then the server knows it no more.
            "s1" if get && opened.fetch_add(1, Ordering::SeqCst) == 0 => {
                Some(Answer::events("retry: 60\ndata:\n\n"))
            }
            "s1" if get => Some(Answer::status(404)),
            _ if get => Some(Answer::Stream(Vec::new(), true)),
            _ => None,
        }
    })
    .await;
    let (connection, mut events) = try_open(&web(&server.url())).await.unwrap();
    let mut missed = false;
    while !missed {
        missed = matches!(events.recv().await, Some(Event::Missed));
    }
    until(Duration::from_secs(5), "the stream stands again", || {
        server.http("GET").last().is_some_and(|seen| seen.header("mcp-session-id") == Some("s2"))
    })
    .await;
    assert!(call(&connection, "t").await.is_ok());
    assert_eq!(server.asked("initialize").len(), 2);
    assert_eq!(server.asked("tools/call").len(), 1);
}

#[tokio::test]
async fn ht_10_a_renewal_whose_caller_goes_away_leaves_the_session_to_the_next_one() {
    let greeted = AtomicU32::new(0);
    let server = Server::start(move |seen| match (seen.rpc().as_str(), seen.header("mcp-session-id")) {
        // The second greeting hangs, the third one is answered.
        ("initialize", _) => match greeted.fetch_add(1, Ordering::SeqCst) {
            1 => Answer::Silence,
            number => {
                let Answer::Full(status, _, body) = legacy(seen) else { panic!() };
                let kind = header("content-type", "application/json");
                Answer::Full(status, vec![kind, header("mcp-session-id", &format!("s{number}"))], body)
            }
        },
        ("tools/call", Some("s2")) => legacy(seen),
        ("tools/call", Some(_)) => Answer::status(404),
        ("tools/call", None) => Answer::status(400),
        _ => legacy(seen),
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let options = RequestOptions { timeout: Some(Duration::from_millis(200)), ..RequestOptions::default() };
    assert!(call_with(&connection, "t", options).await.is_err());
    assert!(call(&connection, "t").await.is_ok(), "the session is renewed now");
    assert_eq!(server.asked("initialize").len(), 3);
}

#[tokio::test]
async fn without_an_event_to_go_on_from_a_standing_stream_that_broke_may_have_missed_something() {
    let server = Server::start(|seen| match seen.method.as_str() {
        "GET" => Answer::events("retry: 60\ndata:\n\n"),
        _ => legacy(seen),
    })
    .await;
    let (_connection, mut events) = try_open(&web(&server.url())).await.unwrap();
    assert!(matches!(events.recv().await, Some(Event::Missed)));
}

#[tokio::test]
async fn a_401_with_a_challenge_is_about_sign_in_and_renews_nothing() {
    let server = Server::start(|seen| match seen.rpc().as_str() {
        "tools/call" => Answer::status(401).with("www-authenticate", "Bearer resource_metadata=\"x\""),
        _ => legacy(seen),
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let error = call(&connection, "t").await.unwrap_err();
    assert_eq!(error.code(), "authentication_needed");
    assert_eq!(server.asked("initialize").len(), 1);
}

#[tokio::test]
async fn ht_13_a_refused_standing_stream_harms_nothing() {
    for status in [404, 406, 400, 405] {
        let server = Server::start(
            move |seen| {
                if seen.method == "GET" { Answer::status(status) } else { legacy(seen) }
            },
        )
        .await;
        let connection = open(&web(&server.url())).await;
        until(Duration::from_secs(2), "it was asked for", || server.http("GET").len() == 1).await;
        assert!(call(&connection, "t").await.is_ok());
        // Longer than the pause after which a broken stream is opened again.
        if status == 405 {
            tokio::time::sleep(Duration::from_millis(1_300)).await;
        }
        assert_eq!(server.http("GET").len(), 1);
    }
}

#[tokio::test]
async fn the_standing_stream_brings_what_a_server_says_unasked() {
    let changed = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n";
    let server = Server::start(move |seen| match seen.method.as_str() {
        "GET" => Answer::Stream(vec![(Duration::ZERO, changed.into())], true),
        _ => legacy(seen),
    })
    .await;
    let (_connection, mut events) = try_open(&web(&server.url())).await.unwrap();
    assert!(matches!(events.recv().await, Some(Event::ListChanged(ListKind::Tools))));
}

#[tokio::test]
async fn ht_21_a_broken_stream_is_resumed_from_its_last_event() {
    let request = Arc::new(std::sync::Mutex::new(String::new()));
    let server = Server::start(move |seen| match (seen.method.as_str(), seen.rpc().as_str()) {
        (_, "tools/call") => {
            *request.lock().unwrap() = reply_event(seen);
            Answer::events("id: e1\nretry: 300\ndata:\n\n")
        }
        ("GET", _) if seen.header("last-event-id") == Some("e1") => {
            Answer::events(request.lock().unwrap().clone())
        }
        _ => legacy(seen),
    })
    .await;
    let connection = open(&web(&server.url())).await;
    let start = Instant::now();
    assert_eq!(call(&connection, "t").await.unwrap()["ok"], true);
    assert!(start.elapsed() >= Duration::from_millis(300));
    assert_eq!(server.asked("tools/call").len(), 1, "the call itself is not repeated");
}

#[tokio::test]
async fn pr_14_a_legacy_cancel_is_sent_as_a_notification() {
    let server =
        Server::start(|seen| if seen.rpc() == "tools/call" { Answer::Silence } else { legacy(seen) }).await;
    let connection = open(&web(&server.url())).await;
    let cancel = CancellationToken::new();
    let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
    let waiting = call_with(&connection, "t", options);
    let cancelling = async {
        until(Duration::from_secs(5), "the call arrived", || server.asked("tools/call").len() == 1).await;
        cancel.cancel();
    };
    let (error, ()) = tokio::join!(waiting, cancelling);
    assert!(error.is_err());
    let told = || server.asked("notifications/cancelled");
    until(Duration::from_secs(1), "the server was told", || told().len() == 1).await;
    assert_eq!(told()[0].json()["params"]["requestId"], server.asked("tools/call")[0].json()["id"]);
}

/// HT-27 (a): every session is deleted, and a server that does not allow that is tolerated.
#[tokio::test]
async fn ht_27_a_close_deletes_the_session() {
    for status in [204, 405] {
        let server =
            Server::start(
                move |seen| {
                    if seen.method == "DELETE" { Answer::status(status) } else { legacy(seen) }
                },
            )
            .await;
        for _ in 0..5 {
            open(&web(&server.url())).await.close().await;
        }
        let deleted = server.http("DELETE");
        assert_eq!(deleted.len(), 5);
        assert!(deleted.iter().all(|seen| seen.header("mcp-session-id") == Some("s1")));
    }
}

#[tokio::test]
async fn ht_27_a_dropped_connection_deletes_its_session_too() {
    let server = Server::start(legacy).await;
    drop(open(&web(&server.url())).await);
    until(Duration::from_secs(2), "the session is deleted", || server.http("DELETE").len() == 1).await;
}

/// HT-27 (b): neither a greeting that hangs nor a DELETE that hangs keeps a close waiting.
#[tokio::test]
async fn ht_27_nothing_that_hangs_keeps_a_close_waiting() {
    let server =
        Server::start(|seen| if seen.rpc() == "initialize" { Answer::Silence } else { legacy(seen) }).await;
    let mut spec = web(&server.url());
    spec.protocol = ProtocolChoice::Legacy;
    let start = Instant::now();
    let opening = tokio::time::timeout(Duration::from_millis(200), try_open(&spec)).await;
    assert!(opening.is_err() && start.elapsed() < Duration::from_secs(1));

    let server =
        Server::start(|seen| if seen.method == "DELETE" { Answer::Silence } else { legacy(seen) }).await;
    let connection = open(&web(&server.url())).await;
    let start = Instant::now();
    connection.close().await;
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_servers_question_on_the_stream_is_answered_with_a_refusal() {
    let server = Server::start(|seen| {
        let question = json!({"jsonrpc": "2.0", "id": "q1", "method": "roots/list"});
        match seen.rpc().as_str() {
            "tools/call" => Answer::events(format!("data: {question}\n\n{}", reply_event(seen))),
            _ if seen.json().get("result").or(seen.json().get("error")).is_some() => Answer::status(202),
            _ => legacy(seen),
        }
    })
    .await;
    let connection = open(&web(&server.url())).await;
    assert!(call(&connection, "t").await.is_ok());
    let answer = || server.seen().into_iter().find(|seen| seen.json()["id"] == "q1");
    until(Duration::from_secs(2), "the question was answered", || answer().is_some()).await;
    assert_eq!(answer().unwrap().json()["error"]["code"], -32601);
}
