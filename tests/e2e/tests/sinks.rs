//! Audit rows on their way to receivers, with the built binary and receivers that read as the RFCs say.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use toolgate_e2e::{PATIENCE, Received, Receiver, Sandbox};

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn with_sink(sandbox: &Sandbox, sink: &str) {
    sandbox.configure_fixture(&[], &format!("{ALLOW}audit:\n  sinks:\n    - {sink}\n"));
}

fn call(sandbox: &Sandbox) {
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
}

/// A receiver that answers each request with the next of `answers`, and with the last one for ever.
fn receiver(answers: &'static [&'static str]) -> Receiver {
    Receiver::start(move |request| (*answers.get(request.number).or(answers.last()).unwrap()).to_owned())
}

const TAKEN: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
const DOWN: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[test]
fn gate_own_files_no_sink_writes_into_a_file_of_toolgates_own() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["mcp", "status"]).exits(0);
    let data = sandbox.data();
    std::os::unix::fs::symlink(data.join("state.db"), sandbox.path("link")).unwrap();
    let before = std::fs::read(data.join("state.db")).unwrap();
    for path in [
        data.join("audit.db"),
        data.join("new.jsonl"),
        data.join("../data/state.db"),
        sandbox.path("link"),
        sandbox.config_file(),
        sandbox.path("config/toolgate/secrets.env"),
    ] {
        let sink = format!(
            "audit: {{ sinks: [{{ name: file, type: jsonl, path: {:?} }}] }}\n",
            path.display().to_string()
        );
        sandbox.configure_fixture(&[], &sink);
        let refused = sandbox.run(&["config", "check"]).exits(2);
        assert!(
            refused.stderr.contains("Toolgate's own") && refused.stderr.contains("audit.sinks.file"),
            "{refused:?}"
        );
        sandbox.run(&["audit", "deliver"]).exits(2);
    }
    assert_eq!(std::fs::read(data.join("state.db")).unwrap(), before);
}

#[test]
fn a_webhook_that_is_down_gets_every_row_later_and_status_says_so_meanwhile() {
    let receiver = receiver(&[DOWN, TAKEN]);
    let sandbox = sandbox();
    with_sink(
        &sandbox,
        &format!(
            "{{ name: hook, type: webhook, url: \"http://127.0.0.1:{}/in\", headers: {{ authorization: \"Bearer ${{HOOK_TOKEN}}\" }} }}",
            receiver.port
        ),
    );
    call(&sandbox);
    let run = sandbox.run(&["audit", "deliver"]).exits(1);
    assert!(run.stderr.contains("HOOK_TOKEN is not set"), "{run:?}");
    sandbox.run_with(&["secret", "set", "HOOK_TOKEN"], "hush-hush\n", &[]).exits(0);
    let run = sandbox.run(&["audit", "deliver"]).exits(1);
    assert!(run.stderr.contains("503") && !run.stderr.contains("hush-hush"), "{run:?}");
    let status = sandbox.run(&["audit", "sinks", "--json"]).exits(0).json();
    assert_eq!((&status[0]["health"], &status[0]["cursor"]), (&"retrying".into(), &0.into()), "{status}");
    assert!(
        status[0]["behind"].as_i64().unwrap() > 0 && status[0]["error"].as_str().unwrap().contains("503")
    );
    assert!(!status.to_string().contains("hush-hush"));
    let warned = sandbox.run(&["mcp", "status"]);
    assert!(warned.stderr.contains("hook"), "{warned:?}");
    sandbox.run(&["audit", "deliver"]).exits(0);
    let status = sandbox.run(&["audit", "sinks", "--json"]).exits(0).json();
    assert_eq!((&status[0]["health"], &status[0]["behind"]), (&"delivering".into(), &0.into()), "{status}");
    let requests = receiver.requests();
    let ids: BTreeSet<i64> = requests[1..]
        .iter()
        .flat_map(|request| request.body.lines())
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap())
        .collect();
    let rows = sandbox.audit();
    assert!(rows.iter().all(|row| ids.contains(&row["id"].as_i64().unwrap())), "{ids:?}");
    assert!(requests[1].head.to_ascii_lowercase().contains("authorization: bearer hush-hush"));
    assert!(!sandbox.run(&["config", "show", "--json"]).exits(0).stdout.contains("hush-hush"));
}

#[test]
fn a_served_gateway_delivers_by_itself_and_never_waits_for_a_receiver() {
    // The receiver accepts and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stuck = listener.local_addr().unwrap().port();
    let receiver = receiver(&[TAKEN]);
    let sandbox = sandbox();
    with_sink(
        &sandbox,
        &format!(
            "{{ name: stuck, type: webhook, url: \"http://127.0.0.1:{stuck}/\" }}\n    - {{ name: fine, type: webhook, format: ocsf, url: \"http://127.0.0.1:{}/\" }}",
            receiver.port
        ),
    );
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..5 {
        let reply = client.call("fix__echo", &serde_json::json!({"message": "hi"}));
        assert_eq!(reply["isError"], Value::Null, "{reply}");
    }
    let until = Instant::now() + PATIENCE;
    let completed = |requests: &[Received]| {
        requests
            .iter()
            .flat_map(|request| request.body.lines().map(str::to_owned).collect::<Vec<_>>())
            .filter(|line| {
                line.contains("\"message\":\"mcp_completed\"") && line.contains("\"class_uid\":6003")
            })
            .count()
    };
    while completed(&receiver.requests()) < 5 {
        assert!(Instant::now() < until, "{:?}", receiver.requests());
        std::thread::sleep(Duration::from_millis(50));
    }
    client.close();
    drop(listener);
}

