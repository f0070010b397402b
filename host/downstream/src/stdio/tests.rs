//! One client on in-memory pipes, before a fake backend.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::fake::{CHATTY_STEPS, Fake};

const SECOND: Duration = Duration::from_secs(1);

struct Client {
    fake: Fake,
    to: DuplexStream,
    from: Lines<BufReader<DuplexStream>>,
    server: JoinHandle<Result<(), ServeError>>,
}

impl Client {
    fn start() -> Self {
        Self::with(StdioOptions { grace: SECOND, ..StdioOptions::new("coder") })
    }

    fn with(options: StdioOptions) -> Self {
        let fake = Fake::new();
        let (to, server_reads) = tokio::io::duplex(64 * 1024);
        let (server_writes, from) = tokio::io::duplex(1024);
        let server = tokio::spawn(serve_pipes(fake.clone(), options, server_reads, server_writes));
        Self { fake, to, from: BufReader::new(from).lines(), server }
    }

    async fn send(&mut self, text: impl AsRef<[u8]>) {
        self.to.write_all(text.as_ref()).await.unwrap();
        self.to.write_all(b"\n").await.unwrap();
    }

    async fn line(&mut self) -> Option<String> {
        timeout(5 * SECOND, self.from.next_line()).await.expect("an answer in time").unwrap()
    }

    async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.line().await.expect("the pipe is open")).unwrap()
    }

    async fn ask(&mut self, message: Value) -> Value {
        self.send(message.to_string()).await;
        self.receive().await
    }

    async fn handshake(&mut self, version: &str) -> Value {
        let reply = self.ask(request(0, "initialize", json!({ "protocolVersion": version }))).await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string()).await;
        reply
    }

    async fn silent_for(&mut self, time: Duration) {
        let line = timeout(time, self.from.next_line()).await;
        assert!(line.is_err(), "unexpected: {line:?}");
    }

    /// Closes the client's side and gives everything that still comes.
    async fn finish(mut self) -> Vec<Value> {
        self.to.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = self.line().await {
            rest.push(serde_json::from_str(&line).unwrap());
        }
        self.server.await.unwrap().unwrap();
        rest
    }
}

fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": id.into(), "method": method });
    message["params"] = params;
    message
}

fn call(id: impl Into<Value>, tool: &str) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": { "a": 1 } }))
}

fn modern(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    request(id, method, params)
}

#[tokio::test]
async fn a_legacy_client_shakes_hands_lists_page_by_page_and_calls() {
    let mut client = Client::start();
    let hello = client.handshake("2025-06-18").await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(hello["result"]["capabilities"], json!({ "tools": { "listChanged": true } }));
    assert_eq!(hello["result"]["instructions"], "for coder");
    let first = client.ask(request(1, "tools/list", json!({}))).await;
    assert_eq!(first["result"]["tools"][0]["x-vendor"], 1);
    assert_eq!(first["result"].get("ttlMs"), None);
    let second = client.ask(request(2, "tools/list", json!({ "cursor": "2" }))).await;
    assert_eq!(
        second["result"],
        json!({ "tools": [{ "name": "of_coder", "inputSchema": { "type": "object" } }] })
    );
    let reply = client.ask(call(3, "echo")).await;
    assert_eq!(reply["result"], json!({ "content": [{ "type": "text", "text": "{\"a\":1}" }] }));
    assert_eq!(client.ask(request(4, "ping", json!({}))).await["result"], json!({}));
    for method in ["logging/setLevel", "nonsense"] {
        assert_eq!(client.ask(request(5, method, json!({}))).await["error"]["code"], -32601, "{method}");
    }
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn pr_11_an_id_comes_back_in_type_and_value() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    for id in [r#""1""#, "1", r#""init-1""#, "9007199254740993"] {
        client.send(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
        assert_eq!(client.line().await.unwrap(), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[tokio::test]
async fn st_04_a_byte_order_mark_before_the_first_request_changes_nothing() {
    let mut client = Client::start();
    client.to.write_all(&[0xEF, 0xBB, 0xBF]).await.unwrap();
    assert_eq!(client.handshake("2025-11-25").await["id"], 0);
}

#[tokio::test]
async fn st_05_line_ends_blank_lines_and_chunks_do_not_matter() {
    let bytes = b"\r\n   \n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
    for size in [bytes.len(), 7, 1] {
        let mut client = Client::start();
        for chunk in bytes.chunks(size) {
            client.to.write_all(chunk).await.unwrap();
            client.to.flush().await.unwrap();
            tokio::task::yield_now().await;
        }
        let mut ids: Vec<Value> =
            client.finish().await.into_iter().map(|reply| reply["id"].clone()).collect();
        ids.sort_by_key(Value::to_string);
        assert_eq!(ids, [1, 2], "chunks of {size}");
    }
}

#[tokio::test]
async fn a_call_that_two_parsers_could_read_differently_reaches_nothing() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    client
        .send(
            br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"path":"/ok","p\u0061th":"/etc/passwd"}}}"#,
        )
        .await;
    let reply = client.receive().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(7), &json!(-32600)));
    client.send(br#"{"jsonrpc":"2.0","id":8,"method":"#).await;
    assert_eq!(client.receive().await["error"]["code"], -32700);
    assert!(client.fake.calls().is_empty());
}

