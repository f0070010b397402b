use serde_json::json;

use super::*;
use crate::testing::{Home, all, set_mode};
use crate::{Origin, Transport};

#[test]
fn a_server_that_is_added_is_loaded_and_bound() {
    let home = Home::new();
    let server = ManagedServer::stdio("everything", "npx", vec!["-y".to_owned(), "pkg".to_owned()]);
    let file = write_server(&home.data_dir(), &server).unwrap();
    let config = home.load().unwrap();
    assert_eq!(config.servers["everything"].origin, Origin::Managed(file));
    assert!(config.is_bound("default", "everything"));
    assert_eq!(read_server(&home.data_dir(), "everything").unwrap(), Some(server));
    assert!(remove_server(&home.data_dir(), "everything").unwrap());
    assert!(!remove_server(&home.data_dir(), "everything").unwrap());
    assert!(home.load().unwrap().servers.is_empty());
}

#[cfg(unix)]
#[test]
fn its_file_is_private_and_a_person_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let mut server = ManagedServer::http("git-hub.1", "https://h/mcp?a=b");
    server.set("headers", json!({ "Authorization": "Bearer ${T}", "on": "x: y # z" })).set("enabled", false);
    server.set("tools", json!({ "deny": ["a b", "c\n"], "allow": [] }));
    let file = write_server(&home.data_dir(), &server).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(file.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    let text = std::fs::read_to_string(&file).unwrap();
    let body: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(
        body,
        [
            "transport: \"streamable-http\"",
            "url: \"https://h/mcp?a=b\"",
            "bind:",
            "  - \"default\"",
            "headers:",
            "  Authorization: \"Bearer ${T}\"",
            "  \"on\": \"x: y # z\"",
            "enabled: false",
            "tools:",
            "  deny:",
            "    - \"a b\"",
            "    - \"c\\n\"",
            "  allow: []",
            "format: 1",
        ]
    );
    assert_eq!(read_server(&home.data_dir(), "git-hub.1").unwrap(), Some(server));
}

#[test]
fn twenty_parallel_additions_lose_nothing_fp_23() {
    let home = Home::new();
    let data_dir = home.data_dir();
    std::thread::scope(|scope| {
        for number in 0..20 {
            let data_dir = &data_dir;
            scope.spawn(move || {
                let own = ManagedServer::stdio(format!("s{number}"), "x", vec![number.to_string()]);
                write_server(data_dir, &own).unwrap();
                change_server(data_dir, "shared", |old| {
                    let mut server = old.unwrap_or_else(|| ManagedServer::stdio("shared", "x", Vec::new()));
                    let mut args = server.entry["args"].as_array().unwrap().clone();
                    args.push(json!(number.to_string()));
                    server.set("args", args);
                    Ok(Some(server))
                })
                .unwrap();
            });
        }
    });
    let config = home.load().unwrap();
    assert_eq!(config.servers.len(), 21);
    let Transport::Stdio { args, .. } = &config.servers["shared"].transport else { panic!() };
    assert_eq!(args.len(), 20);
    assert!(config.warnings.is_empty(), "{}", all(&config.warnings));
}

#[test]
fn the_managed_layer_stands_in_for_the_operators_entry_unless_it_is_off() {
    let home = Home::with_config("servers: {a: {command: mine}}\npersonas: {work: {servers: [a]}}\n");
    write_server(&home.data_dir(), &ManagedServer::stdio("a", "other", Vec::new())).unwrap();
    let config = home.load().unwrap();
    let Transport::Stdio { command, .. } = &config.servers["a"].transport else { panic!() };
    assert_eq!(command, "other");
    assert!(config.is_bound("work", "a") && config.is_bound("default", "a"));
    assert!(all(&config.warnings).contains("stands in for the server a"));
    home.write(
        ".config/toolgate/toolgate.yaml",
        "managed: off\nservers: {a: {command: mine}}\npersonas: {work: {servers: [a]}}\n",
    );
    let config = home.load().unwrap();
    let Transport::Stdio { command, .. } = &config.servers["a"].transport else { panic!() };
    assert_eq!((command.as_str(), config.managed), ("mine", false));
    assert!(!config.is_bound("default", "a"));
}

