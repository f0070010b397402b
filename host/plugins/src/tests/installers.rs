use toolgate_plugins::{Admission, Installer, InstallerError, Launch, Plugin, Value};
use toolgate_signing::Kind;

use super::guests::{Source, component, load};

/// `lookup` finds nothing, `search` says that it is unavailable, `resolve` proposes `npx` with the
/// id as its only argument.
fn installer() -> Installer {
    let guest = component(&Source {
        imports: &[],
        exports: &["installer"],
        core_imports: "",
        body: r#"(data (i32.const 1024) "npx") (data (i32.const 1040) "off\1b[0m line")
            (func (export "toolgate:plugin/installer@0.1.0#search") (param i32 i32 i32 i32 i32) (result i32)
              (i32.store8 (i32.const 256) (i32.const 1)) (i32.store8 (i32.const 260) (i32.const 4))
              (i32.store (i32.const 264) (i32.const 1040)) (i32.store (i32.const 268) (i32.const 12)) (i32.const 256))
            (func (export "toolgate:plugin/installer@0.1.0#lookup") (param i32 i32) (result i32) (i32.const 300))
            (func (export "toolgate:plugin/installer@0.1.0#resolve") (param $id i32) (param $length i32) (param i32 i32 i32) (result i32)
              ;; id, then no version, a name, no runtime, no artifacts
              (i32.store (i32.const 516) (local.get $id)) (i32.store (i32.const 520) (local.get $length))
              (i32.store (i32.const 536) (i32.const 1024)) (i32.store (i32.const 540) (i32.const 3))
              ;; launch: stdio, program, one argument, no environment
              (i32.store (i32.const 568) (i32.const 1024)) (i32.store (i32.const 572) (i32.const 3))
              (i32.store (i32.const 576) (i32.const 800)) (i32.store (i32.const 580) (i32.const 1))
              (i32.store (i32.const 804) (local.get $id)) (i32.store (i32.const 808) (local.get $length))
              ;; the result before it: ok
              (i32.store8 (i32.const 512) (i32.const 0))
              (i32.const 512))"#,
    });
    match load(Kind::Installer, &guest, &Admission::default()).unwrap() {
        Plugin::Installer(installer) => installer,
        other => panic!("no installer: {other:?}"),
    }
}

#[test]
fn an_installer_proposes_a_plan_as_plain_values() {
    let installer = installer();
    assert_eq!(installer.lookup("acme/thing"), Ok(None));
    assert_eq!(
        installer.search("thing", None),
        Err(InstallerError::Answer {
            plugin: "test/guest".into(),
            kind: "unavailable",
            message: "off line".into()
        })
    );
    let plan = installer.resolve("acme/thing", None).unwrap();
    assert_eq!((plan.id.as_str(), plan.suggested_name.as_str(), plan.version), ("acme/thing", "npx", None));
    let Launch::Stdio(command) = plan.launch else { panic!("{:?}", plan.launch) };
    assert_eq!(command.program, "npx");
    assert_eq!(command.arguments, [Value::Literal("acme/thing".into())]);
    assert!(command.environment.is_empty() && plan.artifacts.is_empty() && plan.warnings.is_empty());
}
