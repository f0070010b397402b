//! Files of the data directory that are gone: each decision has a witness left, and nothing is opened.

use std::fs;

use serde_json::{Value, json};
use toolgate_e2e::Sandbox;

use crate::operator::{PIN, with_pin};
use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";
const TWO: &str = r#"[{"name":"echo","description":"one","inputSchema":{"type":"object"}},{"name":"big","description":"two","inputSchema":{"type":"object"}}]"#;

/// One server with two tools, pinned.
fn pinned() -> Sandbox {
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TWO);
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    sandbox.run(&ECHO).exits(0);
    sandbox
}

fn delete(sandbox: &Sandbox, names: &[&str]) {
    for name in names {
        let path = sandbox.data().join(name);
        let _ = fs::remove_file(&path);
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(sandbox.data().join(format!("{name}{suffix}")));
        }
    }
}

fn called(sandbox: &Sandbox) -> usize {
    sandbox.audit().iter().filter(|row| row["details"]["event"] == "mcp_called").count()
}

// PI-05
#[test]
fn gate_lost_pi_05_a_deleted_state_takes_no_freeze_denial_or_pin_away_and_comes_back_by_the_operator() {
    let sandbox = pinned();
    with_pin(&sandbox);
    sandbox.run(&["mcp", "deny", "fix/big"]).exits(0);
    sandbox.run(&["freeze", "--server", "fix", "--reason", "it misbehaved"]).exits(0);
    let before = called(&sandbox);
    delete(&sandbox, &["state.db", "pins.known"]);
    sandbox.write("tools.json", TWO.replace("one", "once"));
    // Nothing is served, nothing is made anew, and each says how to go on.
    for args in [&ECHO[..], &["mcp", "status"], &["freeze"], &["mcp", "pin", "fix"]] {
        let refused = sandbox.run(args).exits(5);
        for part in ["audit.db has rows", "toolgate operator recover"] {
            assert!(refused.stderr.contains(part), "{part}: {refused:?}");
        }
    }
    let agent = sandbox.run_detached(&sandbox.command(&["operator", "recover"]), "");
    assert_eq!(agent.code, 3, "{agent:?}");
    sandbox.run(&ECHO).exits(5);

    let told = sandbox.type_to(&["operator", "recover"], &[("Operator PIN: ", PIN)]).exits(0);
    assert!(told.stdout.contains("1 freeze") && told.stdout.contains("mcp pin fix --accept"), "{told:?}");
    let frozen = sandbox.run(&ECHO).exits(3);
    assert!(frozen.stderr.contains("it misbehaved"), "{frozen:?}");
    sandbox.type_to(&["thaw", "--server", "fix"], &[("Operator PIN: ", PIN)]).exits(0);
    // The changed tool is no first use, and neither is the other.
    let refused = sandbox.run(&ECHO).exits(3);
    assert!(refused.stderr.contains("mcp pin fix --accept"), "{refused:?}");
    assert_eq!(called(&sandbox), before, "nothing was sent");
    let shown = sandbox.run(&["mcp", "diff", "fix"]).exits(5);
    assert!(shown.stdout.contains("once"), "what would be accepted is shown: {shown:?}");
    sandbox.type_to(&["mcp", "pin", "fix", "--accept"], &[("Operator PIN: ", PIN)]).exits(0);
    sandbox.run(&ECHO).exits(0);
    let denied = sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(3);
    assert!(denied.stderr.contains("beforehand"), "{denied:?}");
    assert!(sandbox.events().contains(&"state_recovered".to_owned()));
    let again = sandbox.type_to(&["operator", "recover"], &[("Operator PIN: ", PIN)]).exits(1);
    assert!(again.stdout.contains("nothing was recovered"), "{again:?}");
}