#[test]
fn a_collector_gets_the_logs_of_otlp() {
    let receiver = receiver(&[TAKEN]);
    let sandbox = sandbox();
    with_sink(
        &sandbox,
        &format!("{{ name: otel, type: otlp, url: \"http://127.0.0.1:{}/v1/logs\" }}", receiver.port),
    );
    call(&sandbox);
    sandbox.run(&["audit", "deliver"]).exits(0);
    let requests = receiver.requests();
    assert!(
        requests[0].head.starts_with("POST /v1/logs ") && requests[0].head.contains("application/json"),
        "{requests:?}"
    );
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    let record = body
        .pointer("/resourceLogs/0/scopeLogs/0/logRecords")
        .and_then(Value::as_array)
        .unwrap()
        .iter()
        .find(|record| record["eventName"] == "toolgate.mcp_called")
        .unwrap();
    // In the JSON form of OTLP 64-bit numbers are strings.
    assert!(record["timeUnixNano"].as_str().unwrap().parse::<u64>().unwrap() > 1_000_000_000_000_000_000);
    assert_eq!(record["severityNumber"], 9);
    let row: Value = serde_json::from_str(record["body"]["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!(row["tool"], "echo");
    let tool =
        record["attributes"].as_array().unwrap().iter().find(|pair| pair["key"] == "toolgate.tool").unwrap();
    assert_eq!(tool["value"]["stringValue"], "echo");
}

/// A listener that speaks TLS and takes RFC 5425 frames apart; gives each message.
fn syslog() -> (u16, mpsc::Receiver<String>) {
    let certificates =
        CertificateDer::pem_slice_iter(include_bytes!("tls/server.pem")).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("tls/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, messages) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let session = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut tls = rustls::StreamOwned::new(session, stream);
            while let Some(message) = frame(&mut tls) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        }
    });
    (port, messages)
}

fn frame(tls: &mut impl std::io::Read) -> Option<String> {
    let mut length = 0usize;
    loop {
        let mut byte = [0u8; 1];
        tls.read_exact(&mut byte).ok()?;
        match byte[0] {
            b' ' => break,
            digit if digit.is_ascii_digit() => length = length * 10 + usize::from(digit - b'0'),
            other => panic!("no frame: {other}"),
        }
    }
    let mut message = vec![0; length];
    tls.read_exact(&mut message).ok()?;
    Some(String::from_utf8(message).unwrap())
}

#[test]
fn syslog_goes_over_tls_in_frames_and_to_nobody_with_another_certificate() {
    let (port, messages) = syslog();
    let sandbox = sandbox();
    with_sink(&sandbox, &format!("{{ name: siem, type: syslog, address: \"localhost:{port}\" }}"));
    call(&sandbox);
    let run = sandbox.run(&["audit", "deliver"]).exits(1);
    assert!(run.stderr.contains("certificate"), "no authority of this machine signed it: {run:?}");
    let authority = sandbox.write("ca.pem", include_bytes!("tls/ca.pem"));
    let run = sandbox.run_with(&["audit", "deliver"], "", &[("SSL_CERT_FILE", &authority)]);
    assert_eq!(run.code, 0, "{run:?}");
    let first = messages.recv_timeout(PATIENCE).unwrap();
    let mut all = vec![first];
    all.extend(messages.try_iter());
    let called =
        all.iter().find(|message| message.contains(" mcp_called ")).unwrap_or_else(|| panic!("{all:?}"));
    // Facility 13, severity 6; version 1; the row is the message.
    assert!(called.starts_with("<110>1 20"), "{called}");
    let row: Value =
        serde_json::from_str(called.split_once(" - toolgate - mcp_called - ").unwrap().1).unwrap();
    assert_eq!(row["details"]["server"], "fix");
    // A name that the certificate is not of.
    with_sink(&sandbox, &format!("{{ name: other, type: syslog, address: \"127.0.0.2:{port}\" }}"));
    sandbox.run_with(&["audit", "deliver"], "", &[("SSL_CERT_FILE", &authority)]).exits(1);
}

#[test]
fn rows_that_a_sink_has_not_taken_are_not_archived() {
    let receiver = receiver(&[DOWN, DOWN, TAKEN]);
    let sandbox = sandbox();
    with_sink(
        &sandbox,
        &format!("{{ name: hook, type: webhook, url: \"http://127.0.0.1:{}/\" }}", receiver.port),
    );
    call(&sandbox);
    let run = sandbox.run(&["audit", "archive", "--before", "2999-01-01"]).exits(0);
    assert!(run.stdout.contains("nothing was sealed") && run.stderr.contains("hook"), "{run:?}");
    while sandbox.run(&["audit", "deliver"]).code != 0 {}
    let run = sandbox.run(&["audit", "archive", "--before", "2999-01-01"]).exits(0);
    assert!(run.stdout.contains("segment-000001.db"), "{run:?}");
    sandbox.run(&["audit", "verify"]).exits(0);
}
