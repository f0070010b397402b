//! What the command line says to somebody who made a slip, or who waits for something.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::sandbox;

#[test]
fn a_mistyped_server_is_told_with_the_one_that_was_meant() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    for args in [
        &["mcp", "get", "fxi"][..],
        &["mcp", "status", "fxi"],
        &["mcp", "tools", "fxi"],
        &["mcp", "diff", "fxi"],
        &["mcp", "reconnect", "fxi"],
        &["mcp", "remove", "fxi"],
        &["logs", "fxi"],
        &["serve", "--stdio", "--server", "fxi"],
        &["serve", "--stdio", "--servers", "fix,fxi"],
    ] {
        let run = sandbox.run(args).exits(1);
        assert!(run.stderr.contains("there is no server 'fxi'"), "{args:?}: {run:?}");
        assert!(run.stderr.contains("did you mean 'fix'?"), "{args:?}: {run:?}");
    }
    let far = sandbox.run(&["mcp", "get", "something-else"]).exits(1);
    assert!(far.stderr.contains("toolgate mcp list") && !far.stderr.contains("did you mean"), "{far:?}");
}

#[test]
fn a_server_that_a_persona_does_not_see_is_told_apart_from_one_that_nobody_has() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "  other: {}\n");
    let run = sandbox.run(&["mcp", "status", "fix", "--persona", "other"]).exits(1);
    assert!(run.stderr.contains("persona 'other' is not bound to server 'fix'"), "{run:?}");
    assert!(run.stderr.contains("personas.other.servers"), "{run:?}");
}

#[test]
fn the_beginning_of_no_event_is_refused_instead_of_showing_nothing() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["mcp", "status"]).exits(0);
    let run = sandbox.run(&["audit", "tail", "--filter", "mcp_caled"]).exits(2);
    assert!(run.stderr.contains("did you mean 'mcp_called'?"), "{run:?}");
    sandbox.run(&["audit", "tail", "--filter", "mcp_"]).exits(0);
    let none = sandbox.run(&["audit", "query", "--server", "nobody"]).exits(0);
    assert!(none.stdout.is_empty() && none.stderr.contains("no row matches"), "{none:?}");
}

#[test]
fn loads_of_plugins_are_one_line_of_the_tail_unless_they_are_asked_for() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["mcp", "tools"]).exits(0);
    sandbox.run(&["mcp", "explain", "fix.echo"]).exits(0);
    let folded = sandbox.run(&["audit", "tail", "-n", "1000"]).exits(0).stdout;
    let loads = |text: &str| text.lines().filter(|line| line.contains("plugin_loaded")).count();
    let each =
        loads(&sandbox.run(&["audit", "tail", "-n", "1000", "--filter", "plugin_loaded"]).exits(0).stdout);
    assert!(each >= 8, "two commands with the default bundle each: {each}");
    assert!(folded.contains("loads of plugins") && loads(&folded) < each / 2, "{folded}");
    let newest = sandbox.run(&["audit", "tail", "-n", "2"]).exits(0).stdout;
    assert_eq!(newest.lines().count(), 2, "{newest}");
    assert!(folded.trim_end().ends_with(newest.trim_end()), "the newest lines of the same: {newest}");
}

#[test]
fn arguments_that_are_no_json_come_with_the_way_to_write_them() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    for given in ["{path:.}", "[1]"] {
        let run = sandbox.run(&["mcp", "call", "fix.echo", "--json", given]).exits(2);
        assert!(run.stderr.contains(r#"--json '{"path":"."}'"#), "{run:?}");
    }
}

#[test]
fn an_address_that_cannot_be_added_is_not_called_a_command() {
    let sandbox = sandbox();
    sandbox.configure("");
    let run = sandbox.run(&["mcp", "add", "gone", "http://127.0.0.1:9/mcp"]).exits(1);
    assert!(run.stderr.contains("correct its address"), "{run:?}");
    assert!(run.stderr.contains("nothing was added") && run.stderr.contains("--no-probe"), "{run:?}");
}

#[test]
fn a_failure_to_connect_is_said_once_where_the_command_says_it_itself() {
    let sandbox = sandbox();
    sandbox.configure("");
    let run = sandbox.run(&["mcp", "add", "gone", "--", "no-such-command-anywhere"]).exits(1);
    assert_eq!(run.stderr.matches("no-such-command-anywhere").count(), 1, "{run:?}");
    let status = "servers:\n  gone: { command: no-such-command-anywhere }\npersonas:\n  default: { servers: [gone] }\n";
    sandbox.configure(status);
    let run = sandbox.run(&["mcp", "status"]).exits(0);
    assert!(
        run.stdout.contains("no-such-command-anywhere") && !run.stderr.contains("cannot connect"),
        "{run:?}"
    );
    let tools = sandbox.run(&["mcp", "tools"]).exits(0);
    assert!(tools.stderr.contains("cannot connect"), "an empty list alone would not say why: {tools:?}");
}

#[test]
fn a_password_in_a_url_gets_one_advice_from_the_configuration_and_from_the_connection() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  far: { url: \"http://me:hunter2@127.0.0.1:9/mcp\" }\npersonas:\n  default: { servers: [far] }\n",
    );
    let advice = "headers: { Authorization: \"${NAME}\" }";
    let checked = sandbox.run(&["config", "check"]).exits(0);
    let status = sandbox.run(&["mcp", "status"]).exits(0);
    for told in [format!("{}{}", checked.stdout, checked.stderr), status.stdout] {
        assert!(told.contains(advice) && !told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_log_that_nobody_wrote_to_is_told() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let own = sandbox.run(&["logs", "--self"]).exits(0);
    assert!(own.stdout.is_empty() && own.stderr.contains("gateway.log"), "{own:?}");
    let server = sandbox.run(&["logs", "fix"]).exits(0);
    assert!(server.stdout.is_empty() && server.stderr.contains("started when it is needed"), "{server:?}");
}

#[test]
fn serve_says_where_agents_come_in_and_refuses_an_address_that_is_taken() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let mut serving = sandbox
        .command(&["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(serving.stderr.take().unwrap());
    let line = said.lines().map(Result::unwrap).find(|line| line.starts_with("serving MCP on ")).unwrap();
    let address = line.split("http://").nth(1).unwrap().split("/mcp").next().unwrap().to_owned();
    assert!(std::net::TcpStream::connect(&address).is_ok(), "{line}");
    assert!(line.contains(&sandbox.data().join("token").display().to_string()), "{line}");

    let other = crate::sandbox();
    other.configure_fixture(&[], "");
    let refused = other.run(&["serve", "--listen", &address]).exits(2);
    assert!(refused.stderr.contains(&address) && refused.stderr.contains("--listen"), "{refused:?}");
    assert!(!other.events().contains(&"mcp_initialized".to_owned()), "no server was started for it");
    serving.kill().unwrap();
    serving.wait().unwrap();
}

#[test]
fn init_and_lock_check_print_json_for_programs() {
    let sandbox = sandbox();
    let init = sandbox.run(&["init", "--json"]).exits(0).json();
    assert_eq!(init["config"], sandbox.config_file().display().to_string());
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["lock", "update"]).exits(0);
    let checked = sandbox.run(&["lock", "check", "--offline", "--json"]).exits(0).json();
    assert_eq!(checked["ok"], true);
    sandbox.run(&["lock", "check", "--json", "--format", "sarif"]).exits(2);
}
