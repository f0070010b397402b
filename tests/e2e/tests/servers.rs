//! Adding, starting and stopping servers.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::sandbox;

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

#[test]
fn mcp_add_pins_what_it_found_and_a_server_that_cannot_be_reached_is_not_kept() {
    let sandbox = sandbox();
    sandbox.configure("");
    let fixture = sandbox.fixture().display().to_string();
    let run = sandbox.run(&["mcp", "add", "fix", "--", &fixture]).exits(0);
    assert!(run.stdout.contains("pinned"), "{run:?}");
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    assert_eq!(status["servers"][0]["state"], "connected");
    assert_eq!(status["servers"][0]["pinned"], "yes");
    sandbox.run(&["mcp", "add", "fix", "--", &fixture]).exits(2);
    let missing = sandbox.run(&["mcp", "add", "gone", "--", "no-such-command-anywhere"]).exits(1);
    assert!(
        missing.stderr.contains("no-such-command-anywhere") && missing.stderr.contains("PATH"),
        "{missing:?}"
    );
    let list = sandbox.run(&["mcp", "list", "--json"]).exits(0).json();
    assert!(list.get("gone").is_none(), "{list}");
    sandbox.run(&["mcp", "remove", "fix"]).exits(0);
    sandbox.run(&["mcp", "remove", "fix"]).exits(1);
}

#[test]
fn sec_014_a_literal_secret_is_moved_out_of_the_entry() {
    let sandbox = sandbox();
    sandbox.configure("");
    let fixture = sandbox.fixture().display().to_string();
    sandbox
        .run(&[
            "mcp",
            "add",
            "fix",
            "-e",
            "GH_TOKEN=ghp_0123456789abcdef",
            "-e",
            "MODE=plain",
            "--",
            &fixture,
        ])
        .exits(0);
    let entry = std::fs::read_to_string(sandbox.data().join("servers.d/fix.yaml")).unwrap();
    assert!(entry.contains("${GH_TOKEN}") && entry.contains("plain") && !entry.contains("ghp_"), "{entry}");
    let secrets = sandbox.read("config/toolgate/secrets.env");
    assert!(secrets.contains("ghp_0123456789abcdef"), "{secrets}");
    for args in [
        &["mcp", "get", "fix"][..],
        &["config", "show"],
        &["mcp", "list"],
        &["mcp", "status"],
        &["doctor"],
        &["-v", "-v", "mcp", "status"],
    ] {
        let run = sandbox.run(args);
        assert!(!format!("{run:?}").contains("ghp_0123"), "{args:?} shows a secret");
    }
}

// SE-03
#[test]
fn gate_one_line_se_03_a_name_with_a_line_break_makes_up_no_server_on_the_terminal() {
    let sandbox = sandbox();
    let tools = sandbox.write(
        "tools.json",
        r#"[{"name":"a\ng: connected modern 2026-07-28\n  pinned: yes","inputSchema":{"type":"object"}}]"#,
    );
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    for args in [&["mcp", "status"][..], &["mcp", "pin", "fix"], &["mcp", "tools"], &["mcp", "list"]] {
        let run = sandbox.run(args);
        assert!(run.stdout.lines().all(|line| !line.starts_with("g: ")), "{args:?}: {run:?}");
    }
    assert!(sandbox.run(&["mcp", "status"]).exits(0).stdout.contains("a\\ng: connected"));
}

