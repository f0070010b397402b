//! One gateway for a data directory: clients on pipes share it, whoever starts it, however anybody ends.

mod left;

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_e2e::{PATIENCE, Sandbox, Stdio, gateways};

use crate::sandbox;
use crate::servers::{alive, wait_until_gone};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

fn echo(client: &mut Stdio, text: &str) {
    let result = client.call("fix__echo", &json!({ "message": text }));
    assert_eq!(result["content"][0]["text"], text, "{result}");
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// How often the server of this sandbox was greeted: once for each process of it.
fn greetings(sandbox: &Sandbox) -> usize {
    sandbox.read("ledger").matches(r#""method":"initialize""#).count()
}

/// A server that keeps a ledger and has a grandchild, so that its processes are known.
fn with_ledger(sandbox: &Sandbox, keys: &str, rest: &str) {
    let (ledger, pids) = (sandbox.path("ledger"), sandbox.path("pids"));
    let options = ["--ledger", &ledger.display().to_string(), "--grandchild", &pids.display().to_string()];
    let entry = format!("{}{keys}", sandbox.fixture_entry("fix", &options));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}{rest}"));
}

#[test]
fn three_clients_share_one_set_of_children_and_no_kill_leaves_an_orphan_a_torn_chain_or_a_second_call() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "", "");
    let mut clients = [(); 3].map(|()| sandbox.serve_stdio(&[]));
    for (number, client) in clients.iter_mut().enumerate() {
        client.initialize();
        echo(client, &format!("hello {number}"));
    }
    assert_eq!(greetings(&sandbox), 1, "one process for all");
    let gateway = sandbox.gateway().expect("a gateway runs");
    let [mut first, mut second, mut third] = clients;

    first.kill();
    echo(&mut second, "after a client was killed");
    assert_eq!(sandbox.gateway(), Some(gateway), "the one that started it is gone, and it goes on");

    let slow = json!({ "name": "fix__slow", "arguments": { "ms": 20_000, "say": "never" } });
    let call = json!({ "jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": slow });
    second.send(&call.to_string());
    wait_until("the call reaches the server", || sandbox.read("ledger").contains("never"));
    let written = sandbox.read("pids");
    let children: Vec<&str> = written.split_whitespace().collect();
    assert!(!children.is_empty() && children.iter().all(|pid| alive(pid)), "{written}");
    gateways::end(gateway, "-KILL");
    let told: Value = serde_json::from_str(&second.reply_to("900")).unwrap();
    let text = told["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains(&gateway.to_string()) && text.contains("not sent again"), "{told}");
    assert!(third.line_within(Duration::from_millis(300)).is_none(), "nothing was open there");
    assert_eq!((second.close(), third.close()), (1, 1));
    wait_until_gone(&children);

    // What was left behind, a socket and two locks, keeps nobody out.
    let mut again = sandbox.serve_stdio(&[]);
    again.initialize();
    echo(&mut again, "again");
    assert_eq!(greetings(&sandbox), 2);
    assert_eq!(sandbox.read("ledger").matches("never").count(), 1, "the call was sent once");
    assert_eq!(again.close(), 0);
    sandbox.run(&["audit", "verify"]).exits(0);
    let rows = sandbox.audit();
    let count = |event: &str| rows.iter().filter(|row| row["details"]["event"] == event).count();
    assert_eq!(count("mcp_called"), 6, "each call that left has its row");
    assert_eq!(count("mcp_completed"), 5, "and the one that was cut off has no end");
}

#[test]
fn gate_one_start_of_clients_that_start_at_once_one_starts_the_gateway() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "", "");
    let mut clients: Vec<Stdio> = (0..6).map(|_| sandbox.serve_stdio(&[])).collect();
    for client in &mut clients {
        client.initialize();
    }
    for client in &mut clients {
        echo(client, "hi");
    }
    assert_eq!(greetings(&sandbox), 1);
    let log = sandbox.read("data/log/gateway.log");
    assert_eq!(log.matches("is ready").count(), 1, "{log}");
    assert!(!log.contains("is taken"), "nobody tried in vain: {log}");
}

