use serde_json::Value;
use tokio::io::{BufReader, DuplexStream, duplex};
use tokio::net::UnixStream;

use super::*;

/// An agent's pipes, the gateway's end, and the relay between them.
struct Between {
    say: DuplexStream,
    hear: BufReader<DuplexStream>,
    gateway: UnixStream,
    relay: tokio::task::JoinHandle<Result<RelayEnd, ServeError>>,
}

fn between() -> Between {
    let (gateway, ours) = UnixStream::pair().unwrap();
    let (from, to) = ours.into_split();
    let connected = Connected { from: BufReader::new(from), to, pid: 77, value: None };
    let (say, input) = duplex(4096);
    let (output, hear) = duplex(4096);
    let relay = tokio::spawn(async move { relay(connected, input, output, &CancellationToken::new()).await });
    Between { say, hear: BufReader::new(hear), gateway, relay }
}

#[tokio::test]
async fn bytes_pass_unchanged_and_the_end_of_the_agent_ends_the_session() {
    let mut all = between();
    let odd = b"\xef\xbb\xbf{\"id\": 1 ,\"method\":\"x\"}\r\n\n[\xff\n";
    all.say.write_all(odd).await.unwrap();
    let mut got = vec![0; odd.len()];
    all.gateway.read_exact(&mut got).await.unwrap();
    assert_eq!(got, odd);
    all.gateway.write_all(b"{\"id\":1,\"result\":{\"n\":1.0e1}}\r\n").await.unwrap();
    let mut line = String::new();
    all.hear.read_line(&mut line).await.unwrap();
    assert_eq!(line, "{\"id\":1,\"result\":{\"n\":1.0e1}}\r\n");
    drop(all.say);
    assert_eq!(all.gateway.read(&mut [0; 1]).await.unwrap(), 0, "the gateway hears of the end");
    drop(all.gateway);
    assert_eq!(all.relay.await.unwrap().unwrap(), RelayEnd::ClientLeft);
}

#[tokio::test]
async fn when_the_gateway_ends_each_open_request_is_told_and_a_torn_line_is_not_passed_on() {
    let mut all = between();
    all.say.write_all(b"{\"id\":1,\"method\":\"a\"}\n{\"id\":\"two\",\"method\":\"b\"}\n").await.unwrap();
    all.gateway.read_exact(&mut [0; 46]).await.unwrap();
    all.gateway.write_all(b"{\"id\":1,\"result\":{}}\n{\"id\":\"two\",\"resu").await.unwrap();
    drop(all.gateway);
    let mut text = String::new();
    all.hear.read_to_string(&mut text).await.unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[1]["id"], "two");
    let told = lines[1]["error"]["message"].as_str().unwrap();
    assert!(told.contains("77") && told.contains("not sent again"), "{told}");
    assert_eq!(all.relay.await.unwrap().unwrap(), RelayEnd::GatewayEnded { unanswered: 1 });
}

#[tokio::test]
async fn an_agent_that_does_not_read_stops_the_gateway_being_read() {
    let mut all = between();
    let line = [vec![b'x'; 4095], vec![b'\n']].concat();
    let mut sent = 0usize;
    while let Ok(written) =
        tokio::time::timeout(Duration::from_millis(300), all.gateway.write_all(&line)).await
    {
        written.unwrap();
        sent += line.len();
        assert!(sent < 64 * 1024 * 1024, "nothing holds the gateway back");
    }
    drop(all.hear);
    assert_eq!(all.relay.await.unwrap().unwrap(), RelayEnd::ClientLeft);
}