// SEC-014
#[test]
fn a_secret_in_the_command_itself_is_shown_by_no_verb() {
    let sandbox = sandbox();
    sandbox.write("config/toolgate/secrets.env", "PW=pw-in-a-command-77\n");
    std::fs::set_permissions(
        sandbox.path("config/toolgate/secrets.env"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    sandbox
        .configure("servers:\n  odd: { command: \"/x/${PW}\" }\npersonas:\n  default: { servers: [odd] }\n");
    for args in [
        &["mcp", "list"][..],
        &["mcp", "list", "--json"],
        &["mcp", "get", "odd"],
        &["mcp", "status"],
        &["config", "show"],
    ] {
        let run = sandbox.run(args);
        assert!(!format!("{run:?}").contains("pw-in-a-command"), "{args:?}: {run:?}");
    }
    assert!(sandbox.run(&["mcp", "list"]).exits(0).stdout.contains("/x/${PW}"));
}

// FT-05, FR-17
#[test]
fn st_18_a_child_gets_its_own_variables_and_a_short_list_and_none_of_the_parents_secrets() {
    let sandbox = sandbox();
    let entry = format!("{}    env: {{ A: \"1\" }}\n", sandbox.fixture_entry("fix", &[]));
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let run = sandbox
        .run_with(
            &["mcp", "call", "fix.environment", "--json", "{}"],
            "",
            &[("AWS_SECRET_ACCESS_KEY", "zzz")],
        )
        .exits(0);
    let environment: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(environment["A"], "1");
    assert!(environment["PATH"].is_string() && environment["HOME"].is_string());
    assert!(!run.stdout.contains("AWS"), "{environment}");
}

#[test]
fn st_01_a_banner_and_debug_lines_on_standard_output_are_no_messages() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--banner", "ready v9"], ALLOW);
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let told = status["servers"][0]["stderr"].as_str().unwrap_or_default();
    assert!(told.contains("ready v9") && told.contains("dbg:"), "{status}");
}

#[test]
fn st_06_a_child_that_writes_much_to_standard_error_is_not_blocked() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--stderr-flood", "262144"], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for _ in 0..3 {
        client.call("fix__echo", &json!({ "message": "hi" }));
    }
}

pub(crate) fn alive(pid: &str) -> bool {
    // A process that ended and was not collected yet is not alive.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z"))
}

pub(crate) fn wait_until_gone(pids: &[&str]) {
    let until = Instant::now() + Duration::from_secs(15);
    while pids.iter().any(|pid| alive(pid)) {
        assert!(Instant::now() < until, "still alive: {pids:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

// FT-01
#[test]
fn st_12_no_process_of_a_server_survives_its_client_or_a_kill_of_toolgate() {
    for kill in [false, true] {
        let sandbox = sandbox();
        let pids = sandbox.path("pids").display().to_string();
        let entry = format!(
            "  fix:\n    command: sh\n    args: [\"-c\", \"{} --grandchild {pids} & wait\"]\n",
            sandbox.fixture().display()
        );
        // `sh -c` gives a background job no standard input, so the fixture is run in the foreground as well.
        let entry = entry.replace("& wait", "");
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
        let mut client = sandbox.serve_alone(&[]);
        client.initialize();
        client.call("fix__echo", &json!({ "message": "hi" }));
        let written = sandbox.read("pids");
        let pids: Vec<&str> = written.split_whitespace().collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| alive(pid)), "{written}");
        if kill {
            client.kill();
        } else {
            assert_eq!(client.close(), 0);
        }
        wait_until_gone(&pids);
    }
}

#[test]
fn pr_27_every_way_to_answer_the_probe_ends_in_a_connection() {
    for (options, era) in [
        (&["--probe", "not-found"][..], "legacy"),
        (&["--probe", "other-code"], "legacy"),
        (&["--probe", "silence"], "legacy"),
        (&["--probe", "exit"], "legacy"),
        (&["--era", "modern"], "modern"),
        (&["--era", "dual"], "modern"),
        // It refuses `initialize` because of its era before it answers the first question.
        (&["--era", "modern", "--late-discover", "1500"], "modern"),
    ] {
        let sandbox = sandbox();
        let entry = format!("{}    timeouts: {{ probe: 500ms }}\n", sandbox.fixture_entry("fix", options));
        sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
        let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
        assert_eq!(status["servers"][0]["state"], "connected", "{options:?}: {status}");
        assert_eq!(status["servers"][0]["era"], era, "{options:?}");
        sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
    }
}

#[test]
fn pr_01_a_cursor_that_never_advances_ends_the_listing() {
    let sandbox = sandbox();
    sandbox.configure_fixture(&["--stuck-cursor"], ALLOW);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let mut names = client.tool_names();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "no page is appended twice");
    assert_eq!(count, 10);
}

