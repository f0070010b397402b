//! What a plugin may reach outside its own memory, on the built binary: signed guests that want more
//! than they were given, and that get a value that says so, while the gateway goes on.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use toolgate_e2e::{Run, Sandbox};
use toolgate_signing::{
    Access, Capabilities, FilesCapability, HttpCapability, Kind, KvCapability, SecretCapability, SigningKey,
    sign_release,
};

use crate::guests::{Source, component, release};
use crate::{ECHO, sandbox};

const ALLOW: &str = "    capabilities:\n      allow: [\"mcp.call:fix\"]\n";

/// Configures a policy that has these capabilities and grants; `grants` is YAML in flow style.
pub(crate) fn install(
    sandbox: &Sandbox,
    guest: &[u8],
    capabilities: Capabilities,
    grants: &str,
    fixture: &[&str],
) {
    let key = SigningKey::from_seed(&[7; 32]);
    let mut stated = release(Kind::Policy, guest);
    stated.capabilities = capabilities;
    sandbox.write("plugin/component.wasm", guest);
    sandbox.write("plugin/release.dsse.json", sign_release(&stated, guest, &key));
    let dir = sandbox.path("plugin").display().to_string();
    let trusted = key.public().to_string();
    sandbox.configure_fixture(
        fixture,
        &format!(
            "{ALLOW}plugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{trusted}\"] }}\n  load:\n    - {{ plugin: {dir:?}, decisions: [deny, ask], grants: {grants} }}\n"
        ),
    );
}

pub(crate) fn echo(sandbox: &Sandbox) -> Run {
    sandbox.run(&ECHO)
}

/// A policy that opens the label `api`, sends a GET, and denies with what the host said if it said
/// no; where it got an answer it denies with the body, so that a test can see it.
pub(crate) fn asks_http(url: &str) -> Vec<u8> {
    asks_http_and(url, "(call $said (i32.const 3) (i32.load (i32.const 624)) (i32.load (i32.const 628)))")
}

/// The same, which does something else where it got an answer.
pub(crate) fn asks_http_and(url: &str, answered: &str) -> Vec<u8> {
    component(&Source {
        imports: &["http"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/http@0.1.0" "[static]client.open" (func $open (param i32 i32 i32)))
            (import "toolgate:plugin/http@0.1.0" "[method]client.send" (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#,
        body: &format!(
            r#"(data (i32.const 1024) "api") (data (i32.const 1040) "GET") (data (i32.const 1100) "{url}")
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $drop (local.get 0))
              (call $open (i32.const 1024) (i32.const 3) (i32.const 512))
              (if (i32.load8_u (i32.const 512)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 520)) (i32.load (i32.const 524))))))
              (call $send (i32.load (i32.const 516)) (i32.const 1040) (i32.const 3) (i32.const 1100) (i32.const {length})
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 600))
              (if (i32.load8_u (i32.const 600)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 608)) (i32.load (i32.const 612))))))
              {answered})"#,
            length = url.len()
        ),
    })
}

pub(crate) fn http() -> Capabilities {
    let hosts = vec!["https://api.example.com".to_owned()];
    let label = HttpCapability { hosts, methods: vec!["get".to_owned()], max_response: None };
    Capabilities { http: [("api".to_owned(), label)].into(), ..Capabilities::default() }
}

/// A server on a loopback port that gives each connection these bytes, then one more every 50 ms
/// where it drips; counts connections.
pub(crate) fn server(answer: &str, drips: bool) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let met = Arc::new(AtomicUsize::new(0));
    let (count, answer) = (Arc::clone(&met), answer.to_owned());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            count.fetch_add(1, Ordering::SeqCst);
            let answer = answer.clone();
            std::thread::spawn(move || {
                let until = Instant::now() + Duration::from_secs(30);
                let _ = stream.read(&mut [0; 2048]);
                let mut open = stream.write_all(answer.as_bytes()).is_ok() && drips;
                while open {
                    std::thread::sleep(Duration::from_millis(50));
                    // Who has said nothing goes on saying nothing; a body comes byte by byte.
                    let next: &[u8] = if answer.is_empty() { b"" } else { b"x" };
                    open = stream.write_all(next).is_ok() && Instant::now() < until;
                }
            });
        }
    });
    (origin, met)
}

