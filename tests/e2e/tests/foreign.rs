//! Policies that others wrote: one that allows everything binds nobody who took something away beforehand,
//! and one that looks at the session gives each session a view of its own.

use serde_json::{Value, json};
use toolgate_e2e::{Http, Run, Sandbox, Stdio};
use toolgate_signing::{Kind, SigningKey, sign_release};

use crate::guests::{Source, TEXTS, component, release, says};
use crate::{ECHO, HI, sandbox};

/// A policy that lets everything pass, but for the entries of a list: of those it says the case that
/// `judge` leaves on the stack, with the handle of the request in `$request`.
fn policy(core_imports: &str, judge: &str) -> Vec<u8> {
    let hook = |name: &str| {
        format!(
            r#"(func (export "toolgate:plugin/{name}@0.1.0#check") (param i32) (result i32) {})"#,
            says(1)
        )
    };
    let hooks: String = ["call-hook", "connect-hook", "read-hook"].map(hook).concat();
    component(&Source {
        imports: &[],
        exports: &["call-hook", "connect-hook", "read-hook", "list-hook"],
        core_imports,
        body: &format!(
            r#"{TEXTS} {hooks}
            (func (export "toolgate:plugin/list-hook@0.1.0#check") (param $at i32) (param $count i32) (result i32)
              (local $all i32) (local $one i32) (local $i i32) (local $request i32)
              (local.set $all (call $alloc (i32.const 0) (i32.const 0) (i32.const 4)
                (i32.mul (i32.const 16) (local.get $count))))
              (block $done (loop $next
                (br_if $done (i32.ge_u (local.get $i) (local.get $count)))
                (local.set $request (i32.load (i32.add (local.get $at) (i32.mul (i32.const 4) (local.get $i)))))
                (local.set $one (i32.add (local.get $all) (i32.mul (i32.const 16) (local.get $i))))
                (i32.store8 (local.get $one) {judge})
                (i32.store offset=4 (local.get $one) (i32.const 1024))
                (i32.store offset=8 (local.get $one) (i32.const 3))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br $next)))
              (i32.store (i32.const 0) (local.get $all)) (i32.store (i32.const 4) (local.get $count))
              (i32.const 0))"#
        ),
    })
}

/// Shows only what ends with the last letter of the session.
fn by_session() -> Vec<u8> {
    let last = |at: u32| {
        format!(
            "(i32.load8_u (i32.sub (i32.add (i32.load (i32.const {at})) (i32.load (i32.const {}))) (i32.const 1)))",
            at + 4
        )
    };
    policy(
        r#"(import "toolgate:plugin/requests@0.1.0" "[method]request.session" (func $session (param i32 i32)))
           (import "toolgate:plugin/requests@0.1.0" "[method]request.name" (func $name (param i32 i32)))"#,
        &format!(
            "(block (result i32)
               (call $session (local.get $request) (i32.const 512)) (call $name (local.get $request) (i32.const 528))
               (if (result i32) (i32.eq {} {}) (then (i32.const 1)) (else (i32.const 3))))",
            last(512),
            last(528)
        ),
    )
}

/// The bundle is off and this policy is all there is; `rest` stands at top level.
fn alone(guest: &[u8], fixture: &[&str], rest: &str) -> Sandbox {
    let sandbox = sandbox();
    configure(&sandbox, guest, fixture, rest);
    sandbox
}

fn configure(sandbox: &Sandbox, guest: &[u8], fixture: &[&str], rest: &str) {
    let key = SigningKey::from_seed(&[7; 32]);
    sandbox.write("plugin/component.wasm", guest);
    sandbox.write("plugin/release.dsse.json", sign_release(&release(Kind::Policy, guest), guest, &key));
    let ledger = sandbox.path("ledger").display().to_string();
    let fixture: Vec<&str> = fixture.iter().copied().chain(["--ledger", &ledger]).collect();
    sandbox.configure_fixture(
        &fixture,
        &format!(
            "plugins:\n  bundle: none\n  trust: [{{ plugins: \"test/*\", keys: [\"{}\"] }}]\n  load: [{{ plugin: {:?}, decisions: [allow, ask, deny] }}]\n{rest}",
            key.public(),
            sandbox.path("plugin").display().to_string()
        ),
    );
}

fn allows_everything(rest: &str) -> Sandbox {
    alone(&policy("", "(i32.const 1)"), &["--full"], rest)
}

