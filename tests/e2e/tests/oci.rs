//! Plugins in a real OCI registry: Debian's `docker-registry`, which has no referrers API.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolgate_e2e::{PATIENCE, Sandbox};
use toolgate_signing::SigningKey;

use crate::registry::{ACME, plugin};
use crate::sandbox;

/// A running registry with its files in the sandbox, ended with the test.
struct Oci {
    child: Child,
    host: String,
}

impl Oci {
    fn start(sandbox: &Sandbox) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let host = format!("127.0.0.1:{free}");
        let root = sandbox.path("oci");
        let settings = sandbox.write(
            "oci.yaml",
            format!(
                "version: 0.1\nlog: {{ level: error }}\nstorage: {{ filesystem: {{ rootdirectory: {} }}, delete: {{ enabled: true }} }}\nhttp: {{ addr: {host} }}\n",
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
    let installed = sandbox.run(&["plugin", "install", reference, "--yes", "--json"]).exits(0).json();
    assert_eq!(installed["version"], "1.0.0");
    sandbox.run(&["mcp", "call", "fix.echo", "--json", r#"{"message":"hi"}"#]).exits(3);
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