// FT-07
#[test]
fn gate_grant_a_policy_reaches_the_origin_that_the_operator_named() {
    let (origin, met) = server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nreached", false);
    let sandbox = sandbox();
    install(&sandbox, &asks_http(&origin), http(), &format!("{{ http: {{ api: [\"{origin}\"] }} }}"), &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("reached"), "{run:?}");
    assert_eq!(met.load(Ordering::SeqCst), 1);

    // Without the grant it is not in force, and nothing is served that it should have judged.
    install(&sandbox, &asks_http(&origin), http(), "{}", &[]);
    let run = echo(&sandbox).exits(2);
    assert!(run.stderr.contains("no label of it is granted"), "{run:?}");
    // With a grant for another origin it is refused in the call, by a value.
    install(&sandbox, &asks_http(&origin), http(), "{ http: { api: [\"http://127.0.0.1:1\"] } }", &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("is not among the hosts of http.api"), "{run:?}");
    assert_eq!(met.load(Ordering::SeqCst), 1);
}

#[test]
fn a_grant_that_widens_a_release_refuses_the_start() {
    let sandbox = sandbox();
    install(&sandbox, &asks_http("https://x"), http(), "{ http: { api: [\"https://evil.example\"] } }", &[]);
    let run = echo(&sandbox).exits(2);
    assert!(run.stderr.contains("https://evil.example") && run.stderr.contains("release"), "{run:?}");
}

