//! The operator is not the agent: what widens needs proof, and an agent with a shell and a terminal
//! does not have it.

use crate::sandbox;

/// What these tests type.
pub(crate) const PIN: &str = "horse-battery-7";

/// A persona that has the fixture without being asked.
const ALLOW_FIX: &str = "    capabilities: { allow: [\"mcp.call:fix\"] }\n";

/// Sets the PIN at a terminal.
pub(crate) fn with_pin(sandbox: &toolgate_e2e::Sandbox) {
    sandbox
        .type_to(&["operator", "init"], &[("New operator PIN: ", PIN), ("The same again: ", PIN)])
        .exits(0);
}

#[test]
fn gate_operator_every_verb_that_widens_needs_the_pin_at_a_terminal() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    sandbox.write("work/toolgate.yaml", "personas: {}\n");
    let before = sandbox.run(&["token", "issue"]).exits(0);
    assert!(before.stderr.contains("could approve itself"), "until a PIN is set it says so: {before:?}");
    with_pin(&sandbox);
    let file = sandbox.config_file().display().to_string();
    let asked = sandbox.run(&["mcp", "call", "fix.echo", "--output", "json"]).exits(3).json();
    let ask = asked["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    sandbox.run(&["mcp", "deny", "fix/big"]).exits(0);
    for verb in WIDENING {
        let mut args = vec!["--config", &file];
        args.extend(verb.iter().map(|word| if word.starts_with("ask_") { ask.as_str() } else { word }));
        // An agent's shell: no terminal, and whatever it sends or sets is no PIN.
        let mut command = sandbox.command(&args);
        command.env("TOOLGATE_PIN", PIN).env("PIN", PIN);
        let refused = sandbox.run_detached(&command, &format!("{PIN}\n{PIN}\n"));
        assert_eq!(refused.code, 3, "{verb:?}: {refused:?}");
        assert!(refused.stderr.contains("terminal"), "{refused:?}");
    }
    let rows = sandbox.audit();
    let refused: Vec<_> =
        rows.iter().filter(|row| row["details"]["event"] == "operator_proof_refused").collect();
    assert_eq!(refused.len(), WIDENING.len(), "each refusal is audited");
    assert_eq!(sandbox.run(&["token", "list", "--json"]).json()["tokens"].as_array().unwrap().len(), 1);
}

/// Every verb of this version that widens what agents may do.
const WIDENING: &[&[&str]] = &[
    &["token", "issue"],
    &["config", "trust"],
    &["mcp", "pin", "fix", "--accept"],
    &["approvals", "grant", "ask_0123456789abcdef"],
    &["mcp", "allow", "fix"],
    &["mcp", "ask", "fix"],
    &["mcp", "forget", "fix/big"],
    &["thaw", "--all"],
    &["operator", "init"],
];

#[test]
fn the_pin_typed_at_a_terminal_opens_and_is_not_shown() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    let issued = sandbox.type_to(&["token", "issue"], &[("Operator PIN: ", PIN)]).exits(0);
    assert!(issued.stdout.contains("acts as persona 'default'"), "what is approved is shown: {issued:?}");
    assert!(!issued.stdout.contains(PIN), "{issued:?}");
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "token_issued").unwrap();
    assert_eq!(row["details"]["proof"], "pin", "{row}");
}

#[test]
fn a_pin_that_is_too_short_is_refused_before_it_is_typed_again() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let short = sandbox.type_to(&["operator", "init"], &[("New operator PIN: ", "1234")]).exits(2);
    assert!(short.stdout.contains("6 to 128 characters"), "{short:?}");
    assert!(!short.stdout.contains("The same again"), "{short:?}");
}

#[test]
fn an_agent_with_a_terminal_that_guesses_is_slowed_down_and_recorded() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    for guess in ["000001", "000002", "000003"] {
        sandbox.type_to(&["token", "issue"], &[("Operator PIN: ", guess)]).exits(3);
    }
    // A new process, the right PIN: it has to wait like any other.
    let waiting = sandbox.at_terminal(&["token", "issue"]).end().exits(3);
    assert!(waiting.stdout.contains("the next attempt counts in"), "{waiting:?}");
    let events = sandbox.events();
    assert_eq!(events.iter().filter(|event| *event == "operator_proof_refused").count(), 4);
}