#[test]
fn gate_claim_a_directory_that_is_taken_is_refused_with_the_process_that_has_it() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let gateway = sandbox.gateway().unwrap().to_string();
    for args in [&["serve", "--stdio", "--no-share"][..], &["serve", "--listen", "127.0.0.1:0"]] {
        let run = sandbox.run(args).exits(1);
        assert!(run.stderr.contains("is taken") && run.stderr.contains(&gateway), "{args:?}: {run:?}");
    }
    assert_eq!(client.close(), 0);
    sandbox.end_gateway();

    let mut alone = sandbox.serve_alone(&[]);
    alone.initialize();
    assert_eq!(sandbox.gateway(), None, "it is served in its own process");
    let run = sandbox.run(&["serve", "--stdio"]).exits(1);
    assert!(run.stderr.contains(&alone.pid().to_string()) && run.stderr.contains("--no-share"), "{run:?}");
    echo(&mut alone, "undisturbed");
    assert_eq!(alone.close(), 0);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    echo(&mut client, "free again");
}

/// Says one line to the socket of a sandbox and gives the line that comes back.
fn greet(sandbox: &Sandbox, hello: &Value) -> Value {
    let mut stream = UnixStream::connect(sandbox.data().join("run/gateway.sock")).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("{hello}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

#[test]
fn gate_standing_a_client_of_another_version_configuration_or_lock_is_refused_with_both_sides() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let config = sandbox.config_file().canonicalize().unwrap();
    let hello = json!({
        "protocol": 1, "version": "9.9.9", "config": config, "locked": false, "variables": {},
        "want": { "kind": "session", "persona": "default", "lane": "main" },
    });
    let reply = greet(&sandbox, &hello);
    let text = reply["message"].as_str().unwrap_or_default();
    assert_eq!(reply["reply"], "refused");
    assert!(text.contains("9.9.9") && text.contains(env!("CARGO_PKG_VERSION")), "{reply}");

    let other = sandbox.write("other.yaml", std::fs::read(sandbox.config_file()).unwrap());
    let run = sandbox.run(&["--config", &other, "serve", "--stdio"]).exits(2);
    assert!(run.stderr.contains("other.yaml") && run.stderr.contains("toolgate/toolgate.yaml"), "{run:?}");
    let run = sandbox.run(&["--locked", "serve", "--stdio"]);
    assert!(run.code == 2 && run.stderr.contains("without --locked"), "{run:?}");
    assert!(run.stdout.is_empty(), "standard output stays for the protocol");
    echo(&mut client, "undisturbed");
}

#[test]
fn gate_idle_exit_the_gateway_ends_some_time_after_its_last_client_and_its_servers_with_it() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "", "serve: { idle_exit: 700ms }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    echo(&mut client, "hi");
    let gateway = sandbox.gateway().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    echo(&mut client, "still here");
    assert_eq!(client.close(), 0);
    let mut next = sandbox.serve_stdio(&[]);
    next.initialize();
    echo(&mut next, "before it ended");
    assert_eq!((sandbox.gateway(), greetings(&sandbox)), (Some(gateway), 1));
    assert_eq!(next.close(), 0);
    wait_until("the gateway ends", || sandbox.gateway().is_none());
    let written = sandbox.read("pids");
    wait_until_gone(&written.split_whitespace().collect::<Vec<_>>());
    assert!(!sandbox.data().join("run/gateway.sock").exists());
}

#[test]
fn gate_guests_a_gateway_stays_while_somebody_is_at_its_door() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "", "serve: { idle_exit: 500ms }\n");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let gateway = sandbox.gateway().unwrap();
    let silent = UnixStream::connect(sandbox.data().join("run/gateway.sock")).unwrap();
    assert_eq!(client.close(), 0);
    // Three times as long as it stays without anybody.
    std::thread::sleep(Duration::from_millis(1500));
    let mut next = sandbox.serve_stdio(&[]);
    next.initialize();
    echo(&mut next, "the door was never shut");
    assert_eq!(sandbox.gateway(), Some(gateway));
    drop(silent);
}