#[test]
fn a_bad_file_is_named_and_the_others_load() {
    let home = Home::new();
    write_server(&home.data_dir(), &ManagedServer::stdio("good", "x", Vec::new())).unwrap();
    let bad = [
        ("syntax", "a: [ghx_7", "not YAML"),
        ("key", "command: x\ncomand: ghx_7\n", "unknown key `comand`"),
        ("newer", "command: x\nformat: 2\n", "format"),
        ("GOOD", "command: x\n", "only in case"),
        ("__toolgate_x", "command: x\n", "built-in"),
        ("relative", "command: ./x\n", "absolute"),
    ];
    for (name, text, _) in bad {
        home.write(&format!(".local/share/toolgate/servers.d/{name}.yaml"), text);
    }
    set_mode(&home.data_dir().join("servers.d"), 0o700);
    let config = home.load().unwrap();
    // `GOOD` comes first in the directory, so it is the one that stays; the twin is told.
    assert_eq!(config.servers.len(), 1);
    let told = all(&config.warnings);
    assert!(!told.contains("ghx_7"), "{told}");
    for (name, _, word) in bad {
        let line = config
            .warnings
            .iter()
            .filter(|notice| notice.level == Level::Error)
            .map(ToString::to_string)
            .find(|line| {
                line.contains(&format!("servers.d/{name}.yaml"))
                    || (name == "GOOD" && line.contains("good.yaml"))
            });
        assert!(line.as_ref().is_some_and(|line| line.contains(word)), "{name}: {told}");
    }
}

#[test]
fn what_could_not_be_loaded_again_is_not_written() {
    let home = Home::new();
    let mut unknown = ManagedServer::stdio("a", "x", Vec::new());
    unknown.set("comand", "y");
    let mut both = ManagedServer::stdio("a", "x", Vec::new());
    both.set("url", "https://h/mcp");
    let cases = [
        (unknown, "did you mean `command`"),
        (both, "no such key"),
        (ManagedServer::stdio("../a", "x", Vec::new()), "server"),
        (ManagedServer::stdio("__talond_a", "x", Vec::new()), ""),
        (ManagedServer::stdio("a", "./x", Vec::new()), "absolute"),
        (ManagedServer::stdio("a", " ", Vec::new()), "empty"),
        (ManagedServer::http("a", "ftp://h"), "http or https"),
    ];
    for (server, word) in cases {
        let error = write_server(&home.data_dir(), &server).unwrap_err();
        assert!(matches!(error, ConfigError::Refused(_)), "{error}");
        assert!(error.to_string().contains(word), "{error}");
        assert!(names(&home.data_dir()).unwrap_or_default().is_empty());
    }
    write_server(&home.data_dir(), &ManagedServer::stdio("a", "x", Vec::new())).unwrap();
    assert!(write_server(&home.data_dir(), &ManagedServer::stdio("A", "x", Vec::new())).is_err());
}

#[test]
fn a_persona_that_nobody_configured_is_told() {
    let home = Home::with_config("personas: {work: {}}\n");
    let mut server = ManagedServer::stdio("a", "x", Vec::new());
    server.bind(&["wrok"]);
    write_server(&home.data_dir(), &server).unwrap();
    let config = home.load().unwrap();
    assert!(config.personas.values().all(|persona| persona.servers.is_empty()));
    assert!(all(&config.warnings).contains("no persona `wrok`"));
}

#[test]
fn an_operators_entry_is_copied_with_its_variables_unexpanded() {
    let mut home = Home::with_config("servers: {a: {command: x, env: {T: \"${T}\"}, args: [1.10]}}\n");
    home.set("T", "sk-9f");
    let found = home.discover(None).unwrap();
    let mut copy = operator_entry(&found, "a").unwrap().unwrap();
    assert_eq!(copy.entry["env"], json!({ "T": "${T}" }));
    assert_eq!(operator_entry(&found, "b").unwrap(), None);
    copy.set("enabled", false);
    write_server(&home.data_dir(), &copy).unwrap();
    let server = &home.load().unwrap().servers["a"];
    assert!(!server.enabled);
}

#[cfg(unix)]
#[test]
fn a_layer_that_others_can_write_is_refused() {
    let home = Home::new();
    write_server(&home.data_dir(), &ManagedServer::stdio("a", "x", Vec::new())).unwrap();
    set_mode(&home.data_dir().join("servers.d"), 0o777);
    assert!(matches!(home.load().unwrap_err(), ConfigError::WritableByOthers { .. }));
}
