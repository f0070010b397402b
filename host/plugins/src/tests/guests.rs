//! Guests for tests: core modules in text, wrapped by `wit-component` against `wit/`, and signed
//! with a key that exists only here.

use std::path::Path;
use std::sync::Arc;

use toolgate_plugins::{
    Admission, DecisionSet, Facts, LoadError, Plugin, PluginHost, Policy, SurfaceKind, inspect, world_of,
};
use toolgate_signing::{
    Capabilities, Kind, Limits, Release, SigningKey, Threshold, VerifiedRelease, sign_release, verify_release,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// What every guest module begins with: the import that gives back a borrowed request, a memory,
/// an allocator that grows it, and `$said`, which writes a decision or a change of the form
/// (case, text) and returns where it is.
pub(crate) const PRELUDE: &str = r#"
  (import "toolgate:plugin/requests@0.1.0" "[resource-drop]request" (func $drop (param i32)))
  IMPORTS
  (memory (export "memory") 2)
  (global $next (mut i32) (i32.const 65536))
  (func $alloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (global.get $next))
    (global.set $next (i32.add (local.get $at) (i32.and (i32.add (local.get 3) (i32.const 7)) (i32.const -8))))
    (block $done (loop $grow
      (br_if $done (i32.le_u (global.get $next) (i32.mul (memory.size) (i32.const 65536))))
      (br_if $done (i32.eq (memory.grow (i32.const 1)) (i32.const -1)))
      (br $grow)))
    (local.get $at))
  (func $said (param $case i32) (param $at i32) (param $length i32) (result i32)
    (i32.store8 (i32.const 16) (local.get $case))
    (i32.store (i32.const 20) (local.get $at))
    (i32.store (i32.const 24) (local.get $length))
    (i32.const 16))
"#;

/// A guest before it is wrapped.
pub(crate) struct Source<'a> {
    /// What its world imports beside `requests`, as `log`.
    pub(crate) imports: &'a [&'a str],
    /// What it exports, as `call-hook`.
    pub(crate) exports: &'a [&'a str],
    /// Core imports, in text.
    pub(crate) core_imports: &'a str,
    /// The rest of the core module, in text.
    pub(crate) body: &'a str,
}

/// The component of a guest.
pub(crate) fn component(source: &Source<'_>) -> Vec<u8> {
    let line = |word: &str, name: &str| format!("{word} toolgate:plugin/{name}@0.1.0;");
    let imports: Vec<_> = source.imports.iter().map(|name| line("import", name)).collect();
    let exports: Vec<_> = source.exports.iter().map(|name| line("export", name)).collect();
    let world = format!(
        "package test:guest; world guest {{ {} {} {} }}",
        line("import", "requests"),
        imports.concat(),
        exports.concat()
    );
    let text = format!("(module {} {})", PRELUDE.replace("IMPORTS", source.core_imports), source.body);
    wrap(&wat::parse_str(text).unwrap(), &world)
}

/// A component made of a core module and the text of its world.
pub(crate) fn wrap(module: &[u8], world: &str) -> Vec<u8> {
    let module = embedded(module, world);
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}

/// The core module that a compiler leaves of a guest with this body, with the description of its world in it.
#[allow(dead_code)] // only the tests of the binary compile sources
pub(crate) fn described(body: &str, world: &str) -> Vec<u8> {
    let text = format!("(module {} {body})", PRELUDE.replace("IMPORTS", ""));
    embedded(&wat::parse_str(text).unwrap(), world)
}

fn embedded(module: &[u8], world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")).unwrap();
    let package = resolve.push_str("guest.wit", world).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    let mut module = module.to_vec();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    module
}

/// A policy with one hook, `call`, whose body may use `$drop`, `$alloc` and `$said`; the handle of
/// the request is local 0 and has to be dropped.
pub(crate) fn call_policy(check: &str) -> Vec<u8> {
    component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {check})"#
        ),
    })
}

/// A component in text with a hook of its own and, beside it, instances of the module `$m`.
/// The hook has another type than the contract's, so it is refused at the latest for that.
pub(crate) fn hook_beside(module: &str, instances: &str) -> Vec<u8> {
    let text = format!(
        r#"(component (core module $m {module}) {instances}
        (core module $g (func (export "g"))) (core instance $c (instantiate $g))
        (func $g (canon lift (core func $c "g"))) (instance $e (export "check" (func $g)))
        (export "toolgate:plugin/call-hook@0.1.0" (instance $e)))"#
    );
    wat::parse_str(text).unwrap()
}

/// Texts that guests say: `yes` at 1024.
pub(crate) const TEXTS: &str = r#"(data (i32.const 1024) "yes")"#;

/// Drops the request and says the case with the text `yes`.
pub(crate) fn says(case: u32) -> String {
    format!("(call $drop (local.get 0)) (call $said (i32.const {case}) (i32.const 1024) (i32.const 3))")
}

/// A release of `component` that declares what it really imports and exports.
pub(crate) fn release(kind: Kind, component: &[u8]) -> Release {
    let shape = inspect(component).unwrap_or_default();
    Release {
        name: "test/guest".into(),
        version: "1.0.0".parse().unwrap(),
        sequence: 1,
        kind,
        world: world_of(kind),
        imports: shape.imports,
        exports: shape.exports,
        capabilities: Capabilities::default(),
        decisions: if kind == Kind::Policy {
            ["allow", "ask", "deny", "redact"].map(String::from).to_vec()
        } else {
            Vec::new()
        },
        limits: Limits::default(),
        min_host: "0.1.0".parse().unwrap(),
        servers: Vec::new(),
        settings_hosts: Vec::new(),
        settings_schema: None,
        readme: None,
        sbom: None,
        sources: None,
        toolchain: "none".into(),
        previous: None,
        published: "2026-11-29T12:00:00Z".into(),
    }
}

/// Signs a release for a component and verifies it again.
pub(crate) fn signed(release: &Release, component: &[u8]) -> VerifiedRelease {
    let key = SigningKey::from_seed(&[7; 32]);
    let envelope = sign_release(release, component, &key);
    verify_release(&envelope, &|_| Some(Threshold { keys: vec![key.public()], minimum: 1 })).unwrap()
}

/// Loads a component with a release that fits it.
pub(crate) fn load(kind: Kind, component: &[u8], admission: &Admission) -> Result<Plugin, LoadError> {
    let host = PluginHost::new(toolgate_plugins::HostOptions::default()).unwrap();
    host.load(component, &signed(&release(kind, component), component), admission)
}

/// Loads a policy that may decide everything.
pub(crate) fn policy(component: &[u8]) -> Policy {
    policy_with(component, &Admission { decisions: DecisionSet::ALL, ..Admission::default() })
}

/// Loads a policy.
pub(crate) fn policy_with(component: &[u8], admission: &Admission) -> Policy {
    match load(Kind::Policy, component, admission).unwrap() {
        Plugin::Policy(policy) => policy,
        other => panic!("no policy: {other:?}"),
    }
}

/// Facts about one tool call.
pub(crate) fn facts() -> Arc<Facts> {
    Arc::new(Facts {
        persona: "default".into(),
        server: "github".into(),
        kind: SurfaceKind::Tool,
        name: "create_issue".into(),
        label: "mcp.call:github/create_issue".into(),
        document: Some(toolgate_plugins::Document::new(r#"{"title":"x"}"#)),
        ..Facts::default()
    })
}
