//! As whom an agent acts: which servers exist for a persona, with its skills, in a lane.

use std::os::unix::fs::symlink;

use serde_json::json;
use toolgate_e2e::{Sandbox, Stdio};

use crate::sandbox;

/// The servers whose tools a client sees, each once.
fn servers_of(client: &mut Stdio) -> Vec<String> {
    let names = client.tool_names();
    let mut servers: Vec<String> =
        names.iter().filter_map(|name| name.split_once("__")).map(|(server, _)| server.to_owned()).collect();
    servers.sort();
    servers.dedup();
    servers
}

/// The servers of a client that starts with these arguments.
fn seen_with(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let mut client = sandbox.serve_stdio(args);
    client.initialize();
    servers_of(&mut client)
}

/// A server file of a skill that starts the fixture.
fn server_file(sandbox: &Sandbox, skill: &str, name: &str, description: &str) -> String {
    let body = json!({ "command": sandbox.fixture(), "description": description });
    sandbox.write(&format!("config/toolgate/skills/{skill}/mcp/{name}.json"), body.to_string())
}

// FT-14
#[test]
fn scp_001_scp_003_scp_005_each_persona_has_its_own_servers_and_sees_no_others() {
    let sandbox = sandbox();
    sandbox.configure(&format!(
        "servers:\n{}{}personas:\n  researcher: {{ servers: [search] }}\n  coder: {{ servers: [forge] }}\n",
        sandbox.fixture_entry("search", &[]),
        sandbox.fixture_entry("forge", &[]),
    ));
    assert_eq!(seen_with(&sandbox, &["--persona", "researcher"]), ["search"]);
    assert_eq!(seen_with(&sandbox, &["--persona", "coder"]), ["forge"]);
    assert_eq!(seen_with(&sandbox, &[]), [""; 0], "and `default` has none of them");
}

#[test]
fn scp_006_scp_007_the_servers_of_an_enabled_skill_are_bound_to_that_persona_alone() {
    let sandbox = sandbox();
    server_file(&sandbox, "triage", "tracker", "issues");
    server_file(&sandbox, "triage", "wiki", "pages");
    sandbox.configure(
        "skills:\n  triage: { directory: skills/triage }\npersonas:\n  helper: { skills: [triage] }\n  other: {}\n",
    );
    assert_eq!(seen_with(&sandbox, &["--persona", "helper"]), ["tracker", "wiki"], "every file");
    assert_eq!(seen_with(&sandbox, &["--persona", "other"]), [""; 0]);
    sandbox.configure("skills:\n  triage: { directory: skills/triage }\n");
    assert_eq!(seen_with(&sandbox, &[]), [""; 0], "a skill that nobody enabled brings nothing");
}

#[test]
fn gate_lane_scp_012_to_scp_016_a_lane_has_the_servers_of_the_skills_its_model_can_read() {
    let sandbox = sandbox();
    let entries: String = ["own", "any", "main", "job"].map(|name| sandbox.fixture_entry(name, &[])).concat();
    sandbox.configure(&format!(
        "servers:\n{entries}skills:\n  a: {{ servers: [any, own] }}\n  b: {{ servers: [main], runtime: main }}\n  c: {{ servers: [job], runtime: background_job }}\npersonas:\n  default: {{ servers: [own], skills: [a, b, c] }}\n"
    ));
    assert_eq!(seen_with(&sandbox, &[]), ["any", "main", "own"]);
    assert_eq!(seen_with(&sandbox, &["--lane", "background_job"]), ["any", "job", "own"]);
    assert_eq!(seen_with(&sandbox, &["--lane", "automation"]), ["any", "job", "main", "own"], "no filter");
    let mut main = sandbox.serve_stdio(&[]);
    main.initialize();
    let call = |name: &str| json!({ "name": name, "arguments": { "message": "hi" } });
    let other_lane = main.request("tools/call", &call("job__echo"));
    let unknown = main.request("tools/call", &call("nobodys__echo"));
    assert_eq!(other_lane["error"]["code"], unknown["error"]["code"], "{other_lane}");
    let listed = sandbox.run(&["mcp", "tools", "--lane", "background_job", "--json"]).exits(0);
    assert!(listed.stdout.contains("job__echo") && !listed.stdout.contains("main__echo"), "{listed:?}");
    sandbox.run(&["serve", "--stdio", "--lane", "sideways"]).exits(2);
}

#[test]
fn a_lane_comes_from_the_credential_and_a_client_that_claims_another_is_refused() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&[], "");
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let claimed = client.request("tools/list", &json!({ "_meta": { "toolgate/lane": "automation" } }));
    assert!(claimed["error"]["message"].as_str().unwrap().contains("lane"), "{claimed}");
    let agreed = client.request("tools/list", &json!({ "_meta": { "toolgate/lane": "main" } }));
    assert!(agreed.get("result").is_some(), "{agreed}");
}

