//! The end of the process while servers hang: whoever closes or stops Toolgate is not made to wait.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use toolgate_e2e::{PATIENCE, Sandbox};

use crate::sandbox;

/// The most that a close may take (HT-27).
const LONGEST: Duration = Duration::from_secs(3);

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"fix__echo","arguments":{}}}"#;

/// A server that is found and never answers, in three forms, and what tells that it was reached.
fn hung(sandbox: &Sandbox, form: &str) -> (String, Box<dyn FnMut() -> bool>) {
    let started = sandbox.path("started");
    let script = |after: &str| format!("echo $$ > {} ; {after}", started.display());
    let by_shell = |after: &str| format!("command: sh, args: [\"-c\", {:?}]", script(after));
    let seen = {
        let started = started.clone();
        Box::new(move || started.exists())
    };
    match form {
        "reads its input" => (by_shell("cat > /dev/null"), seen),
        "heeds nothing" => (by_shell("trap '' TERM; while :; do sleep 1; done"), seen),
        _ => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            let url = format!("url: \"http://{}/mcp\"", listener.local_addr().unwrap());
            let mut held = Vec::new();
            let reached = move || {
                held.extend(listener.accept().ok());
                !held.is_empty()
            };
            (url, Box::new(reached))
        }
    }
}

fn wait_for(mut seen: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < until, "what was waited for never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn ht_27_a_server_that_hangs_in_its_greeting_holds_up_no_end() {
    for form in ["reads its input", "heeds nothing", "speaks http"] {
        for (signal, alone) in [(false, true), (true, true), (false, false)] {
            let sandbox = sandbox();
            let (entry, seen) = hung(&sandbox, form);
            sandbox.configure(&format!(
                "servers:\n  fix: {{ {entry} }}\npersonas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\n"
            ));
            let mut client = if alone { sandbox.serve_alone(&[]) } else { sandbox.serve_stdio(&[]) };
            client.initialize();
            client.send(CALL);
            wait_for(seen);
            let from = Instant::now();
            if signal {
                let pid = client.pid().to_string();
                assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
            }
            client.close();
            let took = from.elapsed();
            assert!(took < LONGEST, "a server that {form}, by a signal: {signal}, alone: {alone}: {took:?}");
            // A shared gateway goes on for others; its own end is what ends its servers.
            sandbox.end_gateway();
            // Its supervisor works on through TERM and KILL; nobody waits for that, and nothing stays.
            if let Ok(pid) = std::fs::read_to_string(sandbox.path("started")) {
                wait_for(|| !Path::new("/proc").join(pid.trim()).exists());
            }
        }
    }
}