#[tokio::test]
async fn a_line_over_the_limit_fails_alone_and_names_the_limit() {
    let mut options = StdioOptions::new("coder");
    options.limits.max_message = 1000;
    let mut client = Client::with(options);
    client.handshake("2025-11-25").await;
    let mut long = call(5, "echo");
    long["params"]["arguments"]["pad"] = json!("x".repeat(5000));
    let reply = client.ask(long).await;
    assert_eq!(reply["error"]["code"], -32600);
    assert!(reply["error"]["message"].as_str().unwrap().contains("1000 bytes"));
    assert_eq!(client.ask(request(6, "ping", json!({}))).await["id"], 6);
}

#[tokio::test]
async fn a_cancelled_call_gets_no_reply_and_does_not_hold_up_others() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    client.send(call(101, "stuck").to_string()).await;
    client.send(call("101", "slow").to_string()).await;
    while client.fake.calls().len() < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 101 } });
    client.send(cancel.to_string()).await;
    assert_eq!(client.receive().await["id"], "101", "the other id of the same digits is not touched");
    client.silent_for(Duration::from_millis(200)).await;
    assert_eq!(client.fake.cancelled(), ["stuck"]);
}

#[tokio::test]
async fn progress_comes_with_the_clients_own_token_which_never_goes_behind() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    let mut slow = call(1, "slow");
    slow["params"]["_meta"] = json!({ "progressToken": 9_007_199_254_740_993_u64, "kept": true });
    client.send(slow.to_string()).await;
    for step in 1..=2 {
        let note = client.receive().await;
        assert_eq!(note["method"], "notifications/progress");
        assert_eq!(note["params"], json!({ "progressToken": 9_007_199_254_740_993_u64, "progress": step }));
    }
    assert_eq!(client.receive().await["id"], 1);
    let (_, params) = client.fake.calls().remove(0);
    assert!(!params.contains("progressToken"), "{params}");
    assert!(params.contains(r#""kept":true"#), "{params}");
}

#[tokio::test]
async fn both_eras_come_on_one_pipe_message_by_message() {
    let mut client = Client::start();
    let found = client.ask(modern("d", "server/discover", json!({}))).await;
    assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["result"]["resultType"], "complete");
    assert_eq!(found["result"]["cacheScope"], "private");
    assert_eq!(found["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
    assert_eq!(found["result"].get("serverInfo"), None);
    assert_eq!(client.handshake("2025-06-18").await["result"]["protocolVersion"], "2025-06-18");
    let listed = client.ask(modern(1, "tools/list", json!({}))).await;
    assert!(listed["result"]["ttlMs"].is_u64());
    let called = client.ask(modern(2, "tools/call", json!({ "name": "echo" }))).await;
    assert_eq!(called["result"]["resultType"], "complete");
    for method in ["ping", "initialize", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(client.ask(modern(3, method, json!({}))).await["error"]["code"], -32601, "{method}");
    }
    let legacy = client.ask(call(4, "echo")).await;
    assert_eq!(legacy["result"].get("resultType"), None);
    let (_, params) = client.fake.calls().remove(0);
    assert!(!params.contains("io.modelcontextprotocol"), "the envelope stays here: {params}");
}

#[tokio::test]
async fn a_request_of_neither_era_is_told_what_is_missing() {
    let mut client = Client::start();
    let reply = client.ask(request(1, "tools/list", json!({}))).await;
    assert_eq!(reply["error"]["code"], -32602);
    assert!(reply["error"]["message"].as_str().unwrap().contains("protocolVersion"));
    assert_eq!(client.ask(request(2, "ping", json!({}))).await["result"], json!({}));
}

#[tokio::test]
async fn batches_exist_in_one_revision_only() {
    let mut client = Client::start();
    client.handshake("2025-06-18").await;
    let batch =
        json!([request(1, "ping", json!({})), call("b", "slow"), { "jsonrpc": "2.0", "method": "x" }, 7]);
    assert_eq!(client.ask(batch.clone()).await["error"]["code"], -32600);
    client.handshake("2025-03-26").await;
    let replies = client.ask(batch).await;
    let ids: Vec<_> = replies.as_array().unwrap().iter().map(|reply| reply["id"].clone()).collect();
    assert_eq!(ids, [json!(null), json!(1), json!("b")]);
}

#[tokio::test]
async fn a_client_is_told_of_changes_but_not_of_each() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    client.ask(request(1, "ping", json!({}))).await;
    // More than are kept for a slow client: what was missed may have been about anything that was
    // declared to it.
    client.fake.change(200);
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    client.fake.change(2);
    assert_eq!(client.receive().await["method"], "notifications/tools/list_changed");
    client.silent_for(Duration::from_millis(300)).await;
}

#[tokio::test]
async fn a_subscription_is_acknowledged_fed_and_ends_silently_when_cancelled() {
    let mut client = Client::start();
    let filter = json!({ "notifications": { "toolsListChanged": true, "resourceSubscriptions": ["x://a"] } });
    let ack = client.ask(modern("sub", "subscriptions/listen", filter.clone())).await;
    assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(ack["params"]["notifications"], filter["notifications"]);
    client.fake.change(1);
    let told = client.receive().await;
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "sub");
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "sub" } });
    client.send(cancel.to_string()).await;
    client.silent_for(Duration::from_millis(200)).await;
    client.ask(modern(2, "subscriptions/listen", filter)).await;
    let last = client.finish().await;
    assert_eq!(last[0]["id"], 2, "a subscription that this side ends gets its result");
    assert_eq!(last[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn a_claimed_persona_that_disagrees_is_refused() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    let mut other = call(1, "echo");
    other["params"]["_meta"] = json!({ "toolgate/persona": "admin" });
    assert_eq!(client.ask(other).await["error"]["code"], -32600);
    assert!(client.fake.calls().is_empty());
    let mut same = call(2, "echo");
    same["params"]["_meta"] = json!({ "toolgate/persona": "coder", "toolgate/run_id": "r7" });
    client.ask(same).await;
    let (caller, _) = client.fake.calls().remove(0);
    assert_eq!((caller.persona.as_str(), caller.run_id.as_deref()), ("coder", Some("r7")));
}

#[tokio::test]
async fn the_end_of_input_lets_running_calls_finish_for_a_moment_and_then_cancels_them() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    client.send(call(1, "slow").to_string()).await;
    client.send(call(2, "stuck").to_string()).await;
    let fake = client.fake.clone();
    let rest = client.finish().await;
    let ids: Vec<_> = rest.iter().map(|reply| reply["id"].clone()).collect();
    assert_eq!(ids, [1]);
    assert_eq!(fake.cancelled(), ["stuck"]);
}

