//! Components that take more than they may have: each limit ends the guest's call with its own reason,
//! and the calls of other servers go on.

use std::fmt::Write as _;

use serde_json::json;
use toolgate_signing::{Kind, SigningKey, sign_release};

use crate::guests::{Source, component, release};
use crate::sandbox;

/// A guest, the limit it runs into, and words of the reason.
struct Case {
    name: &'static str,
    core_imports: &'static str,
    imports: &'static [&'static str],
    /// Beside the exported functions.
    body: &'static str,
    /// What `arguments` does; the request is local 0.
    arguments: &'static str,
    reason: &'static str,
}

const PLAIN: Case = Case { name: "", core_imports: "", imports: &[], body: "", arguments: "", reason: "" };

const CASES: [Case; 10] = [
    Case {
        name: "memory",
        arguments: "(loop $more (br_if $more (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable",
        reason: "limit of memory",
        ..PLAIN
    },
    Case {
        name: "tables",
        body: "(table $t 1 funcref)",
        arguments: "(loop $more (br_if $more (i32.ne (table.grow $t (ref.null func) (i32.const 1000)) (i32.const -1)))) unreachable",
        reason: "limit of table elements",
        ..PLAIN
    },
    Case {
        name: "stack",
        body: "(func $down (param i32) (result i32) (i32.add (call $down (local.get 0)) (i32.const 1)))",
        arguments: "(call $down (i32.const 0))",
        reason: "more stack than the limit",
        ..PLAIN
    },
    Case {
        name: "handles",
        core_imports: r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.document" (func $document (param i32 i32)))"#,
        arguments: "(loop $ever (call $document (local.get 0) (i32.const 64)) (br $ever)) (i32.const 0)",
        reason: "handles",
        ..PLAIN
    },
    // One text of 2 MiB, twice what a host call may carry.
    Case {
        name: "host-call",
        imports: &["log"],
        core_imports: r#"(import "toolgate:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#,
        arguments: "(drop (memory.grow (i32.const 64))) (call $log (i32.const 1) (i32.const 1024) (i32.const 2097152)) (i32.const 0)",
        reason: "fuel",
        ..PLAIN
    },
    Case {
        name: "output",
        arguments: "(call $drop (local.get 0)) (drop (memory.grow (i32.const 700))) (call $said (i32.const 2) (i32.const 1024) (i32.const 40000000))",
        reason: "fuel",
        ..PLAIN
    },
    // A text of 100 MB that is not there: no byte of it is copied.
    Case {
        name: "hundred-mb",
        arguments: "(call $drop (local.get 0)) (call $said (i32.const 2) (i32.const 1024) (i32.const 100000000))",
        reason: "out of bounds",
        ..PLAIN
    },
    Case {
        name: "deadline",
        arguments: "(loop $ever (br $ever)) (i32.const 0)",
        reason: "ran longer than its deadline",
        ..PLAIN
    },
    Case { name: "trap", arguments: "unreachable", reason: "unreachable", ..PLAIN },
    Case {
        name: "no-json",
        body: r#"(data (i32.const 1024) "no json")"#,
        arguments: "(call $drop (local.get 0)) (call $said (i32.const 2) (i32.const 1024) (i32.const 7))",
        reason: "JSON",
        ..PLAIN
    },
];

fn adapter(case: &Case) -> Vec<u8> {
    let Case { core_imports, imports, body, arguments, .. } = case;
    component(&Source {
        imports,
        exports: &["adapter"],
        core_imports,
        body: &format!(
            r#"{body}
            (func (export "toolgate:plugin/adapter@0.1.0#configure") (result i32) (i32.const 128))
            (func (export "toolgate:plugin/adapter@0.1.0#tools") (param i32 i32) (result i32)
              (i32.store (i32.const 0) (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.mul (i32.const 12) (local.get 1))))
              (i32.store (i32.const 4) (local.get 1)) (i32.const 0))
            (func (export "toolgate:plugin/adapter@0.1.0#arguments") (param i32) (result i32) {arguments})
            (func (export "toolgate:plugin/adapter@0.1.0#content") (param i32) (result i32)
              (call $drop (local.get 0)) (call $said (i32.const 0) (i32.const 0) (i32.const 0)))"#
        ),
    })
}

#[test]
fn gate_limits_wa_07_a_guest_that_takes_too_much_fails_its_own_call_with_its_own_reason() {
    let sandbox = sandbox();
    let key = SigningKey::from_seed(&[7; 32]);
    let ledger = sandbox.path("ledger").display().to_string();
    let (mut servers, mut names, mut load) =
        (sandbox.fixture_entry("good", &[]), "good".to_owned(), String::new());
    for case in &CASES {
        let guest = adapter(case);
        let mut stated = release(Kind::Adapter, &guest);
        stated.name = format!("test/{}", case.name);
        let dir = format!("plugins/{}", case.name);
        sandbox.write(&format!("{dir}/component.wasm"), &guest);
        sandbox.write(&format!("{dir}/release.dsse.json"), sign_release(&stated, &guest, &key));
        servers += &sandbox.fixture_entry(case.name, &["--ledger", &ledger]);
        let _ = writeln!(servers, "    adapter: {{ plugin: test/{} }}", case.name);
        let _ = write!(names, ", {}", case.name);
        let _ = writeln!(load, "    - {{ plugin: {:?} }}", sandbox.path(&dir).display().to_string());
    }
    sandbox.configure(&format!(
        "servers:\n{servers}personas:\n  default:\n    servers: [{names}]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\nplugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{}\"] }}\n  load:\n{load}",
        key.public()
    ));
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    // All at once: each of them beside a call of the good server, which has to be served meanwhile.
    let call = |server: &str| {
        ("tools/call", json!({ "name": format!("{server}__echo"), "arguments": { "message": server } }))
    };
    let calls: Vec<_> = CASES.iter().flat_map(|case| [call(case.name), call("good")]).collect();
    let replies = client.requests(&calls);
    for (case, replies) in CASES.iter().zip(replies.chunks(2)) {
        let refused = &replies[0]["result"];
        assert_eq!(
            refused.pointer("/_meta/toolgate~1error/code").unwrap(),
            "adapter_refused",
            "{}: {refused}",
            case.name
        );
        let told = refused["content"][0]["text"].as_str().unwrap();
        assert!(
            told.contains(case.reason)
                && told.contains(&format!("test/{}", case.name))
                && told.contains("misbehaved"),
            "{}: {told}",
            case.name
        );
        let other = &replies[1]["result"];
        assert_eq!(other["content"][0]["text"], "good", "beside {}: {other}", case.name);
    }
    assert!(
        !sandbox.read("ledger").contains("tools/call"),
        "a fault of an adapter never passes a call through"
    );
}