#[test]
fn pr_18_a_definition_that_is_no_tool_is_left_out_alone_and_named() {
    let sandbox = sandbox();
    let tools = sandbox.write(
        "tools.json",
        r#"[{"name":"echo","inputSchema":{"type":"object"}},{"name":"twice","inputSchema":{"type":"object","type":"object"}},{"name":"bare"}]"#,
    );
    sandbox.configure_fixture(&["--tools", &tools], ALLOW);
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let dropped = status["servers"][0]["dropped"].to_string();
    assert!(dropped.contains("twice"), "{dropped}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(0);
}

#[test]
fn se_03_no_terminal_escape_of_a_server_reaches_the_terminal() {
    let sandbox = sandbox();
    let tools = sandbox.write(
        "tools.json",
        "[{\"name\":\"echo\",\"description\":\"ok\\u001b[2J\\u001b]0;pwn\\u0007\\u009b31m\",\"inputSchema\":{\"type\":\"object\"}}]",
    );
    let plugins = "plugins:\n  load:\n    - { plugin: toolgate/hidden-text, settings: { mode: show } }\n";
    sandbox.configure_fixture(&["--tools", &tools], &format!("{ALLOW}{plugins}"));
    for args in [
        &["mcp", "status"][..],
        &["mcp", "tools"],
        &["mcp", "call", "fix.echo", "--json", "{\"message\":\"\\u001b[2Jx\"}"],
        &["mcp", "pin", "fix"],
        &["audit", "tail"],
    ] {
        let run = sandbox.run(args);
        let bytes = [run.stdout.as_bytes(), run.stderr.as_bytes()].concat();
        assert!(!bytes.iter().any(|byte| matches!(byte, 0x1b | 0x07 | 0x9b)), "{args:?}: {run:?}");
    }
}

#[test]
fn a_configuration_of_the_working_directory_counts_only_after_it_was_trusted() {
    let sandbox = sandbox();
    let yaml = format!("data_dir: {}\nservers: {{}}\n", sandbox.data().display());
    sandbox.write("work/toolgate.yaml", &yaml);
    let check = |sandbox: &toolgate_e2e::Sandbox| sandbox.run(&["config", "check", "--json"]);
    let untrusted = check(&sandbox).exits(0);
    assert!(untrusted.json()["file"].is_null(), "an untrusted file is not used");
    assert!(untrusted.stdout.contains("work/toolgate.yaml is not used"), "and is named: {untrusted:?}");
    sandbox.run(&["config", "trust"]).exits(0);
    assert!(check(&sandbox).exits(0).json()["file"].as_str().unwrap().ends_with("work/toolgate.yaml"));
    sandbox.write("work/toolgate.yaml", format!("{yaml}personas: {{ x: {{}} }}\n"));
    check(&sandbox).exits(2);
    sandbox.write("work/toolgate.yaml", &yaml);
    assert!(sandbox.events().contains(&"config_trusted".to_owned()), "that it was trusted is in the log");
}

#[test]
fn a_configuration_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let sandbox = sandbox();
    sandbox.configure("servers: {}\n");
    let check = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(sandbox.config_file(), permissions).unwrap();
        sandbox.run(&["config", "check"])
    };
    check(0o644).exits(0);
    for mode in [0o664, 0o646] {
        let run = check(mode).exits(2);
        assert!(run.stderr.contains("toolgate.yaml can be changed by other users"), "{run:?}");
    }
}

#[test]
fn a_mistake_in_the_configuration_is_exit_2_with_line_and_column_and_no_neighbour() {
    let sandbox = sandbox();
    sandbox
        .configure("servers:\n  fix:\n    command: x\n    env: { TOKEN: sk-secret-value }\n    comand: y\n");
    let run = sandbox.run(&["config", "check"]).exits(2);
    assert!(run.stderr.contains("comand") && run.stderr.contains(":7:"), "{run:?}");
    assert!(!run.stderr.contains("sk-secret-value"), "{run:?}");
}

#[test]
fn a_server_does_not_start_in_the_directory_that_toolgate_was_started_in() {
    let sandbox = sandbox();
    let told = sandbox.path("told").display().to_string();
    sandbox.configure(&format!(
        "servers:\n  fix:\n    command: sh\n    args: [\"-c\", \"pwd > {told}; exec {}\"]\npersonas:\n  default:\n    servers: [fix]\n{ALLOW}",
        sandbox.fixture().display()
    ));
    sandbox.run(&["mcp", "status"]).exits(0);
    let there = sandbox.read("told");
    assert_eq!(there.trim(), sandbox.data().join("run/fix").display().to_string());
}

