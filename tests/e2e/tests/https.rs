//! Plugins over real https: a server on loopback whose authority the configuration names, and addresses that
//! nothing is sent to.

use std::path::Path;

use toolgate_e2e::{Run, Sandbox};
use toolgate_signing::SigningKey;

use crate::preload;
use crate::registry::{ACME, Served, change, path, plugin, registry};
use crate::sandbox;
use crate::web::{CA, Files, INSIDE, INSIDE_CA, INSIDE_KEY, OTHER_CA, SERVER, SERVER_KEY};

/// A gateway that pinned an index at `place`, with these entries of `plugins.hosts`.
fn configure(sandbox: &Sandbox, place: &str, root: &str, hosts: &str) {
    let key = SigningKey::from_seed(&ACME).public();
    sandbox.configure_fixture(
        &[],
        &format!(
            "plugins:\n  indexes: [{{ name: acme, url: \"{place}\", root: \"{root}\" }}]\n  hosts: [{hosts}]\n  trust:\n    - {{ plugins: \"acme/*\", keys: [\"{key}\"] }}\n"
        ),
    );
}

fn install(sandbox: &Sandbox, reference: &str) -> Run {
    sandbox.run(&["plugin", "install", reference, "--yes"])
}

/// That something is refused because of the certificate of its server.
#[track_caller]
fn untrusted(run: &Run, why: &str) {
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains(why) && run.stderr.contains("next:"), "{why}: {run:?}");
}

#[test]
fn gate_tls_an_index_and_a_release_come_over_https_from_servers_that_a_named_authority_vouches_for() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let guard = plugin(&sandbox, "1.0.0", 1);
    change(&sandbox, &["publish", &path(&sandbox, "registry"), &guard], &["publish"]).exits(0);
    let (ca, other) = (sandbox.write("ca.pem", CA), sandbox.write("other.pem", OTHER_CA));
    let index = Files::serve_tls("127.0.0.1", &sandbox.path("registry"));
    let release = Files::serve_tls("127.0.0.1", Path::new(&guard));
    let release_url = format!("{}/release.dsse.json", release.url);
    let localhost = |url: &str| url.replace("127.0.0.1", "localhost");
    let vouched = |ca: &str| {
        let hosts = [&index.host, &release.host].map(|host| format!("{{ host: \"{host}\", ca: \"{ca}\" }}"));
        let named = hosts.iter().map(|host| localhost(host));
        hosts.iter().cloned().chain(named).collect::<Vec<_>>().join(", ")
    };
    // This machine's authorities do not know it, and another one does not vouch for it.
    for hosts in [String::new(), vouched(&other)] {
        configure(&sandbox, &index.url, &root, &hosts);
        untrusted(&install(&sandbox, "acme/guard"), "certificate");
        untrusted(&install(&sandbox, &release_url), "certificate");
    }
    for (place, reference) in
        [(index.url.clone(), release_url.clone()), (localhost(&index.url), localhost(&release_url))]
    {
        configure(&sandbox, &place, &root, &vouched(&ca));
        install(&sandbox, "acme/guard").exits(0);
        install(&sandbox, &reference).exits(0);
    }
    sandbox.run(&["registry", "verify", &index.url, "--root", &root]).exits(1);
    sandbox.run(&["registry", "verify", &index.url, "--root", &root, "--ca", &ca]).exits(0);
    // An authority vouches for the names in a certificate and for no other.
    let elsewhere = Files::serve_tls("127.0.0.2", Path::new(&guard));
    configure(&sandbox, &index.url, &root, &format!("{{ host: \"{}\", ca: \"{ca}\" }}", elsewhere.host));
    untrusted(&install(&sandbox, &format!("{}/release.dsse.json", elsewhere.url)), "certificate");
    // A file that is none is said before anything is asked.
    configure(&sandbox, &index.url, &root, &format!("{{ host: \"{}\", ca: \"/nowhere.pem\" }}", index.host));
    let run = install(&sandbox, "acme/guard").exits(2);
    assert!(run.stderr.contains("/nowhere.pem"), "{run:?}");
}

#[test]
fn gate_address_nothing_is_sent_to_an_address_beside_this_machine_that_nobody_named() {
    let sandbox = sandbox();
    let root = format!("sha256:{}", "0".repeat(64));
    let digest = "0".repeat(64);
    for host in ["10.1.2.3", "192.168.0.9:5000", "169.254.169.254", "[fd00::1]"] {
        configure(&sandbox, &format!("https://{host}/"), &root, "");
        for run in [
            sandbox.run(&["plugin", "search"]),
            install(&sandbox, &format!("https://{host}/guard/release.dsse.json")),
            install(&sandbox, &format!("oci://{host}/acme/guard@sha256:{digest}")),
            sandbox.run(&["registry", "verify", &format!("https://{host}/"), "--root", &root]),
        ] {
            assert_eq!(run.code, 2, "{host}: {run:?}");
            assert!(run.stderr.contains("which is not dialled"), "{host}: {run:?}");
            assert!(run.stderr.contains("private: true"), "{host}: {run:?}");
        }
    }
    // From cloud credentials nobody gets a plugin, whatever stands in the configuration.
    configure(&sandbox, "https://169.254.169.254/", &root, "{ host: 169.254.169.254, private: true }");
    sandbox.run(&["plugin", "search"]).exits(2);
}

