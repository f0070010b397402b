//! The directory of the one gateway: who holds it, what lies in it, and who stands at its door.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio};

use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn served() -> (Sandbox, Stdio) {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    (sandbox, client)
}

fn echo(client: &mut Stdio, text: &str) {
    let result = client.call("fix__echo", &json!({ "message": text }));
    assert_eq!(result["content"][0]["text"], text, "{result}");
}

#[test]
fn gate_holder_gone_a_gateway_that_ends_leaves_nothing_that_says_it_serves() {
    let (sandbox, client) = served();
    let holder = sandbox.data().join("run/gateway.json");
    let said: Value = serde_json::from_slice(&std::fs::read(&holder).unwrap()).unwrap();
    assert_eq!(said["pid"], json!(sandbox.gateway().unwrap()));
    drop(client);
    sandbox.end_gateway();
    assert!(!holder.exists(), "a process of that number may be another one by now");
}

#[test]
fn gate_served_quickstart_replaces_no_directory_that_a_gateway_serves() {
    let sandbox = sandbox();
    let dir = sandbox.path("quick").display().to_string();
    sandbox.run(&["quickstart", "--dir", &dir]).exits(0);
    let config = format!("{dir}/toolgate.yaml");
    let mut client = Stdio::start(sandbox.command(&["--config", &config, "serve", "--stdio"]));
    client.initialize();
    let mark = std::fs::metadata(&config).unwrap().modified().unwrap();
    let refused = sandbox.run(&["quickstart", "--dir", &dir]).exits(1);
    for part in ["serves", "not replaced", "kill ", "--dir"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(std::fs::metadata(&config).unwrap().modified().unwrap(), mark, "nothing was written");
    let pid: String =
        refused.stderr.split("kill ").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
    drop(client);
    Command::new("kill").arg(&pid).status().unwrap();
    let until = Instant::now() + PATIENCE;
    while sandbox.run(&["quickstart", "--dir", &dir]).code != 0 {
        assert!(Instant::now() < until, "it has ended, and its directory is still taken");
    }
}

#[test]
fn gate_no_link_no_file_of_the_directory_is_locked_or_written_through_a_link() {
    for name in ["run/gateway.lock", "run/start.lock", "operator.lock", "pins.known.lock", "audit.heads"] {
        let sandbox = sandbox();
        sandbox.configure_fixture(&[], ALLOW);
        let elsewhere = sandbox.write("elsewhere", "");
        let link = sandbox.data().join(name);
        std::fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&elsewhere, &link).unwrap();
        // A lock that is held elsewhere would be waited for, and ours would be held there.
        let run = match name {
            "operator.lock" => {
                let answers =
                    [("New operator PIN: ", "horse-battery-7"), ("The same again: ", "horse-battery-7")];
                sandbox.type_to(&["operator", "init"], &answers)
            }
            "run/gateway.lock" | "run/start.lock" => sandbox.run(&["serve", "--stdio"]),
            _ => sandbox.run(&ECHO),
        };
        assert_ne!(run.code, 0, "{name}: {run:?}");
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"", "{name}");
    }
}

#[test]
fn two_builds_of_one_version_are_told_apart() {
    let (sandbox, mut client) = served();
    let config = sandbox.config_file().canonicalize().unwrap();
    let hello = json!({
        "protocol": 3, "version": env!("CARGO_PKG_VERSION"), "build": "/opt/other/toolgate, written then",
        "config": config, "locked": false, "variables": {},
        "want": { "kind": "session", "persona": "default", "lane": "main" },
    });
    let mut stream = UnixStream::connect(sandbox.data().join("run/gateway.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let reply: Value = serde_json::from_str(&line).unwrap();
    let message = reply["message"].as_str().unwrap();
    for part in [crate::TOOLGATE, "/opt/other/toolgate", "protocol 2 ", "protocol 3)"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    echo(&mut client, "undisturbed");
}

#[test]
fn gate_greeters_a_thousand_who_never_greet_keep_nobody_out() {
    let (sandbox, mut client) = served();
    let socket = sandbox.data().join("run/gateway.sock");
    let mut silent: Vec<UnixStream> = (0..1_100)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            // Half a greeting.
            let _ = stream.write_all(b"{\"protocol\":");
            stream
        })
        .collect();
    let begun = Instant::now();
    let mut next = sandbox.serve_stdio(&[]);
    next.initialize();
    echo(&mut next, "served");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}, and a greeting may take 10 s");
    echo(&mut client, "and so is who was there before");
    // The oldest of them was turned away, the youngest is still listened to.
    let first = silent.first_mut().unwrap();
    first.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(first.read(&mut [0; 8]).unwrap_or(0), 0);
}