#[test]
fn options_may_follow_the_url_of_a_server() {
    let sandbox = sandbox();
    sandbox.configure("");
    let header = "Authorization: Bearer sk-0123456789";
    sandbox.run(&["mcp", "add", "far", "http://127.0.0.1:9/mcp", "--header", header, "--no-probe"]).exits(0);
    let entry = std::fs::read_to_string(sandbox.data().join("servers.d/far.yaml")).unwrap();
    assert!(entry.contains("Authorization") && !entry.contains("sk-0123"), "{entry}");
    sandbox.run(&["mcp", "add", "more", "http://127.0.0.1:9/mcp", "extra"]).exits(2);
}

#[test]
fn sec_014_a_secret_is_set_from_standard_input_and_never_printed() {
    let sandbox = sandbox();
    sandbox.configure("");
    sandbox.run_with(&["secret", "set", "TOKEN"], "s3cret-value\n", &[]).exits(0);
    let list = sandbox.run(&["secret", "list"]).exits(0);
    assert_eq!(list.stdout, "TOKEN\n");
    sandbox.run(&["secret", "clear", "TOKEN"]).exits(0);
    sandbox.run(&["secret", "clear", "TOKEN"]).exits(1);
}

#[test]
fn a_configuration_that_is_no_regular_file_is_refused_and_not_waited_for() {
    let sandbox = sandbox();
    let pipe = sandbox.path("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = sandbox.run(&["--config", &pipe.display().to_string(), "config", "check"]).exits(2);
    assert!(run.stderr.contains("no regular file"), "{run:?}");
}

#[test]
fn sec_014_a_literal_secret_among_the_arguments_is_moved_as_well() {
    let sandbox = sandbox();
    sandbox.configure("");
    sandbox
        .run(&[
            "mcp",
            "add",
            "fix",
            "--no-probe",
            "--",
            "true",
            "--api-key",
            "sk-ant-abcdef0123456789",
            "--token=ghp_0123456789abcdef",
        ])
        .exits(0);
    let entry = std::fs::read_to_string(sandbox.data().join("servers.d/fix.yaml")).unwrap();
    assert!(
        entry.contains("${FIX_ARGUMENT_2}") && !entry.contains("sk-ant") && !entry.contains("ghp_"),
        "{entry}"
    );
}

#[test]
fn a_kill_while_mcp_add_connects_leaves_nothing_behind() {
    let sandbox = sandbox();
    sandbox.configure("");
    let started = sandbox.path("started");
    let script = format!("echo x > {}; exec sleep 600", started.display());
    let mut adding = sandbox
        .command(&["mcp", "add", "fix", "-e", "GH_TOKEN=ghp_0123456789abcdef", "--", "sh", "-c", &script])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = Instant::now() + toolgate_e2e::PATIENCE;
    while !started.exists() {
        assert!(Instant::now() < until, "the server was not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    adding.kill().unwrap();
    adding.wait().unwrap();
    assert!(
        !sandbox.data().join("servers.d/fix.yaml").exists(),
        "the entry stands before the server answered"
    );
    assert!(!sandbox.read("config/toolgate/secrets.env").contains("ghp_"), "so does its secret");
    let fixture = sandbox.fixture().display().to_string();
    let run =
        sandbox.run(&["mcp", "add", "fix", "-e", "GH_TOKEN=ghp_0123456789abcdef", "--", &fixture]).exits(0);
    assert!(run.stdout.contains("pinned"), "{run:?}");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", "{}"]).exits(3);
}

#[test]
fn a_plugin_whose_file_is_a_pipe_is_refused_and_not_waited_for() {
    let sandbox = sandbox();
    sandbox.write("plugin/release.dsse.json", "{}");
    let pipe = sandbox.path("plugin/component.wasm");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = sandbox.run(&["plugin", "verify", &sandbox.path("plugin").display().to_string()]);
    assert!(run.code != 0 && run.stderr.contains("no regular file"), "{run:?}");
}

#[test]
fn se_12_a_password_in_a_url_is_not_shown() {
    let sandbox = sandbox();
    sandbox.configure(
        "servers:\n  far: { url: \"https://me:hunter22@${PLACE:-a.example}/mcp?key=hunter33\" }\n  near: { url: \"http://me:hunter22@127.0.0.1:9/mcp\" }\npersonas:\n  default:\n    servers: [far, near]\n",
    );
    for args in
        [&["config", "show"][..], &["mcp", "list"], &["mcp", "get", "far"], &["mcp", "list", "--json"]]
    {
        let run = sandbox.run(args).exits(0);
        assert!(!format!("{run:?}").contains("hunter"), "{args:?}: {run:?}");
    }
}