#[test]
fn a_gateway_over_http_serves_clients_on_pipes_too() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "    instance: shared\n", "");
    let server = sandbox.serve_http();
    let call = r#"{"name":"fix__echo","arguments":{"message":"over http"}}"#;
    let reply = server.modern("/mcp", "1", "tools/call", call).message();
    assert_eq!(reply["result"]["content"][0]["text"], "over http", "{reply}");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    echo(&mut client, "on a pipe");
    assert_eq!((greetings(&sandbox), sandbox.gateway()), (1, None));
    drop(server);
    assert_eq!(client.close(), 1, "its gateway was killed");
}

#[test]
fn a_gateway_has_neither_the_directory_nor_the_secrets_of_the_client_that_started_it() {
    let sandbox = sandbox();
    let entry = format!("{}    env: {{ A: \"${{NAMED}}\" }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let start = |named: &str| {
        let mut command = sandbox.command(&["serve", "--stdio"]);
        command.env("NAMED", named).env("AWS_SECRET_ACCESS_KEY", "zzz");
        Stdio::start(command)
    };
    let told = |client: &mut Stdio| {
        let result = client.call("fix__environment", &json!({}));
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let mut first = start("one");
    first.initialize();
    assert_eq!(told(&mut first)["A"], "one");
    let place = Path::new("/proc").join(sandbox.gateway().unwrap().to_string());
    let environment = String::from_utf8_lossy(&std::fs::read(place.join("environ")).unwrap()).into_owned();
    assert!(environment.contains("NAMED=one") && !environment.contains("zzz"), "{environment}");
    assert_eq!(std::fs::read_link(place.join("cwd")).unwrap(), Path::new("/"));

    // Another value is another account: whoever comes with it gets servers of its own.
    let mut second = start("two");
    second.initialize();
    assert_eq!(told(&mut second)["A"], "two");
    assert_eq!(told(&mut first)["A"], "one");
}

#[test]
fn a_changed_configuration_counts_for_the_next_client_and_nobody_else() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut before = sandbox.serve_stdio(&[]);
    before.initialize();
    let gateway = sandbox.gateway();
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "more", "--", &fixture]).exits(0);
    let mut after = sandbox.serve_stdio(&[]);
    after.initialize();
    let shows = |client: &mut Stdio| client.request("tools/list", &json!({})).to_string().contains("more__");
    assert!(!shows(&mut before));
    let status = sandbox.run(&["mcp", "status", "more", "--json"]).exits(0).json();
    assert_eq!(status["servers"][0]["state"], "connected", "{status}");
    echo(&mut before, "undisturbed");
    assert_eq!(sandbox.gateway(), gateway, "one process serves both");
    sandbox.run(&["audit", "verify"]).exits(0);
}

#[test]
fn what_is_wrong_with_the_start_is_told_by_the_client_that_started() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], &format!("{ALLOW}plugins:\n  load:\n    - {{ plugin: ./nothing }}\n"));
    let run = sandbox.run(&["serve", "--stdio"]).exits(2);
    assert!(run.stderr.contains("nothing") && run.stdout.is_empty(), "{run:?}");
    wait_until("what could not start is gone", || sandbox.gateway().is_none());
}

