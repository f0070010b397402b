//! Every form of a grant, and every mistake with its place.

use std::time::Duration;

use toolgate_signing::Access;

use crate::Config;
use crate::testing::Home;

fn with(grants: &str) -> (Home, String) {
    let text = format!("plugins:\n  load:\n    - plugin: acme/guard\n      grants:\n{grants}");
    (Home::with_config(&text), text)
}

fn read(grants: &str) -> Config {
    let (mut home, _) = with(grants);
    home.set("TOKEN", "s3cret");
    home.load().unwrap_or_else(|error| panic!("{error}"))
}

fn refused(grants: &str) -> String {
    with(grants).0.load().map_or_else(|error| error.to_string(), |_| panic!("accepted: {grants}"))
}

#[test]
fn every_form_of_a_grant_is_understood() {
    let config = read(
        "        kv: [cache]\n        http:\n          api: true\n          npm: [\"https://registry.example\"]\n          \
         own: { hosts: [\"http://127.0.0.1:8080\"], methods: [get], max_response: 1000, timeout: 2s }\n        \
         secrets:\n          short: \"${TOKEN}\"\n          long: { value: \"${TOKEN}\", send_to: [\"https://registry.example\"], reveal: true }\n        \
         files:\n          one: /srv/one\n          two: [/srv/one, ./two]\n          three: { directories: ~/three, access: read }\n",
    );
    let granted = &config.plugins.load[0].granted;
    assert_eq!(granted.kv["cache"].max_bytes, None);
    assert_eq!(granted.http["api"].hosts, None);
    assert_eq!(granted.http["npm"].hosts.as_deref().unwrap(), ["https://registry.example"]);
    assert_eq!(granted.http["own"].timeout, Some(Duration::from_secs(2)));
    assert_eq!(granted.secrets["short"].value.expose(), "s3cret");
    assert!(granted.secrets["long"].reveal && !granted.secrets["short"].reveal);
    assert_eq!(granted.files["two"].directories.len(), 2);
    assert!(granted.files["two"].directories.iter().all(|path| path.is_absolute()));
    assert_eq!(granted.files["three"].access, Some(Access::Read));
}

#[test]
fn the_value_of_a_secret_is_shown_nowhere() {
    let config = read("        secrets: { token: \"${TOKEN}\" }\n");
    assert!(!format!("{config:?}").contains("s3cret"));
    let literal = read("        secrets: { a: s3cret, b: { value: s3cret } }\n");
    assert!(!crate::masked(&literal).to_string().contains("s3cret"));
    assert!(!crate::masked(&config).to_string().contains("s3cret"));
}

#[test]
fn a_mistake_has_its_line_and_column() {
    for (grants, place, part) in [
        ("        sockets: { a: true }\n", "5:9", "sockets"),
        ("        kv: { Cache: true }\n", "5:15", "label"),
        ("        kv: { cache: false }\n", "5:22", "grants nothing"),
        ("        kv: { cache: { quota: 3 } }\n", "5:24", "quota"),
        ("        http: { api: { hosts: [\"https://a.example/path\"] } }\n", "5:32", "origin"),
        ("        http: { api: { methods: [GET] } }\n", "5:34", "small letters"),
        ("        http: { api: { timeout: 5m } }\n", "5:33", "30s"),
        ("        secrets: { token: { reveal: true } }\n", "5:27", "value"),
        ("        files: { work: { access: read } }\n", "5:24", "directories"),
        ("        files: { work: [] }\n", "5:24", "directory"),
        ("        files: { work: { directories: /a, access: all } }\n", "5:51", "access"),
    ] {
        let said = refused(grants);
        assert!(said.contains(&format!(":{place}")) && said.contains(part), "{grants}{said}");
    }
}

#[test]
fn an_adapter_of_a_server_has_grants_of_its_own() {
    let home = Home::with_config(
        "servers:\n  files:\n    command: x\n    adapter: { plugin: acme/files, grants: { files: { work: /srv } } }\n",
    );
    let config = home.load().unwrap();
    let adapter = config.servers["files"].adapter.as_ref().unwrap();
    assert_eq!(adapter.granted.files["work"].directories, [std::path::Path::new("/srv")]);
}
