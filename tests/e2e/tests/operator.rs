//! The operator is not the agent: what widens needs proof, and an agent with a shell and a terminal
//! does not have it.

use crate::sandbox;

const PIN: &str = "horse-battery-7";

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
    for verb in WIDENING {
        let mut args = vec!["--config", &file];
        args.extend(*verb);
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
const WIDENING: &[&[&str]] =
    &[&["token", "issue"], &["config", "trust"], &["mcp", "pin", "fix", "--accept"], &["operator", "init"]];

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