#[test]
fn a_proof_whose_file_was_taken_away_is_a_refusal_and_no_missing_proof() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    std::fs::remove_file(sandbox.data().join("operator.json")).unwrap();
    let refused = sandbox.run(&["token", "issue"]).exits(5);
    assert!(refused.stderr.contains("its file is gone"), "{refused:?}");
    sandbox.run(&["operator", "init"]).exits(5);
    let doctor = sandbox.run(&["doctor"]).exits(1);
    assert!(doctor.stdout.contains("its file is gone"), "{doctor:?}");
}

#[test]
fn gate_proof_record_a_proof_whose_file_was_replaced_is_a_refusal() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    let file = sandbox.data().join("operator.json");
    let own = std::fs::read(&file).unwrap();
    let forged = r#"{"format":1,"agents_uid":4711,"failures":0,"failed_at_ms":0}"#;
    std::fs::write(&file, forged).unwrap();
    let refused = sandbox.run(&["token", "issue"]).exits(5);
    assert!(refused.stderr.contains("another one than was set"), "{refused:?}");
    std::fs::write(&file, own).unwrap();
    sandbox.type_to(&["token", "issue"], &[("Operator PIN: ", "wrong-guess")]).exits(3);
    // Tries that failed change the file, and not what was set.
    sandbox.type_to(&["token", "issue"], &[("Operator PIN: ", PIN)]).exits(0);
}

#[test]
fn gate_takes_back_a_denial_for_tools_that_read_takes_back_no_wider_word_without_the_operator() {
    const DENY: [&str; 3] = ["mcp", "deny", "fix/echo"];
    const DENY_READING: [&str; 4] = ["mcp", "deny", "fix/echo", "--read-only"];
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW_FIX);
    with_pin(&sandbox);
    let call =
        |code: i32| sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"a"}"#]).exits(code);
    call(0);
    sandbox.run(&DENY).exits(0);
    call(3);
    // `echo` does not say that it only reads, so a narrower denial would set it free.
    sandbox.run_detached(&sandbox.command(&DENY_READING), "").exits(3);
    call(3);
    sandbox.type_to(&["mcp", "ask", "fix/echo"], &[("Operator PIN: ", PIN)]).exits(0);
    sandbox.run_detached(&sandbox.command(&DENY_READING), "").exits(3);
    call(3);
    sandbox.type_to(&DENY_READING, &[("Operator PIN: ", PIN)]).exits(0);
    call(0);
}

#[test]
fn gate_linked_a_data_directory_that_borrows_the_state_of_another_answers_nothing() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    let asked = sandbox.run(&["mcp", "call", "fix.echo", "--output", "json"]).exits(3).json();
    let ask = asked["_meta"]["toolgate/error"]["ask"].as_str().unwrap().to_owned();
    let state = sandbox.data().join("state.db");
    for (name, hard) in [("soft", false), ("hard", true)] {
        let other = sandbox.path(name);
        std::fs::create_dir(&other).unwrap();
        if hard {
            std::fs::hard_link(&state, other.join("state.db")).unwrap();
        } else {
            std::os::unix::fs::symlink(&state, other.join("state.db")).unwrap();
        }
        let borrowed = std::fs::read_to_string(sandbox.config_file())
            .unwrap()
            .replace(&sandbox.data().display().to_string(), &other.display().to_string());
        assert!(borrowed.contains(&other.display().to_string()), "{borrowed}");
        let config = sandbox.write(&format!("{name}.yaml"), borrowed);
        let command = sandbox.command(&["--config", &config, "approvals", "grant", &ask, "--for", "persona"]);
        let refused = sandbox.run_detached(&command, "").exits(5);
        assert!(refused.stderr.contains("it is a link"), "{refused:?}");
        std::fs::remove_file(other.join("state.db")).unwrap();
    }
    sandbox.run(&["mcp", "call", "fix.echo"]).exits(3);
}

