//! Rows CFG-*: transports, aliases, which keys go together, commands.

use super::*;

fn server(body: &str) -> Server {
    config(&format!("servers:\n  a: {body}\n")).servers.remove("a").unwrap()
}

fn notices(body: &str) -> String {
    all(&config(&format!("servers:\n  a: {body}\n")).warnings)
}

fn argv(body: &str) -> Vec<String> {
    match server(body).transport {
        Transport::Stdio { command, args, .. } => std::iter::once(command).chain(args).collect(),
        Transport::StreamableHttp { .. } | Transport::Sse { .. } => panic!("no stdio"),
    }
}

#[test]
fn the_transport_follows_from_command_or_url_c04_cfg_002() {
    assert_eq!(server("{command: x}").transport.name(), "stdio");
    assert_eq!(server("{url: https://h/mcp}").transport.name(), "streamable-http");
    assert!(refusal("servers: {a: {}}\n").contains("neither `command` nor `url`"));
    assert!(refusal("servers: {a: {command: x, url: https://h/}}\n").contains("both `command` and `url`"));
}

#[test]
fn other_spellings_of_streamable_http_are_understood_with_a_note_c05_cfg_005() {
    for spelling in ["http", "streamable_http"] {
        let body = format!("{{transport: {spelling}, url: https://h/mcp}}");
        assert_eq!(server(&body).transport.name(), "streamable-http");
        let told = notices(&body);
        assert!(
            told.starts_with("info: ") && told.contains(&format!("`{spelling}` is read as streamable-http")),
            "{told}"
        );
    }
    assert_eq!(notices("{transport: streamable-http, url: https://h/mcp}"), "");
    assert_eq!(server("{type: http, url: https://h/mcp}").transport.name(), "streamable-http");
}

#[test]
fn another_transport_is_refused_with_the_server_the_value_and_the_list_cfg_001_cfg_039() {
    let told = refusal("servers:\n  a:\n    transport: websocket\n    url: https://h/\n");
    assert!(
        told.contains(
            "toolgate.yaml:3:16: servers.a.transport: `websocket` is not one of stdio, streamable-http"
        ),
        "{told}"
    );
    assert!(refusal("servers: {a: {transport: stdoi, command: x}}\n").contains("did you mean `stdio`?"));
    assert_eq!(server("{transport: sse, url: https://h/sse}").transport.name(), "sse");
    assert!(refusal("servers: {a: {transport: sse, command: x}}\n").contains("a sse server has no such key"));
}

#[test]
fn keys_of_another_transport_are_refused_cfg_022_cfg_061() {
    for key in ["command: x", "args: [x]", "env: {A: b}", "cwd: ."] {
        let told = refusal(&format!("servers: {{a: {{transport: http, url: https://h/, {key}}}}}\n"));
        assert!(told.contains("a streamable-http server has no such key"), "{told}");
    }
    for key in ["url: https://h/", "headers: {A: b}"] {
        let told = refusal(&format!("servers: {{a: {{transport: stdio, command: x, {key}}}}}\n"));
        assert!(told.contains("a stdio server has no such key"), "{told}");
    }
}

#[test]
fn an_empty_command_or_url_is_refused_with_the_server_cfg_007_cfg_061() {
    for body in [
        "command: \"\"",
        "command: \"  \"",
        "transport: http, url: \" \"",
        "transport: stdio",
        "transport: http",
    ] {
        let told = refusal(&format!("servers: {{a: {{{body}}}}}\n"));
        assert!(told.contains("servers.a"), "{told}");
    }
}

#[test]
fn only_http_and_https_urls_with_a_host_are_servers_cfg_023() {
    for url in ["ftp://h/", "h/mcp", "https://", "file:///etc/passwd", "https://h/#x", "javascript:alert(1)"]
    {
        let told = refusal(&format!("servers: {{a: {{transport: http, url: \"{url}\"}}}}\n"));
        assert!(told.contains("servers.a.url"), "{url}: {told}");
    }
}

#[test]
fn plain_http_is_the_operators_word_and_warned_about_beyond_this_machine() {
    assert_eq!(notices("{url: \"http://127.0.0.1:9/mcp\"}"), "");
    assert_eq!(notices("{url: \"http://localhost:9/mcp\"}"), "");
    assert!(notices("{url: \"http://10.0.0.5/mcp\"}").contains("warning"));
    assert!(
        notices("{url: \"http://localhost.evil.example/mcp\"}").contains("plain http to another machine")
    );
}