#[tokio::test]
async fn a_client_that_stops_reading_stops_being_served() {
    let mut client = Client::with(StdioOptions { queue: 2, max_running: 4, ..StdioOptions::new("coder") });
    client.handshake("2025-11-25").await;
    let many = 200;
    for id in 0..many {
        client.send(call(id, "big").to_string()).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    // One is being written, two are queued, four run; refusals of the rest wait for a place as well.
    assert!(client.fake.calls().len() <= 8, "{} calls were served to nobody", client.fake.calls().len());
    for _ in 0..many {
        client.receive().await;
    }
    assert!(client.finish().await.is_empty());
}

#[tokio::test]
async fn steps_that_nobody_reads_are_dropped_and_do_not_hold_up_their_call() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    let mut chatty = call(1, "chatty");
    chatty["params"]["_meta"] = json!({ "progressToken": "t" });
    client.send(chatty.to_string()).await;
    let told = async {
        while client.fake.finished().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(5 * SECOND, told).await.expect("the call ends although nobody reads");
    let rest = client.finish().await;
    assert!(rest.len() < CHATTY_STEPS / 10, "{} messages were kept", rest.len());
    assert_eq!(rest.last().unwrap()["id"], 1, "the reply is never dropped");
}

#[tokio::test]
async fn an_id_in_use_is_refused_and_the_first_request_lives_on() {
    let mut client = Client::start();
    client.handshake("2025-11-25").await;
    client.send(call(1, "slow").to_string()).await;
    assert_eq!(client.ask(call(1, "echo")).await["error"]["code"], -32600);
    assert!(client.receive().await["result"].is_object());
}
