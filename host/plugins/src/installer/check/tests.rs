//! Plans that say too much, or too little.

use super::*;

fn plan(launch: Launch) -> Plan {
    Plan {
        id: "io.github.acme/notes".to_owned(),
        version: Some("1.2.3".to_owned()),
        suggested_name: "notes".to_owned(),
        runtime: Some("npx".to_owned()),
        artifacts: Vec::new(),
        launch,
        warnings: Vec::new(),
    }
}

fn literal(text: &str) -> Value {
    Value::Literal(text.to_owned())
}

fn binding(name: &str, value: Value) -> Binding {
    Binding { name: name.to_owned(), value, description: String::new(), required: true }
}

fn command(change: impl FnOnce(&mut CommandLine)) -> Plan {
    let mut command = CommandLine {
        program: "npx".to_owned(),
        arguments: vec![literal("-y"), literal("@acme/notes@1.2.3")],
        environment: vec![binding("NOTES_KEY", Value::Secret("NOTES_KEY".to_owned()))],
    };
    change(&mut command);
    plan(Launch::Stdio(command))
}

fn remote(change: impl FnOnce(&mut Endpoint)) -> Plan {
    let mut endpoint = Endpoint {
        transport: "streamable-http".to_owned(),
        url: "https://notes.example/mcp".to_owned(),
        headers: vec![binding("Authorization", Value::Secret("NOTES_KEY".to_owned()))],
    };
    change(&mut endpoint);
    plan(Launch::Http(endpoint))
}

fn fetched(change: impl FnOnce(&mut Artifact)) -> Plan {
    let mut artifact = Artifact {
        url: "https://notes.example/notes".to_owned(),
        digest: format!("sha256:{}", "0".repeat(64)),
        size: None,
        path: "bin/notes".to_owned(),
    };
    change(&mut artifact);
    Plan { artifacts: vec![artifact], ..command(|_| ()) }
}

#[track_caller]
fn refused(plan: &Plan, word: &str) {
    let why = check(plan).unwrap_err();
    assert!(why.contains(word), "`{word}` is not in: {why}");
}

#[test]
fn a_plan_that_could_be_an_entry_passes() {
    for good in [command(|_| ()), remote(|_| ()), fetched(|_| ())] {
        assert_eq!(check(&good), Ok(()), "{good:?}");
    }
    assert_eq!(check(&remote(|it| it.url = "http://127.0.0.1:8080/mcp".to_owned())), Ok(()));
}

#[test]
fn fr_25_a_blank_command_or_url_or_a_transport_that_is_none_is_no_plan() {
    refused(&command(|it| it.program = String::new()), "launch.program is blank");
    refused(&command(|it| it.program = "  ".to_owned()), "launch.program is blank");
    refused(&command(|it| it.program = "npx -y".to_owned()), "white space");
    refused(&remote(|it| it.url = String::new()), "launch.url is blank");
    refused(&remote(|it| it.url = "notes.example".to_owned()), "no URL");
    refused(&remote(|it| it.transport = String::new()), "launch.transport");
    refused(&Plan { id: " ".to_owned(), ..command(|_| ()) }, "id is blank");
}

#[test]
fn fm_03_a_plan_names_no_variable_of_the_operators_and_no_address_of_the_network_it_runs_in() {
    refused(&command(|it| it.arguments.push(literal("--token=${GITHUB_TOKEN}"))), "launch.arguments[2]");
    refused(
        &command(|it| it.environment = vec![binding("KEY", literal("${OTHER}"))]),
        "KEY names a variable",
    );
    refused(&remote(|it| it.url = "https://${HOST}/mcp".to_owned()), "launch.url");
    for url in [
        "https://10.0.0.1/mcp",
        "https://169.254.169.254/latest",
        "https://[fd00::1]/mcp",
        "http://notes.example/mcp",
        "file:///etc/passwd",
        "https://0x0a000001/mcp",
    ] {
        refused(&remote(|it| it.url = url.to_owned()), "https, to no address of a private network");
    }
    refused(&remote(|it| it.url = "https://me:word@notes.example/".to_owned()), "password");
    // What it needs it declares, and by a name.
    refused(
        &command(|it| it.environment = vec![binding("KEY", Value::Secret("a b".to_owned()))]),
        "asks for",
    );
}

#[test]
fn fm_13_names_are_names_credentials_are_asked_for_and_a_file_has_a_digest() {
    for name in ["", "../x", "a b", "a__b", ".a"] {
        refused(&Plan { suggested_name: name.to_owned(), ..command(|_| ()) }, "suggested-name");
    }
    for header in ["Authorization", "cookie", "X-API-Key"] {
        let bearer = binding(header, literal("Bearer abc"));
        refused(&remote(|it| it.headers = vec![bearer.clone()]), "credential");
    }
    refused(&remote(|it| it.headers = vec![binding("a b", literal("x"))]), "no name there");
    let twice = || binding("KEY", literal("x"));
    refused(&command(|it| it.environment = vec![twice(), binding("key", literal("y")), twice()]), "twice");
    refused(&fetched(|it| it.digest = String::new()), "digest");
    refused(&fetched(|it| it.digest = format!("md5:{}", "0".repeat(32))), "digest");
    refused(&fetched(|it| it.url = "http://127.0.0.1/notes".to_owned()), "artifacts[0].url");
    for path in ["/bin/notes", "../notes", "a//b", "a/../b", "C:\\notes", ""] {
        refused(&fetched(|it| it.path = path.to_owned()), "artifacts[0].path");
    }
    let two = fetched(|_| ());
    let both = [two.artifacts.clone(), two.artifacts.clone()].concat();
    refused(&Plan { artifacts: both, ..two }, "another artifact");
}

#[test]
fn nothing_of_a_plan_holds_a_control_character() {
    refused(&command(|it| it.arguments.push(literal("a\u{1b}[2J"))), "control");
    refused(&command(|it| it.arguments.push(literal(&"x".repeat(5000)))), "limit");
}