#[test]
fn a_command_may_carry_its_own_arguments_cfg_006() {
    assert_eq!(argv("{command: node /path/to/index.js}"), ["node", "/path/to/index.js"]);
    assert_eq!(argv("{command: \"node 'a b' c\", args: [d]}"), ["node", "a b", "c", "d"]);
    assert_eq!(
        argv("{command: npx, args: [\"-y\", \"a b\", 1.10, true, 0755]}"),
        ["npx", "-y", "a b", "1.10", "true", "0755"]
    );
    assert!(refusal("servers: {a: {command: \"node 'x\"}}\n").contains("quote"));
}

#[test]
fn a_text_that_names_a_file_is_a_program_c06() {
    let home = Home::with_config("servers: {a: {command: \"./my server\"}}\n");
    let file = home.write(".config/toolgate/my server", "#!/bin/sh\n");
    let loaded = home.load().unwrap();
    let Transport::Stdio { command, args, .. } = &loaded.servers["a"].transport else { panic!() };
    assert_eq!((Path::new(command), args.len()), (file.as_path(), 0));
}

#[test]
fn a_space_in_a_variable_makes_no_new_argument() {
    let mut home = Home::with_config("servers: {a: {command: \"node ${DIR}/x.js --y\"}}\n");
    home.set("DIR", "/my dir; rm");
    let loaded = home.load().unwrap();
    let Transport::Stdio { command, args, .. } = &loaded.servers["a"].transport else { panic!() };
    assert_eq!(
        (command.as_str(), args.as_slice()),
        ("node", ["/my dir; rm/x.js".to_owned(), "--y".to_owned()].as_slice())
    );
}

#[test]
fn shell_syntax_is_reported_and_never_run() {
    assert_eq!(argv("{command: \"a | b\"}"), ["a", "|", "b"]);
    assert!(notices("{command: \"a | b\"}").contains("no shell is started"));
}

#[test]
fn paths_count_from_the_file_fp_20() {
    let home = Home::with_config(
        "servers: {a: {command: ./run.sh, cwd: sub}, b: {command: ~/run.sh, cwd: \"~\"}}\n",
    );
    let loaded = home.load().unwrap();
    for (name, program, dir) in [
        ("a", home.user_dir().join("run.sh"), home.user_dir().join("sub")),
        ("b", home.path("run.sh"), home.path("")),
    ] {
        let Transport::Stdio { command, cwd, .. } = &loaded.servers[name].transport else { panic!() };
        assert_eq!(Path::new(command), program);
        assert_eq!(cwd.as_deref().unwrap(), dir.components().collect::<PathBuf>());
    }
}

#[test]
fn headers_are_literals_or_variables_in_text_cfg_008_cfg_045() {
    let mut home = Home::with_config(
        "servers: {a: {url: https://h/, headers: {Authorization: \"Bearer ${KEY}\", X-Custom-Header: my-value, X-N: 7}}}\n",
    );
    home.set("KEY", "k1");
    let Transport::StreamableHttp { headers, .. } = &home.load().unwrap().servers["a"].transport else {
        panic!()
    };
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.expose())).collect();
    assert_eq!(headers, [("Authorization", "Bearer k1"), ("X-Custom-Header", "my-value"), ("X-N", "7")]);
}

#[test]
fn headers_that_break_a_request_are_refused_without_their_value() {
    let mut home = Home::with_config("servers: {a: {url: https://h/, headers: {X: \"${KEY}\"}}}\n");
    home.set("KEY", "sk-9f\r\nEvil: 1");
    let told = home.load().unwrap_err().to_string();
    assert!(told.contains("servers.a.headers.X") && !told.contains("sk-9f"), "{told}");
    for (headers, word) in [
        ("\"X Y\": a", "no name for a header"),
        ("\"\": a", "no name for a header"),
        ("X: a, x: b", "here twice"),
        ("Host: a", "sets this header itself"),
        ("Mcp-Session-Id: a", "sets this header itself"),
        ("X: [a]", "text is needed"),
        ("X:", "no value"),
    ] {
        let told = refusal(&format!("servers: {{a: {{url: https://h/, headers: {{{headers}}}}}}}\n"));
        assert!(told.contains(word), "{headers}: {told}");
    }
}

#[test]
fn literals_that_look_like_secrets_are_warned_about_and_not_repeated_sec_014() {
    for body in [
        "{command: x, env: {GITHUB_TOKEN: abc123-long}}",
        "{command: x, env: {WHATEVER: ghp_abcdefgh}}",
        "{url: https://h/, headers: {Authorization: Bearer abcdefgh}}",
        "{url: \"https://u:abc123@h/\"}",
    ] {
        let told = notices(body);
        assert!(told.contains("warning: ") && !told.contains("abc"), "{body}: {told}");
    }
    for body in [
        "{command: x, env: {LEVEL: debug, TOKEN_FILE: /run/x, USE_TOKEN: true, MAX_TOKENS: 4096}}",
        "{url: https://h/, headers: {X-Team: core}}",
    ] {
        assert_eq!(notices(body), "", "{body}");
    }
}