// PI-05
#[test]
fn gate_third_witness_pi_05_a_server_that_the_audit_log_pinned_is_no_first_use_whatever_else_is_gone() {
    for sealed in [false, true] {
        let sandbox = pinned();
        if sealed {
            sandbox.run(&["audit", "archive", "--before", "2100-01-01"]).exits(0);
            // Segments may be taken elsewhere: what they said and still counts was said again.
            fs::rename(sandbox.data().join("audit-archive"), sandbox.path("elsewhere")).unwrap();
        }
        let state = rusqlite::Connection::open(sandbox.data().join("state.db")).unwrap();
        state.execute_batch("DELETE FROM pins; DELETE FROM known_servers").unwrap();
        drop(state);
        delete(&sandbox, &["pins.known"]);
        sandbox.write("tools.json", TWO.replace("one", "once"));
        let refused = sandbox.run(&ECHO).exits(3);
        assert!(refused.stderr.contains("mcp pin fix --accept"), "{refused:?}");
        let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
        let pinned = status["servers"][0]["pinned"].as_str().unwrap();
        assert!(pinned.contains("server_pinned"), "{pinned}");
        // Adding it again is no way around, since that asks for no proof.
        let fixture = sandbox.fixture().display().to_string();
        sandbox.configure("personas: {}\n");
        let added = sandbox.run(&["mcp", "add", "fix", "--", &fixture]).exits(0);
        assert!(added.stdout.contains("blocked"), "{added:?}");
    }
}

#[test]
fn gate_sealed_proof_the_operators_proof_is_remembered_across_the_cut_and_without_the_segments() {
    let sandbox = pinned();
    with_pin(&sandbox);
    sandbox.run(&["audit", "archive", "--before", "2100-01-01"]).exits(0);
    let file = sandbox.data().join("operator.json");
    let own = fs::read(&file).unwrap();
    let forged = r#"{"format":1,"agents_uid":4711,"failures":0,"failed_at_ms":0}"#;
    for elsewhere in [false, true] {
        if elsewhere {
            fs::rename(sandbox.data().join("audit-archive"), sandbox.path("elsewhere")).unwrap();
        }
        fs::write(&file, forged).unwrap();
        let refused = sandbox.run(&["token", "issue"]).exits(5);
        assert!(refused.stderr.contains("another one than was set"), "{refused:?}");
        fs::remove_file(&file).unwrap();
        let refused = sandbox.run(&["token", "issue"]).exits(5);
        assert!(refused.stderr.contains("its file is gone"), "{refused:?}");
        fs::write(&file, &own).unwrap();
        sandbox.type_to(&["token", "issue"], &[("Operator PIN: ", PIN)]).exits(0);
    }
}

#[test]
fn gate_log_gone_without_its_audit_log_nobody_is_taken_for_the_operator() {
    let sandbox = pinned();
    with_pin(&sandbox);
    delete(&sandbox, &["audit.db", "operator.json"]);
    let refused = sandbox.run(&["token", "issue"]).exits(5);
    assert!(refused.stderr.contains("audit.heads tells of rows"), "{refused:?}");
    // The way that docs/operators.md tells is the only one.
    delete(&sandbox, &["audit.heads"]);
    with_pin(&sandbox);
}

#[test]
fn gate_state_taken_a_gateway_whose_state_is_taken_away_while_it_runs_lets_nothing_pass() {
    let sandbox = pinned();
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    assert_eq!(code(&client.call("fix__echo", &json!({ "message": "a" }))), "none");
    delete(&sandbox, &["state.db"]);
    let deadline = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    loop {
        let said = client.call("fix__echo", &json!({ "message": "a" }));
        if code(&said) == "denied" {
            assert!(said.to_string().contains("toolgate operator recover"), "{said}");
            break;
        }
        assert!(std::time::Instant::now() < deadline, "it goes on with what nobody else sees: {said}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    // It holds the lost state, so it has to end before there is another.
    let refused = sandbox.run(&["operator", "recover"]).exits(1);
    assert!(refused.stderr.contains("serves this data directory"), "{refused:?}");
}

fn code(reply: &Value) -> &str {
    reply.pointer("/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

#[test]
fn a_backup_that_is_put_back_whole_is_what_it_was() {
    let sandbox = pinned();
    sandbox.run(&["mcp", "deny", "fix/big"]).exits(0);
    let copy = sandbox.path("backup");
    fs::create_dir(&copy).unwrap();
    for name in ["audit.db", "audit.heads", "state.db", "pins.known"] {
        fs::copy(sandbox.data().join(name), copy.join(name)).unwrap();
    }
    sandbox.run(&["mcp", "allow", "fix/big"]).exits(0);
    delete(&sandbox, &["audit.db", "audit.heads", "state.db", "pins.known"]);
    for name in ["audit.db", "audit.heads", "state.db", "pins.known"] {
        fs::copy(copy.join(name), sandbox.data().join(name)).unwrap();
    }
    sandbox.run(&ECHO).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(3);
    sandbox.run(&["audit", "verify"]).exits(0);
}
