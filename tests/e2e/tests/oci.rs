//! Plugins in a real OCI registry: Debian's `docker-registry`, which has no referrers API.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolgate_e2e::{PATIENCE, Sandbox};
use toolgate_signing::SigningKey;

use crate::indexes::along::{judges_settings, with_schema};
use crate::registry::{ACME, plugin};
use crate::web::TokenProxy;
use crate::{ECHO, sandbox};

/// A running registry with its files in the sandbox, ended with the test.
struct Oci {
    child: Child,
    host: String,
}

impl Oci {
    fn start(sandbox: &Sandbox) -> Self {
        Self::start_with(sandbox, "")
    }

    /// With further lines of its settings.
    fn start_with(sandbox: &Sandbox, more: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{free}");
        let root = sandbox.path("oci");
        let settings = sandbox.write(
            "oci.yaml",
            format!(
                "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }}, delete: {{ enabled: true }} }}\nhttp: {{ addr: {host} }}\n{more}",
                root.display()
            ),
        );
        let mut command = Command::new("docker-registry");
        command.args(["serve", &settings]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|error| {
            panic!("docker-registry cannot be started ({error}); install it: apt-get install docker-registry")
        });
        let until = Instant::now() + PATIENCE;
        while std::net::TcpStream::connect(&host).is_err() {
            assert!(Instant::now() < until, "the registry answers at {host}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self { child, host }
    }
}

impl Drop for Oci {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn card_012_a_plugin_goes_through_a_registry_without_referrers_by_the_fallback_tag() {
    let sandbox = sandbox();
    let oci = Oci::start(&sandbox);
    let key = SigningKey::from_seed(&ACME).public();
    sandbox.configure_fixture(
        &[],
        &format!("    capabilities:\n      allow: [\"mcp.call:fix\"]\nplugins:\n  trust: [{{ plugins: \"acme/*\", keys: [\"{key}\"] }}]\n"),
    );
    let guard = plugin(&sandbox, "1.0.0", 1);
    let target = format!("oci://{}/acme/guard:1.0.0", oci.host);
    let pushed = sandbox.run(&["plugin", "publish", &guard, &target, "--json"]).exits(0).json();
    assert_eq!(pushed["fallback_tag"], true, "{pushed}");
    let reference = pushed["reference"].as_str().unwrap();
    let again = sandbox.run(&["plugin", "publish", &guard, &target, "--json"]).exits(0).json();
    assert_eq!(again["reference"], reference, "the same plugin has the same address");
    // The verb of registries takes such a one as well, and no key: nobody signs there but the author.
    let other = sandbox.run(&["registry", "publish", &target, &guard, "--json"]).exits(0).json();
    assert_eq!(other["reference"], reference, "{other}");
    let run = sandbox.run(&["registry", "publish", &target, &guard, "--key", "x"]).exits(2);
    assert!(run.stderr.contains("signed by nobody but the author"), "{run:?}");
    let run = sandbox.run(&["registry", "publish", "ftp://here/acme/guard", &guard]).exits(2);
    assert!(run.stderr.contains("oci://HOST/REPOSITORY"), "{run:?}");
    let installed = sandbox.run(&["plugin", "install", reference, "--yes", "--json"]).exits(0).json();
    assert_eq!(installed["version"], "1.0.0");
    sandbox.run(&ECHO).exits(3);
    let row = sandbox.audit().into_iter().find(|row| row["details"]["event"] == "plugin_installed").unwrap();
    assert_eq!(row["details"]["source"], reference);
    // Another component under the digest that was named is not what was named.
    let blobs = sandbox.path("oci/docker/registry/v2/blobs/sha256");
    let component = installed["component"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let blob = blobs.join(&component[..2]).join(&component).join("data");
    let good = std::fs::read(&blob).unwrap();
    let mut bad = good.clone();
    bad[20] ^= 1;
    std::fs::write(&blob, &bad).unwrap();
    let run = sandbox.run(&["plugin", "install", reference, "--yes"]).exits(5);
    assert!(run.stderr.contains("was named") && run.stderr.contains("next:"), "{run:?}");
    std::fs::write(&blob, good).unwrap();
    sandbox.run(&["plugin", "remove", "acme/guard"]).exits(0);
    let target = format!("oci://{}/acme/schema", oci.host);
    let pushed =
        sandbox.run(&["plugin", "publish", &with_schema(&sandbox), &target, "--json"]).exits(0).json();
    judges_settings(&sandbox, pushed["reference"].as_str().unwrap());
    // A release by nobody who is trusted is worth nothing here either.
    sandbox.configure_fixture(&[], "");
    sandbox.run(&["plugin", "install", reference, "--yes"]).exits(5);
    let none = format!("oci://{}/acme/guard@sha256:{}", oci.host, "0".repeat(64));
    sandbox.run(&["plugin", "install", &none]).exits(1);
    sandbox.run(&["plugin", "install", &format!("oci://{}/acme/guard:1.0.0", oci.host)]).exits(2);
    drop(oci);
    sandbox.run(&["plugin", "publish", &guard, &target]).exits(1);
    sandbox.run(&["plugin", "publish", &guard, "registry"]).exits(2);
}

/// `ci` with the password below, as `htpasswd` writes it.
const HTPASSWD: &str = "ci:$2y$05$abcdefghijklmnopqrstuu1C7yeI3ZG3Jm.nHdnKkGJg1xTYKP9Oy\n";
const PASSWORD: &str = "secret word";
/// Both as `Authorization: Basic` has them.
const BASIC: &str = "Basic Y2k6c2VjcmV0IHdvcmQ=";

/// The key of `acme/*` is trusted, and this host is known with a sign-in.
fn signing_in(sandbox: &Sandbox, host: &str) {
    let key = SigningKey::from_seed(&ACME).public();
    sandbox.configure_fixture(
        &[],
        &format!(
            "plugins:\n  trust: [{{ plugins: \"acme/*\", keys: [\"{key}\"] }}]\n  hosts: [{{ host: \"{host}\", username: ci, password: \"${{OCI_WORD}}\" }}]\n"
        ),
    );
}

/// Publishes and installs with the right word, and neither without it nor with another one.
fn goes_through_with_a_sign_in(sandbox: &Sandbox, host: &str) {
    let guard = plugin(sandbox, "1.0.0", 1);
    let target = format!("oci://{host}/acme/guard:1.0.0");
    let (right, wrong) = (sandbox.write("right", PASSWORD), sandbox.write("wrong", "another word"));
    let run = sandbox.run(&["plugin", "publish", &guard, &target]).exits(4);
    assert!(
        run.stderr.contains("no name and password were given") && run.stderr.contains("next:"),
        "{run:?}"
    );
    let publish = |file: &str| {
        sandbox.run(&[
            "plugin",
            "publish",
            &guard,
            &target,
            "--username",
            "ci",
            "--password-file",
            file,
            "--json",
        ])
    };
    publish(&wrong).exits(4);
    let pushed = publish(&right).exits(0).json();
    let reference = pushed["reference"].as_str().unwrap();
    let install = |word: &str| {
        let loud = [("OCI_WORD", word), ("TOOLGATE_LOG", "trace")];
        sandbox.run_with(&["plugin", "install", reference, "--yes"], "", &loud)
    };
    signing_in(sandbox, "127.0.0.1:1");
    install(PASSWORD).exits(4);
    signing_in(sandbox, host);
    let refused = install("another word").exits(4);
    assert!(!refused.stderr.contains("another word"), "{refused:?}");
    let done = install(PASSWORD).exits(0);
    // Neither the word nor what stands for it is written anywhere.
    for said in [PASSWORD, BASIC.trim_start_matches("Basic "), "the-token"] {
        assert!(!done.stdout.contains(said) && !done.stderr.contains(said), "{said}: {done:?}");
        for file in ["audit.db", "audit.db-wal", "state.db", "plugins.d/acme.guard.toml"] {
            let bytes = std::fs::read(sandbox.data().join(file)).unwrap_or_default();
            assert!(!bytes.windows(said.len()).any(|window| window == said.as_bytes()), "{said} in {file}");
        }
    }
}

#[test]
fn a_registry_that_wants_a_name_and_a_password_gets_those_of_the_configuration_and_nobody_else_does() {
    let sandbox = sandbox();
    let known = sandbox.write("htpasswd", HTPASSWD);
    let oci =
        Oci::start_with(&sandbox, &format!("auth: {{ htpasswd: {{ realm: tests, path: {known} }} }}\n"));
    goes_through_with_a_sign_in(&sandbox, &oci.host);
}

#[test]
fn a_registry_that_wants_a_token_gets_one_from_its_service_and_the_password_goes_there_alone() {
    let sandbox = sandbox();
    let oci = Oci::start(&sandbox);
    let proxy = TokenProxy::start(&oci.host, BASIC);
    goes_through_with_a_sign_in(&sandbox, &proxy.host);
    let asked = proxy.asked.lock().unwrap().clone();
    assert!(asked.iter().any(|(line, scheme)| line.contains("/v2/") && scheme == "Bearer"), "{asked:?}");
    for (line, scheme) in &asked {
        assert!(scheme != "Basic" || line.starts_with("GET /token?service=tests&scope=repository"), "{line}");
    }
}