// FR-35
#[test]
fn a_redirect_to_127_0_0_1_is_not_followed_into_this_machine() {
    let (inner, inner_met) = server("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\ninternal", false);
    let (outer, _) = server(
        &format!(
            "HTTP/1.1 302 Found\r\nlocation: {inner}/admin\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        ),
        false,
    );
    let sandbox = sandbox();
    install(&sandbox, &asks_http(&outer), http(), &format!("{{ http: {{ api: [\"{outer}\"] }} }}"), &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("is not among the hosts") && !run.stderr.contains("internal"), "{run:?}");
    assert_eq!(inner_met.load(Ordering::SeqCst), 0);
}

#[test]
fn a_policy_that_sleeps_in_a_host_call_or_is_dripped_upon_ends_while_others_are_served() {
    let (silent, _) = server("", true);
    let (dripping, _) = server("HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", true);
    for origin in [silent, dripping] {
        let sandbox = sandbox();
        let grants = format!("{{ http: {{ api: {{ hosts: [\"{origin}\"], timeout: 4s }} }} }}");
        install(&sandbox, &asks_http(&origin), http(), &grants, &[]);
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let started = Instant::now();
        let call = ("tools/call", json!({ "name": "fix__echo", "arguments": { "message": "hi" } }));
        let order = client.order_of(&[call, ("tools/list", json!({})), ("ping", json!({}))]);
        assert_eq!(order[2].0, 0, "the others are answered while it waits: {order:?}");
        let text = order[2].1.to_string();
        assert!(text.contains("no complete answer within the timeout"), "{text}");
        assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
        assert!(order.iter().any(|(_, reply)| reply["result"]["tools"].is_array()), "{order:?}");
    }
}

#[test]
fn a_symlink_out_of_the_directory_is_denied() {
    let sandbox = sandbox();
    sandbox.write("data-dir/inside.txt", "inside");
    sandbox.write("secret.txt", "s3cret-content");
    std::os::unix::fs::symlink("../secret.txt", sandbox.path("data-dir/link")).unwrap();
    for (path, said) in [("inside.txt", "inside"), ("link", "leaves its directory")] {
        let guest = component(&Source {
            imports: &["files"],
            exports: &["call-hook"],
            core_imports: r#"(import "toolgate:plugin/files@0.1.0" "[static]dir.open" (func $open (param i32 i32 i32)))
                (import "toolgate:plugin/files@0.1.0" "[method]dir.read" (func $read (param i32 i32 i32 i64 i64 i32)))"#,
            body: &format!(
                r#"(data (i32.const 1024) "work") (data (i32.const 1100) "{path}")
                (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                  (call $drop (local.get 0))
                  (call $open (i32.const 1024) (i32.const 4) (i32.const 512))
                  (if (i32.load8_u (i32.const 512)) (then unreachable))
                  (call $read (i32.load (i32.const 516)) (i32.const 1100) (i32.const {length}) (i64.const 0) (i64.const 100) (i32.const 600))
                  (if (i32.load8_u (i32.const 600)) (then (return
                    (call $said (i32.const 3) (i32.load (i32.const 608)) (i32.load (i32.const 612))))))
                  (call $said (i32.const 3) (i32.load (i32.const 604)) (i32.load (i32.const 608))))"#,
                length = path.len()
            ),
        });
        let label = FilesCapability { access: Access::Read, settings: None };
        let capabilities =
            Capabilities { files: [("work".to_owned(), label)].into(), ..Capabilities::default() };
        let dir = sandbox.path("data-dir").display().to_string();
        install(&sandbox, &guest, capabilities, &format!("{{ files: {{ work: {dir:?} }} }}"), &[]);
        let run = echo(&sandbox).exits(3);
        assert!(run.stderr.contains(said) && !run.stderr.contains("s3cret"), "{run:?}");
    }
}

#[test]
fn a_secret_that_was_granted_as_a_handle_is_not_seen_because_another_may_be() {
    let sandbox = sandbox();
    let label = || SecretCapability { purpose: "test".to_owned(), send_to: Vec::new(), reveal: true };
    let capabilities = Capabilities {
        secrets: [("token".to_owned(), label()), ("other".to_owned(), label())].into(),
        ..Capabilities::default()
    };
    let grants = "{ secrets: { token: \"s3cret-value\", other: { value: \"seen\", reveal: true } } }";
    install(&sandbox, &reads_secret(), capabilities, grants, &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("granted as a handle") && !run.stderr.contains("s3cret-value"), "{run:?}");
    assert!(sandbox.audit().iter().all(|row| row["details"]["event"] != "secret_revealed"));
}

/// A policy that opens the secret `token`, asks for its value, and denies with it.
pub(crate) fn reads_secret() -> Vec<u8> {
    component(&Source {
        imports: &["secrets", "secrets-reveal"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/secrets@0.1.0" "[static]secret.open" (func $open (param i32 i32 i32)))
            (import "toolgate:plugin/secrets-reveal@0.1.0" "reveal" (func $reveal (param i32 i32)))"#,
        body: r#"(data (i32.const 1024) "token")
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $drop (local.get 0))
              (call $open (i32.const 1024) (i32.const 5) (i32.const 512))
              (if (i32.load8_u (i32.const 512)) (then unreachable))
              (call $reveal (i32.load (i32.const 516)) (i32.const 600))
              (if (i32.load8_u (i32.const 600)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 608)) (i32.load (i32.const 612))))))
              (call $said (i32.const 3) (i32.load (i32.const 604)) (i32.load (i32.const 608))))"#,
    })
}

#[test]
fn gate_reveal_a_secret_is_not_read_without_reveal_and_each_use_is_in_the_audit_log() {
    let sandbox = sandbox();
    let label = |reveal| SecretCapability { purpose: "test".to_owned(), send_to: Vec::new(), reveal };
    let capabilities = |reveal| Capabilities {
        secrets: [("token".to_owned(), label(reveal))].into(),
        ..Capabilities::default()
    };
    let guest = reads_secret();
    let handle = "{ secrets: { token: \"s3cret-value\" } }";
    let revealed = "{ secrets: { token: { value: \"s3cret-value\", reveal: true } } }";
    let row = |sandbox: &Sandbox| {
        sandbox.audit().into_iter().find(|row| row["details"]["event"] == "secret_revealed")
    };

    install(&sandbox, &guest, capabilities(true), handle, &[]);
    let run = echo(&sandbox).exits(2);
    assert!(run.stderr.contains("secrets-reveal"), "the operator opened no secret to be seen: {run:?}");
    install(&sandbox, &guest, capabilities(false), revealed, &[]);
    let run = echo(&sandbox).exits(2);
    assert!(run.stderr.contains("does not ask to see"), "{run:?}");
    assert!(row(&sandbox).is_none());

    install(&sandbox, &guest, capabilities(true), revealed, &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("s3cret-value"), "{run:?}");
    let row = row(&sandbox).unwrap();
    assert_eq!(
        (&row["details"]["plugin"], &row["details"]["label"]),
        (&json!("test/guest"), &json!("token"))
    );
    assert_eq!(row["persona_id"], "default");
    assert!(!sandbox.run(&["config", "show"]).stdout.contains("s3cret-value"));
}