#[test]
fn freezes_that_fill_the_list_push_none_out_and_leave_room_for_one_of_everything() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], ALLOW_FIX);
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"a"}"#]).exits(0);
    let state = rusqlite::Connection::open(sandbox.data().join("state.db")).unwrap();
    let fill = |from: u32, to: u32| {
        for number in from..to {
            let name = format!("a{number:05}");
            state.execute("INSERT INTO frozen VALUES ('plugin', ?1, 'r', 'me', 0)", [&name]).unwrap();
        }
    };
    fill(0, 998);
    sandbox.run(&["freeze", "--server", "fix", "--reason", "r"]).exits(0);
    let refused = sandbox.run(&["freeze", "--plugin", "b/b", "--reason", "r"]).exits(1);
    assert!(refused.stderr.contains("999 freezes are kept"), "{refused:?}");
    let rows: Vec<_> =
        sandbox.audit().into_iter().filter(|row| row["details"]["event"] == "frozen").collect();
    assert_eq!(rows.len(), 1, "what was refused was not done, and no row says that it was: {rows:?}");
    sandbox.run(&["mcp", "call", "fix.echo"]).exits(3);
    sandbox.run(&["freeze", "--all", "--reason", "r"]).exits(0);
    // More than can be read: what was left out could be the server's.
    fill(998, 1_100);
    let refused = sandbox.run(&["mcp", "call", "fix.echo"]).exits(3);
    assert!(
        refused.stdout.contains("cannot be read") || refused.stderr.contains("cannot be read"),
        "{refused:?}"
    );
}

#[test]
fn trusting_a_file_asks_the_users_own_operator_and_not_the_one_it_names() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    with_pin(&sandbox);
    // A repository brings a configuration with a data directory that nobody set a PIN for.
    let elsewhere = sandbox.path("elsewhere").display().to_string();
    sandbox.write("work/toolgate.yaml", format!("data_dir: {elsewhere}\n"));
    let command = sandbox.command(&["config", "trust"]);
    let refused = sandbox.run_detached(&command, "");
    assert_eq!(refused.code, 3, "{refused:?}");
}

#[test]
fn doctor_status_and_quickstart_say_that_nothing_proves_the_operator() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let told = "could approve itself";
    assert!(sandbox.run(&["doctor"]).stdout.contains(told));
    assert!(sandbox.run(&["mcp", "status"]).stderr.contains(told));
    let quickstart = sandbox.run(&["quickstart", "--dir", &sandbox.path("quick").display().to_string()]);
    assert!(quickstart.stdout.contains(told), "{quickstart:?}");
    with_pin(&sandbox);
    assert!(!sandbox.run(&["doctor"]).exits(0).stdout.contains(told));
}

// FR-29
#[test]
fn a_file_in_servers_d_that_toolgate_did_not_write_opens_nothing_until_the_operator_accepts_it() {
    let sandbox = sandbox();
    sandbox.configure("personas:\n  default:\n    capabilities: { allow: [\"mcp.call:*\"] }\n");
    let fixture = sandbox.fixture().display().to_string();
    sandbox.run(&["mcp", "add", "mine", "--", &fixture]).exits(0);
    let call = |server: &str| {
        sandbox.run(&["mcp", "call", &format!("{server}.echo"), "--json", r#"{"message":"a"}"#])
    };
    call("mine").exits(0);
    with_pin(&sandbox);
    // An agent with a shell writes a server of its own, and edits the one that is there.
    let evil = format!(
        "format: 1\ntransport: stdio\ncommand: {fixture}\nargs: []\nbind: [default]\ntrust: {{ auto_approve_tools: [echo] }}\n"
    );
    sandbox.write("data/servers.d/evil.yaml", &evil);
    let told = call("evil").exits(1);
    assert!(told.stderr.contains("was not written by Toolgate"), "{told:?}");
    let path = sandbox.data().join("servers.d/mine.yaml");
    let edited = std::fs::read_to_string(&path).unwrap() + "trust: { auto_approve_tools: [big] }\n";
    std::fs::write(&path, edited).unwrap();
    call("mine").exits(1);
    // Not even with a terminal: it does not know the PIN.
    sandbox.run_detached(&sandbox.command(&["mcp", "pin", "evil", "--accept"]), "").exits(3);
    sandbox.type_to(&["mcp", "pin", "mine", "--accept"], &[("Operator PIN: ", "guessed it")]).exits(3);
    call("mine").exits(1);
    let refused = sandbox.events().iter().filter(|event| *event == "operator_proof_refused").count();
    assert_eq!(refused, 2, "each attempt is in the log");
    let accepted = sandbox.type_to(&["mcp", "pin", "mine", "--accept"], &[("Operator PIN: ", PIN)]).exits(0);
    assert!(accepted.stdout.contains("auto_approve_tools"), "what is accepted is shown: {accepted:?}");
    call("mine").exits(0);
    call("evil").exits(1);
    // With `managed: off` no file there counts, whoever wrote it.
    sandbox.configure("managed: off\n");
    let listed = sandbox.run(&["mcp", "list", "--json"]).exits(0);
    assert!(!listed.stdout.contains("evil") && !listed.stdout.contains("mine"), "{listed:?}");
}