#[test]
fn a_signal_to_the_gateway_ends_its_clients_and_their_calls_with_a_reason() {
    let sandbox = sandbox();
    with_ledger(&sandbox, "", "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let slow = json!({ "name": "fix__slow", "arguments": { "ms": 20_000, "say": "never" } });
    let call = json!({ "jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": slow });
    client.send(&call.to_string());
    wait_until("the call reaches the server", || sandbox.read("ledger").contains("never"));
    sandbox.end_gateway();
    let told: Value = serde_json::from_str(&client.reply_to("900")).unwrap();
    assert!(told.to_string().contains("ended"), "{told}");
    assert_eq!(client.close(), 1);
    sandbox.run(&["audit", "verify"]).exits(0);
}

#[test]
fn gate_reconnect_a_server_that_was_given_up_starts_when_the_operator_asks() {
    let sandbox = sandbox();
    let (broken, starts) = (sandbox.path("broken"), sandbox.path("starts"));
    sandbox.write("broken", "");
    let script = format!(
        "echo x >> {}; test -e {} && exit 1; exec {}",
        starts.display(),
        broken.display(),
        sandbox.fixture().display()
    );
    sandbox.configure(&format!(
        "servers:\n  fix:\n    command: sh\n    args: [\"-c\", {script:?}]\n    restarts: {{ first: 10ms, longest: 20ms, starts: 3, within: 60s }}\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}"
    ));
    let run = sandbox.run(&["mcp", "reconnect", "fix"]).exits(1);
    assert!(run.stderr.contains("no gateway runs"), "{run:?}");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let status = || sandbox.run(&["mcp", "status", "--json"]).exits(0).json()["servers"][0].clone();
    wait_until("the server is given up", || {
        status()["detail"].as_str().is_some_and(|detail| detail.contains("failed too often"))
    });
    let given_up = sandbox.read("starts").lines().count();
    std::fs::remove_file(&broken).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(status()["state"], "failed");
    assert_eq!(sandbox.read("starts").lines().count(), given_up, "it is not started by itself any more");
    let told = sandbox.run(&["mcp", "reconnect", "fix", "--json"]).exits(0).json();
    assert_eq!(told["state"], "connected", "{told}");
    let now = status();
    assert_eq!(
        (&now["state"], &now["era"], &now["detail"]),
        (&json!("connected"), &json!("legacy"), &json!(null))
    );
    assert!(
        now["protocol_version"].is_string() && now["capabilities"].to_string().contains("tools"),
        "{now}"
    );
    echo(&mut client, "for clients too");
    let unknown = sandbox.run(&["mcp", "reconnect", "nothing"]).exits(1);
    assert!(unknown.stderr.contains("no server 'nothing'"), "{unknown:?}");
}

#[test]
fn gate_owner_somebody_else_who_reaches_the_socket_is_turned_away() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mode = |name: &str| {
        let found = std::fs::metadata(sandbox.data().join(name)).unwrap();
        std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o777
    };
    assert_eq!((mode("run"), mode("run/gateway.sock")), (0o700, 0o600));
    // Only the superuser can be somebody else for a moment; to anybody else the modes above are the test.
    let own = Command::new("id").arg("-u").output().unwrap().stdout;
    if String::from_utf8_lossy(&own).trim() != "0" {
        return;
    }
    for (name, bits) in [("", 0o755), ("run", 0o755), ("run/gateway.sock", 0o666)] {
        let path = if name.is_empty() { sandbox.data() } else { sandbox.data().join(name) };
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(bits)).unwrap();
    }
    std::fs::set_permissions(sandbox.dir(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let program = sandbox.write("stranger", std::fs::read(sandbox.fixture()).unwrap());
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ask = |user: u32| {
        let mut command = Command::new(&program);
        command.arg("--greet").arg(sandbox.data().join("run/gateway.sock"));
        std::os::unix::process::CommandExt::uid(&mut command, user);
        String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
    };
    assert!(
        ask(0).contains("refused"),
        "the owner is answered, if only that this is no greeting of a client"
    );
    assert_eq!(ask(65_534), "", "a stranger is told nothing");
    echo(&mut client, "undisturbed");
}

#[test]
fn gate_named_file_clients_beside_a_gateway_are_served_by_the_file_that_it_was_started_with() {
    let sandbox = sandbox();
    let entry = sandbox.fixture_entry("fix", &[]);
    let file = |allow: &str| {
        format!(
            "data_dir: {}\nservers:\n{entry}personas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [{allow}] }}\n",
            sandbox.data().display()
        )
    };
    // The user's own file allows what the one that is named does not.
    std::fs::write(sandbox.config_file(), file("\"mcp.call:*\"")).unwrap();
    let strict = sandbox.write("strict.yaml", file("\"mcp.call:fix/slow\""));
    let with_file = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command.env("TOOLGATE_CONFIG", &strict);
        command
    };
    let mut serving = with_file(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(serving.stderr.take().unwrap());
    assert!(said.lines().map(Result::unwrap).any(|line| line.starts_with("serving MCP on ")));
    let mut client = Stdio::start(with_file(&["serve", "--stdio"]));
    client.initialize();
    let denied = client.call("fix__echo", &json!({ "message": "hi" }));
    assert_eq!(denied.pointer("/_meta/toolgate~1error/code").unwrap(), "denied", "{denied}");
    drop(client);
    serving.kill().unwrap();
    serving.wait().unwrap();
}