/// A policy that denies with the error of a write to `kv`, or with what was there before it: nothing, then
/// what it wrote.
pub(crate) fn keeps_values() -> Vec<u8> {
    component(&Source {
        imports: &["kv"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/kv@0.1.0" "[static]store.open" (func $open (param i32 i32 i32 i32)))
        (import "toolgate:plugin/kv@0.1.0" "[method]store.get" (func $get (param i32 i32 i32 i32)))
        (import "toolgate:plugin/kv@0.1.0" "[method]store.put" (func $put (param i32 i32 i32 i32 i32 i32 i64 i32)))"#,
        body: r#"(data (i32.const 1024) "seen") (data (i32.const 1040) "key") (data (i32.const 1060) "stored before")
        (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
          (call $drop (local.get 0))
          (call $open (i32.const 1024) (i32.const 4) (i32.const 1) (i32.const 512))
          (if (i32.load8_u (i32.const 512)) (then unreachable))
          (call $get (i32.load (i32.const 516)) (i32.const 1040) (i32.const 3) (i32.const 600))
          (if (i32.load8_u (i32.const 600)) (then unreachable))
          (call $put (i32.load (i32.const 516)) (i32.const 1040) (i32.const 3) (i32.const 1060) (i32.const 13)
            (i32.const 0) (i64.const 0) (i32.const 704))
          (if (i32.load8_u (i32.const 704)) (then (return
            (call $said (i32.const 3) (i32.load (i32.const 716)) (i32.load (i32.const 720))))))
          (if (i32.load8_u (i32.const 608)) (then (return
            (call $said (i32.const 3) (i32.load (i32.const 616)) (i32.load (i32.const 620))))))
          (call $said (i32.const 0) (i32.const 0) (i32.const 0)))"#,
    })
}

#[test]
fn what_a_policy_stores_is_there_in_the_next_process_and_a_full_store_says_so() {
    let guest = keeps_values();
    let label = KvCapability { max_bytes: 64 };
    let capabilities =
        || Capabilities { kv: [("seen".to_owned(), label.clone())].into(), ..Capabilities::default() };
    let sandbox = sandbox();
    install(&sandbox, &guest, capabilities(), "{ kv: [seen] }", &[]);
    echo(&sandbox).exits(0);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("stored before"), "{run:?}");
    let full = crate::sandbox();
    install(&full, &guest, capabilities(), "{ kv: { seen: { max_bytes: 10 } } }", &[]);
    let run = echo(&full).exits(3);
    assert!(run.stderr.contains("the quota of kv.seen is 10 bytes"), "{run:?}");
}

#[test]
fn gate_symlink_the_filesystem_adapter_refuses_a_link_that_leads_out_of_its_roots() {
    let sandbox = sandbox();
    sandbox.write("root/notes.txt", "x");
    sandbox.write("outside/secret.txt", "x");
    std::os::unix::fs::symlink("../outside", sandbox.path("root/out")).unwrap();
    std::os::unix::fs::symlink("notes.txt", sandbox.path("root/alias")).unwrap();
    let root = sandbox.path("root").display().to_string();
    let entry = format!(
        "{}    adapter: {{ plugin: toolgate/filesystem, settings: {{ roots: [{root:?}] }} }}\n",
        sandbox.fixture_entry("fix", &[])
    );
    sandbox.configure(&format!("servers:\n{entry}personas:\n  default:\n    servers: [fix]\n{ALLOW}"));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    for path in ["out/secret.txt", "out/new.txt", "out"] {
        let refused = client.call("fix__received", &json!({ "path": path }));
        assert_eq!(refused.pointer("/_meta/toolgate~1error/code").unwrap(), "adapter_refused", "{path}");
    }
    let received = client.call("fix__received", &json!({ "path": "alias" }));
    let text = received["content"][0]["text"].as_str().unwrap();
    assert!(text.contains(&format!("{root}/notes.txt")), "the server gets what the link means: {text}");
}