#[test]
fn names_that_a_label_or_a_file_could_not_tell_apart_are_refused_cfg_009_rsv_003() {
    for (name, word) in [
        ("__talond_x", "built-in"),
        ("__toolgate_x", "built-in"),
        ("a__b", "__"),
        ("\"\"", ""),
        ("\"a b\"", ""),
        ("\"a/b\"", ""),
        ("\"*\"", ""),
        ("-a", ""),
    ] {
        let told = refusal(&format!("servers:\n  {name}: {{command: x}}\n"));
        assert!(told.starts_with("toolgate.yaml:2:3: servers") && told.contains(word), "{name}: {told}");
    }
    assert!(refusal("servers: {git: {command: x}, Git: {command: x}}\n").contains("only in case"));
    assert!(
        refusal("servers:\n  a: {command: x}\n  a: {command: y}\n")
            .contains("toolgate.yaml:3:3: the key `a` is here twice")
    );
}

#[test]
fn the_protocol_is_one_of_three_on_every_transport_c25_cfg_024() {
    assert_eq!(server("{command: x, protocol: 2026-07-28}").protocol, Protocol::Modern);
    assert_eq!(server("{url: https://h/, protocol_version: legacy}").protocol, Protocol::Legacy);
    assert!(
        refusal("servers: {a: {command: x, protocol: 2025-11-25}}\n").contains("auto, legacy, 2026-07-28")
    );
    assert!(
        refusal("servers: {a: {command: x, protocol: auto, protocol_version: auto}}\n")
            .contains("two spellings")
    );
}

#[test]
fn a_disabled_server_is_there_and_says_so_cfg_058() {
    assert!(!server("{command: x, enabled: false}").enabled);
    assert!(refusal("servers: {a: {command: x, enabled: no}}\n").contains("true or false is needed"));
}

#[test]
fn trust_blocks_are_read_in_both_spellings_tru_001() {
    let hash = format!("sha256:{}", "0f".repeat(32));
    let snake = server(&format!(
        "{{command: x, trust: {{auto_approve_tools: [a__t], pinned_tool_hash: \"{hash}\", host_escape: true}}}}"
    ));
    let camel = server(&format!(
        "{{command: x, trust: {{autoApproveTools: [a__t], pinnedToolHash: \"{hash}\", hostEscape: true}}}}"
    ));
    assert_eq!(snake.trust, camel.trust);
    assert!(snake.trust.host_escape && snake.trust.pinned_tool_hash.is_some());
    for hash in ["sha256:xyz", "monad1:00", "0f0f"] {
        assert!(
            refusal(&format!("servers: {{a: {{command: x, trust: {{pinned_tool_hash: \"{hash}\"}}}}}}\n"))
                .contains("no digest")
        );
    }
}

#[test]
fn an_empty_allow_list_allows_all_and_says_so() {
    assert!(notices("{command: x, tools: {allow: []}}").contains("allows every tool"));
    assert_eq!(notices("{command: x, tools: {deny: [a]}}"), "");
}

#[test]
fn sec_006_what_a_variable_held_is_taken_out_of_texts_wherever_it_stands_in_the_entry() {
    let mut home = Home::with_config(
        "servers:\n  web: { url: \"https://x.example/?k=${KEY}\", headers: { Authorization: \"Bearer ${TOKEN}\", X-Plain: \"Basic bGl0ZXJhbA==\" } }\n  \
         local: { command: x, args: [\"--key=${KEY}\"], cwd: \"${HOME}/w\", env: { A: \"pre ${TOKEN}\", LONGER: \"${TOKEN}-and-more\", PEM: \"${PEM}\" } }\n",
    );
    home.set("TOKEN", "t0ken-value");
    home.set("KEY", "k3y-value");
    home.set("PEM", "-----BEGIN-----\nMIIabc\"def\n-----END-----");
    let config = home.load().unwrap();
    let web = &config.servers["web"];
    let text = "refused t0ken-value of k3y-value, bGl0ZXJhbA==";
    assert_eq!(web.without_secrets(text), "refused *** of ***, ***");
    let local = &config.servers["local"];
    let text = "t0ken-value-and-more t0ken-value k3y-value MIIabc\"def MIIabc\\\"def";
    assert_eq!(local.without_secrets(text), "*** *** *** *** ***");
    // What says where things are stands in every path.
    let place = home.path("w").display().to_string();
    assert_eq!(local.without_secrets(&place), place);
}