fn big(sandbox: &Sandbox) -> Run {
    sandbox.run(&["mcp", "call", "fix.big", "--json", r#"{"bytes":1}"#])
}

fn calls(sandbox: &Sandbox) -> usize {
    sandbox.read("ledger").matches("\"tools/call\"").count()
}

fn code(reply: &Value) -> &str {
    reply.pointer("/_meta/toolgate~1error/code").and_then(Value::as_str).unwrap_or("none")
}

fn client(sandbox: &Sandbox) -> Stdio {
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    client
}

/// Waits until the running gateway says this of a call.
fn until(client: &mut Stdio, tool: &str, meant: &str) -> Value {
    let deadline = std::time::Instant::now() + toolgate_e2e::PATIENCE;
    loop {
        let said = client.call(tool, &json!({ "message": "hi" }));
        if code(&said) == meant {
            return said;
        }
        assert!(std::time::Instant::now() < deadline, "the running gateway does not follow: {said}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn gate_denied_beforehand_what_the_operator_denied_is_denied_whatever_policies_say() {
    let sandbox = allows_everything("");
    sandbox.run(&ECHO).exits(0);
    let mut client = client(&sandbox);
    assert!(client.tool_names().contains(&"fix__echo".to_owned()));
    sandbox.run(&["mcp", "deny", "fix/echo"]).exits(0);
    let told = until(&mut client, "fix__echo", "denied").to_string();
    for part in ["server 'fix'", "`mcp.call:fix/echo`", "toolgate mcp allow fix/echo"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let before = calls(&sandbox);
    sandbox.run(&ECHO).exits(3);
    let names = client.tool_names();
    assert!(!names.contains(&"fix__echo".to_owned()), "it is not listed either: {names:?}");
    assert!(names.contains(&"fix__big".to_owned()), "and nothing beside it is gone: {names:?}");
    assert_eq!(calls(&sandbox), before, "nothing of it was sent");
    let explained = sandbox.run(&["mcp", "explain", "fix.echo", "--json"]).exits(0).json();
    assert_eq!((&explained["list"], &explained["call"]), (&json!("deny"), &json!("deny")), "{explained}");
    assert!(explained["reason"].as_str().unwrap().contains("beforehand"), "{explained}");
    let denied: Vec<Value> =
        sandbox.audit().into_iter().filter(|row| row["details"]["event"] == "mcp_denied").collect();
    assert!(
        denied.iter().any(|row| row["tool"] == "echo" && row.to_string().contains("beforehand")),
        "{denied:?}"
    );
    // A resource is denied with its server.
    big(&sandbox).exits(0);
    let read = |client: &mut Stdio| client.request("resources/read", &json!({ "uri": "fix://static" }));
    assert!(read(&mut client).get("result").is_some());
    sandbox.run(&["mcp", "deny", "fix"]).exits(0);
    until(&mut client, "fix__big", "denied");
    assert!(read(&mut client).get("result").is_none());
    big(&sandbox).exits(3);
    sandbox.run(&["mcp", "allow", "fix"]).exits(0);
    big(&sandbox).exits(0);
    sandbox.run(&ECHO).exits(3);
}

// PI-02
#[test]
fn gate_pin_floor_what_is_not_what_was_approved_is_refused_whatever_policies_are_loaded() {
    const TOOLS: &str = r#"[{"name":"echo","description":"one","inputSchema":{"type":"object"}},{"name":"big","description":"two","inputSchema":{"type":"object"}}]"#;
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", TOOLS);
    configure(&sandbox, &policy("", "(i32.const 1)"), &["--tools", &tools], "");
    sandbox.run(&ECHO).exits(0);
    let before = calls(&sandbox);
    let more =
        TOOLS.replace("one", "once").replacen('[', r#"[{"name":"new","inputSchema":{"type":"object"}},"#, 1);
    sandbox.write("tools.json", more);
    let changed = sandbox.run(&ECHO).exits(3);
    for part in ["changed after it was pinned", "toolgate mcp pin fix --accept"] {
        assert!(changed.stderr.contains(part), "{part}: {changed:?}");
    }
    let new = sandbox.run(&["mcp", "call", "fix.new", "--json", "{}"]).exits(3);
    assert!(new.stderr.contains("not among the pinned definitions"), "{new:?}");
    assert_eq!(calls(&sandbox), before, "nothing of either was sent");
    for tool in ["fix.echo", "fix.new"] {
        let explained = sandbox.run(&["mcp", "explain", tool, "--json"]).exits(0).json();
        assert_eq!((&explained["list"], &explained["call"]), (&json!("deny"), &json!("deny")), "{explained}");
    }
    let listed = sandbox.run(&["mcp", "tools", "--json"]).exits(0).json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fix__big"]);
    big(&sandbox).exits(0);
    sandbox.run(&["mcp", "pin", "fix", "--accept"]).exits(0);
    sandbox.run(&ECHO).exits(0);
}

#[test]
fn what_permissions_deny_is_denied_whatever_policies_say() {
    let sandbox = allows_everything("permissions: { mcp: { fix: deny } }\n");
    let told = sandbox.run(&ECHO).exits(3);
    assert!(told.stderr.contains("permissions.mcp of toolgate.yaml denies server 'fix'"), "{told:?}");
    assert_eq!(client(&sandbox).tool_names(), [""; 0]);
    assert_eq!(calls(&sandbox), 0);
}

#[test]
fn gate_asked_beforehand_where_the_operator_wants_to_be_asked_no_policys_allow_is_more_than_an_ask() {
    let sandbox = allows_everything("");
    sandbox.run(&["mcp", "ask", "fix/echo"]).exits(0);
    let asked = sandbox.run(&ECHO).exits(3);
    assert!(asked.stderr.contains("toolgate mcp ask"), "{asked:?}");
    assert_eq!(calls(&sandbox), 0);
    let listed = sandbox.run(&["approvals", "list", "--json"]).exits(0).json();
    sandbox.run(&["approvals", "grant", listed["asks"][0]["id"].as_str().unwrap()]).exits(0);
    sandbox.run(&ECHO).exits(0);
    sandbox.run(&ECHO).exits(3);
    assert_eq!(calls(&sandbox), 1, "what was granted passes once");
    big(&sandbox).exits(0);
    assert!(client(&sandbox).tool_names().contains(&"fix__echo".to_owned()), "what asks stays in sight");

    let whole = allows_everything("permissions: { mcp: ask }\n");
    let asked = whole.run(&["mcp", "call", "fix.echo", "--json", HI]).exits(3);
    assert!(asked.stderr.contains("ask_") && asked.stderr.contains("permissions.mcp"), "{asked:?}");
    assert_eq!(calls(&whole), 0);
}

fn asked_by(server: &Http, thread: &str, method: &str, params: &Value) -> Value {
    let more = [("X-Toolgate-Thread-Id", thread)];
    server.modern_with("/mcp", "1", method, &params.to_string(), &more).message()["result"].clone()
}

#[test]
fn gate_session_views_no_session_sees_or_uses_what_a_policy_shows_to_another() {
    let tools = json!([
        { "name": "note_a", "inputSchema": { "type": "object" } },
        { "name": "note_b", "inputSchema": { "type": "object" } },
    ]);
    let sandbox = sandbox();
    let tools = sandbox.write("tools.json", tools.to_string());
    configure(&sandbox, &by_session(), &["--tools", &tools], "");
    let server = sandbox.serve_http();
    let seen = |thread: &str| -> Vec<String> {
        let listed = asked_by(&server, thread, "tools/list", &json!({}));
        let names = listed["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
        names.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    let used = |thread: &str, tool: &str| {
        let name = format!("fix__{tool}");
        code(&asked_by(&server, thread, "tools/call", &json!({ "name": name, "arguments": {} }))).to_owned()
    };
    // In turns, so that a view that is kept would be the other one's.
    for _ in 0..3 {
        assert_eq!(
            (seen("thread-a"), seen("thread-b")),
            (vec!["fix__note_a".to_owned()], vec!["fix__note_b".to_owned()])
        );
        assert_eq!((used("thread-a", "note_a"), used("thread-b", "note_b")), ("none".into(), "none".into()));
        assert_eq!(
            (used("thread-b", "note_a"), used("thread-a", "note_b")),
            ("denied".into(), "denied".into())
        );
    }
    assert_eq!(calls(&sandbox), 6, "only its own was ever sent");
    let mut none = client(&sandbox);
    assert_eq!(none.tool_names(), [""; 0], "a session of another name sees neither");
}