// FR-51
#[test]
fn scp_017_a_skill_that_is_disabled_is_gone_from_the_next_run() {
    let sandbox = sandbox();
    server_file(&sandbox, "triage", "tracker", "issues");
    let with =
        "skills:\n  triage: { directory: skills/triage }\npersonas:\n  default: { skills: [triage] }\n";
    sandbox.configure(with);
    let mut running = sandbox.serve_stdio(&[]);
    running.initialize();
    assert_eq!(servers_of(&mut running), ["tracker"]);
    sandbox.configure(&with.replace("skills: [triage]", "skills: []"));
    assert_eq!(seen_with(&sandbox, &[]), [""; 0], "the next run has it no more");
    assert_eq!(servers_of(&mut running), ["tracker"], "and the one that runs keeps what it began with");
}

#[test]
fn ded_002_ded_003_a_server_of_two_skills_is_one_where_both_agree_and_an_error_where_they_do_not() {
    let sandbox = sandbox();
    server_file(&sandbox, "one", "tracker", "issues");
    server_file(&sandbox, "two", "tracker", "issues");
    let yaml = "skills:\n  one: { directory: skills/one }\n  two: { directory: skills/two }\npersonas:\n  default: { skills: [one, two] }\n";
    sandbox.configure(yaml);
    assert_eq!(seen_with(&sandbox, &[]), ["tracker"]);
    server_file(&sandbox, "two", "tracker", "other issues");
    let refused = sandbox.run(&["config", "check"]).exits(2);
    let says = |text: &str| refused.stderr.contains(text);
    assert!(says("skills/one/mcp/tracker.json") && says("skills/two/mcp/tracker.json"), "{refused:?}");
    assert!(says("neither is taken"), "{refused:?}");
    sandbox.run(&["serve", "--stdio"]).exits(2);
}

#[test]
fn a_skill_file_that_cannot_be_used_is_named_and_never_skipped() {
    let sandbox = sandbox();
    server_file(&sandbox, "triage", "good", "issues");
    sandbox.configure(
        "skills:\n  triage: { directory: skills/triage }\npersonas:\n  default: { skills: [triage] }\n",
    );
    let bad = "config/toolgate/skills/triage/mcp/bad.json";
    for (text, said) in
        [("{ \"command\": ", "bad.json:1"), ("{ \"comand\": \"x\" }", "comand"), ("[]", "a map")]
    {
        sandbox.write(bad, text);
        let refused = sandbox.run(&["config", "check"]).exits(2);
        assert!(refused.stderr.contains("bad.json") && refused.stderr.contains(said), "{text}: {refused:?}");
    }
    std::fs::remove_file(sandbox.path(bad)).unwrap();
    sandbox.write("elsewhere.json", "{ \"command\": \"true\" }");
    symlink(sandbox.path("elsewhere.json"), sandbox.path(bad)).unwrap();
    let refused = sandbox.run(&["config", "check"]).exits(2);
    assert!(refused.stderr.contains("leaves the directory"), "{refused:?}");
}

#[test]
fn cfg_020_a_skill_has_at_most_64_servers() {
    let sandbox = sandbox();
    for number in 0..64 {
        server_file(&sandbox, "many", &format!("s{number:02}"), "one of many");
    }
    sandbox.configure("skills:\n  many: { directory: skills/many }\n");
    sandbox.run(&["config", "check"]).exits(0);
    server_file(&sandbox, "many", "s64", "one too many");
    let refused = sandbox.run(&["config", "check"]).exits(2);
    assert!(refused.stderr.contains("at most 64"), "{refused:?}");
}

#[test]
fn a_skill_that_is_named_and_not_there_stops_the_start_with_its_line() {
    let sandbox = sandbox();
    sandbox.configure("skills:\n  triage: {}\npersonas:\n  default: { skills: [triag] }\n");
    let refused = sandbox.run(&["config", "check"]).exits(2);
    assert!(refused.stderr.contains("toolgate.yaml:6") && refused.stderr.contains("`triage`"), "{refused:?}");
}

#[test]
fn trust_in_a_file_of_the_working_directory_does_not_reach_the_files_of_its_skills() {
    let sandbox = sandbox();
    sandbox.write("work/skills/evil/mcp/evil.json", "{ \"command\": \"true\" }");
    sandbox.write(
        "work/toolgate.yaml",
        format!("data_dir: {}\nskills:\n  evil: {{ directory: skills/evil }}\n", sandbox.data().display()),
    );
    sandbox.run(&["config", "trust"]).exits(0);
    let refused = sandbox.run(&["config", "check"]).exits(2);
    assert!(refused.stderr.contains("`config trust` covers this file"), "{refused:?}");
}