#[test]
fn gate_private_a_server_of_a_private_network_is_reached_where_the_operator_says_that_it_is_there() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let guard = plugin(&sandbox, "1.0.0", 1);
    change(&sandbox, &["publish", &path(&sandbox, "registry"), &guard], &["publish"]).exits(0);
    let ca = sandbox.write("inside-ca.pem", INSIDE_CA);
    let index = Files::serve_as("127.0.0.1", &sandbox.path("registry"), INSIDE, INSIDE_KEY);
    let release = Files::serve_as("127.0.0.1", Path::new(&guard), INSIDE, INSIDE_KEY);
    let library = preload::library(&sandbox, "network", preload::NETWORK);
    let log = sandbox.path("network.log").display().to_string();
    let run = |arguments: &[&str]| {
        sandbox.write("network.log", "");
        let run = sandbox.run_with(arguments, "", &[("LD_PRELOAD", &library), ("NETWORK_LOG", &log)]);
        (run, sandbox.read("network.log"))
    };
    for inside in ["registry.internal", "10.1.2.3"] {
        let [index_host, release_host] =
            [&index.host, &release.host].map(|host| host.replace("127.0.0.1", inside));
        let (place, release_url) =
            (format!("https://{index_host}"), format!("https://{release_host}/release.dsse.json"));
        let hosts = |private: &str| {
            [&index_host, &release_host]
                .map(|host| format!("{{ host: \"{host}\", ca: \"{ca}\"{private} }}"))
                .join(", ")
        };
        let by_name: &[&str] = &["plugin", "install", "acme/guard", "--yes"];
        let by_url: &[&str] = &["plugin", "install", &release_url, "--yes"];
        let verify: &[&str] = &["registry", "verify", &place, "--root", &root, "--ca", &ca];
        // An authority vouches for it, and nobody says that it is in a private network: nothing is dialled.
        configure(&sandbox, &place, &root, &hosts(""));
        for arguments in [by_name, by_url, verify] {
            let (run, dialled) = run(arguments);
            assert_eq!((run.code, dialled.as_str()), (2, ""), "{inside}: {run:?}");
            assert!(run.stderr.contains("not dialled") && run.stderr.contains("private: true"), "{run:?}");
        }
        configure(&sandbox, &place, &root, &hosts(", private: true"));
        for arguments in [by_name, by_url, &[verify, &["--private"]].concat()] {
            let (run, dialled) = run(arguments);
            assert_eq!(run.code, 0, "{inside}: {run:?}");
            assert!(
                dialled.lines().count() > 0 && dialled.lines().all(|line| line == "10.1.2.3"),
                "{dialled}"
            );
        }
        sandbox.run(&["plugin", "remove", "acme/guard"]).exits(0);
    }
}

#[test]
fn a_password_in_the_file_a_host_that_is_none_and_half_a_sign_in_are_refused_with_their_place() {
    let sandbox = sandbox();
    let place = path(&sandbox, "registry");
    let root = format!("sha256:{}", "0".repeat(64));
    for (host, said) in [
        ("{ host: registry.example, username: ci, password: hunter2 }", "toolgate secret set"),
        ("{ host: \"https://registry.example\" }", "write HOST or HOST:PORT"),
        ("{ host: registry.example/path }", "write HOST or HOST:PORT"),
        ("{ host: registry.example, username: ci }", "go together"),
        ("{ ca: ./ca.pem }", "`host` is missing"),
        ("{ host: registry.example }, { host: Registry.Example }", "two entries"),
        ("{ host: registry.example, verify: false }", "verify"),
    ] {
        configure(&sandbox, &place, &root, host);
        let run = sandbox.run(&["config", "check"]).exits(2);
        assert!(run.stderr.contains(said) && !run.stderr.contains("hunter2"), "{host}: {run:?}");
    }
    configure(&sandbox, &place, &root, "{ host: Registry.Example, username: ci, password: \"${OCI_WORD}\" }");
    let shown = sandbox.run_with(&["config", "show", "--json"], "", &[("OCI_WORD", "hunter2")]).exits(0);
    assert!(shown.stdout.contains("registry.example") && shown.stdout.contains("${OCI_WORD}"), "{shown:?}");
    assert!(!shown.stdout.contains("hunter2") && !shown.stderr.contains("hunter2"), "{shown:?}");
    // Without a value nobody signs in, and nobody goes on as somebody else.
    let oci = format!("oci://registry.example/acme/guard@sha256:{}", "0".repeat(64));
    let run = install(&sandbox, &oci).exits(2);
    assert!(run.stderr.contains("variable of its password has no value"), "{run:?}");
}

#[test]
fn a_registry_is_served_over_https_with_the_certificate_that_is_given() {
    let sandbox = sandbox();
    let root = registry(&sandbox);
    let ca = sandbox.write("ca.pem", CA);
    let (certificate, key) = (sandbox.write("server.pem", SERVER), sandbox.write("server.key", SERVER_KEY));
    let served = Served::start_with(&sandbox, &["--tls-cert", &certificate, "--tls-key", &key]);
    assert!(served.url.starts_with("https://127.0.0.1:"), "{}", served.url);
    sandbox.run(&["registry", "verify", &served.url, "--root", &root, "--ca", &ca]).exits(0);
    untrusted(&sandbox.run(&["registry", "verify", &served.url, "--root", &root]), "certificate");
    let dir = path(&sandbox, "registry");
    let refused = ["registry", "serve", &dir, "--tls-cert", &certificate, "--tls-key", &certificate];
    let run = sandbox.run(&refused).exits(2);
    assert!(run.stderr.contains("private key"), "{run:?}");
    sandbox.run(&["registry", "serve", &dir, "--tls-cert", &certificate]).exits(2);
}
