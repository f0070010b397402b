//! What the operator is told of an entry that does nothing, or not what it seems to do.

use serde_json::json;

use crate::sandbox;

#[test]
fn tru_003_trb_005_a_name_that_no_tool_has_approves_nothing_and_is_told_with_those_that_there_are() {
    let sandbox = sandbox();
    let entry = format!(
        "{}    trust: {{ auto_approve_tools: [fix__echo, fix__ehco] }}\n    tools: {{ deny: [biig] }}\n",
        sandbox.fixture_entry("fix", &[])
    );
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n"));
    let run = sandbox.run(&["mcp", "tools"]).exits(0);
    let line = |name: &str| {
        run.stderr
            .lines()
            .find(|line| line.contains(&format!("`{name}`")))
            .unwrap_or_else(|| panic!("{run:?}"))
    };
    for part in
        ["trust.auto_approve_tools", "inert", "approves nothing", "<server>__<tool>", "fix__echo", "fix__big"]
    {
        assert!(line("fix__ehco").contains(part), "{part}: {run:?}");
    }
    assert!(line("biig").contains("tools.deny") && line("biig").contains("denies nothing"), "{run:?}");
    assert!(!run.stderr.contains("`fix__echo`"), "a name that a tool has is not told: {run:?}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#]).exits(3);
}

#[test]
fn ded_001_trb_006_a_second_entry_of_one_url_is_skipped_and_told_with_both_names() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  one:\n    url: http://127.0.0.1:9/mcp\n  two:\n    url: http://127.0.0.1:9/mcp\npersonas:\n  default:\n    servers: [one, two]\n",
    );
    let check = sandbox.run(&["config", "check"]).exits(0);
    assert!(
        check.stdout.contains("servers one and two") && check.stdout.contains("two is skipped"),
        "{check:?}"
    );
    let shown = sandbox.run(&["config", "show", "--json"]).exits(0).json();
    assert_eq!(shown["personas"]["default"]["servers"], json!(["one"]));
    assert!(
        sandbox.run(&["mcp", "tools"]).stderr.contains("servers one and two"),
        "whoever serves is told too"
    );
}

#[test]
fn sec_006_config_env_names_every_variable_its_source_and_what_is_missing() {
    let sandbox = sandbox();
    let env = "    env: { A_TOKEN: \"${A_TOKEN}\", REGION: \"${REGION:-eu}\", OTHER: \"${OTHER}\" }\n";
    let entry = format!("{}{env}", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n"));
    let variables = [("OTHER", "value-of-other")];
    let run = sandbox.run_with(&["config", "env", "--json"], "", &variables).exits(2);
    let told: serde_json::Value = serde_json::from_str(run.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(told["missing"], json!(["A_TOKEN"]));
    let source = |name: &str| {
        let all = told["variables"].as_array().unwrap();
        all.iter().find(|variable| variable["name"] == name).unwrap()["source"].clone()
    };
    assert_eq!((source("OTHER"), source("REGION")), (json!("environment"), json!("default")));
    assert!(source("A_TOKEN").is_null());
    assert!(!run.stdout.contains("value-of-other"), "{run:?}");
    assert!(run.stderr.contains("A_TOKEN") && run.stderr.contains("secret set"), "{run:?}");
    sandbox.run_with(&["secret", "set", "A_TOKEN"], "value-of-token", &[]).exits(0);
    let run = sandbox.run_with(&["config", "env"], "", &variables).exits(0);
    assert!(run.stdout.contains("secrets.env") && !run.stdout.contains("value-of"), "{run:?}");
}
