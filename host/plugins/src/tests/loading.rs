use toolgate_grants::{Grants, KvGrant, SecretGrant};
use toolgate_plugins::{
    Admission, Decision, DecisionSet, Hook, HostOptions, LoadError, LoadErrorKind, Plugin, PluginHost, Whose,
    inspect,
};
use toolgate_signing::{Kind, KvCapability, Release};

use super::guests::{Source, TEXTS, call_policy, component, facts, load, release, says, signed};

fn refused(component: &[u8], release: &Release) -> LoadError {
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let error = host.load(component, &signed(release, component), &Admission::default()).unwrap_err();
    assert_eq!(error.plugin, "test/guest");
    assert!(error.to_string().contains("test/guest"));
    error
}

fn refused_before_compilation(component: &[u8], release: &Release) -> LoadErrorKind {
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let error = host.load(component, &signed(release, component), &Admission::default()).unwrap_err();
    assert_eq!(host.compilations(), 0, "{error}");
    error.kind
}

/// A guest that writes a log line.
fn logging() -> Vec<u8> {
    component(&Source {
        imports: &["log"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $log (i32.const 1) (i32.const 1024) (i32.const 3)) {})"#,
            says(0)
        ),
    })
}

#[test]
fn what_is_no_component_is_refused_by_its_kind_wa_09() {
    let some = release(Kind::Policy, &call_policy(&says(0)));
    let module = wat::parse_str("(module)").unwrap();
    assert!(matches!(refused_before_compilation(b"", &some), LoadErrorKind::Empty));
    assert!(matches!(refused_before_compilation(&module, &some), LoadErrorKind::CoreModule));
    assert!(matches!(refused_before_compilation(b"\x7fELF\x02\x01\x01", &some), LoadErrorKind::NativeCode));
    assert!(matches!(refused_before_compilation(b"#!/bin/sh", &some), LoadErrorKind::NotWasm));
    let mut cut = call_policy(&says(0));
    cut.truncate(cut.len() - 9);
    assert!(matches!(refused_before_compilation(&cut, &some), LoadErrorKind::Malformed(_)));
    let large = vec![0; (8 << 20) + 1];
    assert!(matches!(refused_before_compilation(&large, &some), LoadErrorKind::TooLarge { .. }));
}

#[test]
fn native_code_of_wasmtimes_own_is_refused_wa_09() {
    let engine = wasmtime::Engine::default();
    let code = engine.precompile_component(&call_policy(&says(0))).unwrap();
    let some = release(Kind::Policy, &call_policy(&says(0)));
    let error = refused(&code, &some);
    assert!(matches!(error.kind, LoadErrorKind::NativeCode));
    assert!(error.to_string().contains(".cwasm"), "{error}");
}

#[test]
fn a_flipped_bit_is_refused_before_compilation_wa_11() {
    let guest = call_policy(&says(0));
    let verified = signed(&release(Kind::Policy, &guest), &guest);
    let host = PluginHost::new(HostOptions::default()).unwrap();
    for at in [0, 8, guest.len() / 2, guest.len() - 1] {
        let mut flipped = guest.clone();
        *flipped.get_mut(at).unwrap() ^= 1;
        let error = host.load(&flipped, &verified, &Admission::default()).unwrap_err();
        assert!(matches!(error.kind, LoadErrorKind::Digest(_)), "{error}");
    }
    assert_eq!(host.compilations(), 0);
    assert!(host.load(&guest, &verified, &Admission::default()).is_ok());
    assert_eq!(host.compilations(), 1);
}

#[test]
fn an_undeclared_import_is_refused_by_name_wa_09() {
    let guest = logging();
    let mut declares_less = release(Kind::Policy, &guest);
    declares_less.imports.retain(|import| !import.contains("log"));
    let kind = refused_before_compilation(&guest, &declares_less);
    assert!(
        matches!(&kind, LoadErrorKind::Undeclared(name) if name == "toolgate:plugin/log@0.1.0"),
        "{kind}"
    );
    assert!(load(Kind::Policy, &guest, &Admission::default()).is_ok());
}

#[test]
fn a_declared_import_that_is_not_there_is_refused() {
    let guest = call_policy(&says(0));
    let mut declares_more = release(Kind::Policy, &guest);
    declares_more.imports.push("toolgate:plugin/settings@0.1.0".into());
    declares_more.imports.sort();
    let kind = refused_before_compilation(&guest, &declares_more);
    assert!(
        matches!(&kind, LoadErrorKind::NotThere { name, .. } if name == "toolgate:plugin/settings@0.1.0"),
        "{kind}"
    );
}

/// A component that imports one interface with one function, and exports nothing that matters.
pub(super) fn importing(interface: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
             (import "{interface}" (instance $i (export "f" (func))))
             (core module $m (func (export "g")))
             (core instance $c (instantiate $m))
             (func $g (canon lift (core func $c "g")))
             (instance $e (export "check" (func $g)))
             (export "toolgate:plugin/call-hook@0.1.0" (instance $e)))"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn an_interface_in_another_version_is_refused_with_the_version_that_is_offered_wa_09() {
    for version in ["0.2.0", "0.1.9", "1.0.0", "0.1.0-rc.1"] {
        let name = format!("toolgate:plugin/log@{version}");
        let guest = importing(&name);
        let error = refused(&guest, &release(Kind::Policy, &guest));
        assert!(matches!(&error.kind, LoadErrorKind::Unknown { import, .. } if *import == name), "{error}");
        assert!(
            error.to_string().contains(&name)
                && error.to_string().contains("offers toolgate:plugin/log@0.1.0"),
            "{error}"
        );
        assert_eq!(error.kind.whose(), Whose::PluginTooOld);
    }
}

#[test]
fn wasi_and_strangers_are_refused_by_name_wa_09() {
    let wasi = importing("wasi:io/streams@0.2.0-rc-2023-11-10");
    let kind = refused_before_compilation(&wasi, &release(Kind::Policy, &wasi));
    assert!(matches!(&kind, LoadErrorKind::Wasi(name) if name.contains("streams@0.2.0-rc")), "{kind}");
    for name in ["acme:thing/api@1.0.0", "toolgate:plugin/sockets@0.1.0", "toolgate:plugin/log"] {
        let guest = importing(name);
        let kind = refused_before_compilation(&guest, &release(Kind::Policy, &guest));
        assert!(matches!(&kind, LoadErrorKind::Unknown { import, .. } if import == name), "{kind}");
    }
}

#[test]
fn an_import_that_is_no_interface_is_refused() {
    let guest = wat::parse_str(r#"(component (import "f" (func)) (import "m" (core module)))"#).unwrap();
    let mut some = release(Kind::Policy, &guest);
    some.imports.clear();
    let kind = refused_before_compilation(&guest, &some);
    assert!(matches!(kind, LoadErrorKind::Undeclared(_)), "{kind}");
}

#[test]
fn exports_have_to_be_declared_present_and_of_the_world() {
    let guest = call_policy(&says(0));
    let mut none = release(Kind::Policy, &guest);
    none.exports = vec!["toolgate:plugin/read-hook@0.1.0".into()];
    assert!(matches!(refused_before_compilation(&guest, &none), LoadErrorKind::Export { .. }));
    let mut more = release(Kind::Policy, &guest);
    more.exports.push("toolgate:plugin/read-hook@0.1.0".into());
    assert!(matches!(refused_before_compilation(&guest, &more), LoadErrorKind::NotThere { .. }));
    let adapter = release(Kind::Adapter, &guest);
    assert!(matches!(refused_before_compilation(&guest, &adapter), LoadErrorKind::Export { .. }));
    let empty = wat::parse_str("(component)").unwrap();
    assert!(matches!(
        refused_before_compilation(&empty, &release(Kind::Policy, &empty)),
        LoadErrorKind::NotThere { .. }
    ));
}

#[test]
fn a_hook_of_another_type_is_refused() {
    let guest = wat::parse_str(
        r#"(component (core module $m (func (export "g"))) (core instance $c (instantiate $m))
             (func $g (canon lift (core func $c "g"))) (instance $e (export "check" (func $g)))
             (export "toolgate:plugin/call-hook@0.1.0" (instance $e)))"#,
    )
    .unwrap();
    let error = refused(&guest, &release(Kind::Policy, &guest));
    assert!(matches!(error.kind, LoadErrorKind::DoesNotFit { .. }), "{error}");
    assert!(error.to_string().contains("call-hook"), "{error}");
}

#[test]
fn a_host_interface_of_another_type_is_refused() {
    let guest = importing("toolgate:plugin/log@0.1.0");
    let error = refused(&guest, &release(Kind::Policy, &guest));
    assert!(matches!(error.kind, LoadErrorKind::DoesNotFit { .. }), "{error}");
    assert!(error.to_string().contains("log"), "{error}");
}

#[test]
fn the_release_has_to_fit_the_host() {
    let guest = call_policy(&says(0));
    let mut newer = release(Kind::Policy, &guest);
    newer.min_host = "99.0.0".parse().unwrap();
    assert!(matches!(refused_before_compilation(&guest, &newer), LoadErrorKind::HostTooOld { .. }));
    let mut elsewhere = release(Kind::Policy, &guest);
    elsewhere.world = "toolgate:plugin/policy@0.2.0".into();
    assert!(matches!(refused_before_compilation(&guest, &elsewhere), LoadErrorKind::World { .. }));
}

/// A policy that opens a label of kv, in whatever way its grants allow.
fn storing() -> Vec<u8> {
    component(&Source {
        imports: &["kv"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/kv@0.1.0" "[static]store.open" (func $open (param i32 i32 i32 i32)))"#,
        body: &format!(
            r#"{TEXTS} (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
                 (call $open (i32.const 1024) (i32.const 3) (i32.const 0) (i32.const 512)) {})"#,
            says(1)
        ),
    })
}

#[test]
fn of_the_three_gates_each_alone_keeps_a_capability_shut() {
    let guest = storing();
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let undeclared = release(Kind::Policy, &guest);
    let mut declared = undeclared.clone();
    declared.capabilities.kv.insert("yes".into(), KvCapability { max_bytes: 1024 });
    let grant = |label: &str| {
        let kv = [(label.to_owned(), KvGrant::default())].into();
        Admission {
            decisions: DecisionSet::ALL,
            grants: Grants { kv, ..Grants::default() },
            ..Admission::default()
        }
    };
    let load =
        |release: &Release, admission: &Admission| host.load(&guest, &signed(release, &guest), admission);
    let before = host.compilations();
    let kind = load(&undeclared, &Admission::default()).unwrap_err().kind;
    assert!(matches!(&kind, LoadErrorKind::Capability(name) if name == "kv"), "{kind}");
    let kind = load(&undeclared, &grant("yes")).unwrap_err().kind;
    assert!(matches!(kind, LoadErrorKind::Grant(_)), "{kind}");
    let kind = load(&declared, &Admission::default()).unwrap_err().kind;
    assert!(matches!(&kind, LoadErrorKind::Ungranted { labels, .. } if labels == "yes"), "{kind}");
    assert_eq!(kind.whose(), Whose::OperatorDenied);
    let kind = load(&declared, &grant("no")).unwrap_err().kind;
    assert!(matches!(kind, LoadErrorKind::Grant(_)), "{kind}");
    let mut unimported = declared.clone();
    unimported.imports.retain(|import| !import.contains("kv"));
    let kind = load(&unimported, &grant("yes")).unwrap_err().kind;
    assert!(matches!(kind, LoadErrorKind::Undeclared(_)), "{kind}");
    assert_eq!(host.compilations(), before, "all of this is known before anything is compiled");
    let Plugin::Policy(policy) = load(&declared, &grant("yes")).unwrap() else { panic!() };
    // No store is connected here: the call answers with a value, and the policy goes on.
    assert_eq!(policy.check(Hook::Call, &facts()), Decision::Allow { reason: "yes".into() });
    assert!(policy.waits() && policy.uses_clock());
}

#[test]
fn a_change_of_a_grant_is_another_plugin_and_a_change_of_a_secret_is_not() {
    let digest = |max_bytes, secret: &str| {
        let kv = [("a".to_owned(), KvGrant { max_bytes })].into();
        let value = toolgate_base::Secret::new(secret);
        let secrets = [("t".to_owned(), SecretGrant { value, send_to: None, reveal: false })].into();
        Grants { secrets, kv, ..Grants::default() }.digest()
    };
    assert_eq!(digest(None, "one"), digest(None, "two"));
    assert_ne!(digest(None, "one"), digest(Some(1), "one"));
    assert_ne!(Grants::default().digest(), digest(None, "one"));
}

#[test]
fn three_versions_of_one_plugin_are_loaded_side_by_side() {
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let versions = ["1.0.0", "1.4.2", "2.0.0-rc.1"];
    let loaded: Vec<_> = (1..)
        .zip(versions)
        .map(|(sequence, version)| {
            // Each says another thing: allow, ask, deny.
            let guest = call_policy(&says(sequence));
            let stated = Release {
                version: version.parse().unwrap(),
                sequence: sequence.into(),
                ..release(Kind::Policy, &guest)
            };
            let admission = Admission { decisions: DecisionSet::ALL, ..Admission::default() };
            match host.load(&guest, &signed(&stated, &guest), &admission).unwrap() {
                Plugin::Policy(policy) => policy,
                other => panic!("{other:?}"),
            }
        })
        .collect();
    for _ in 0..2 {
        let said: Vec<_> = loaded.iter().map(|policy| policy.check(Hook::Call, &facts())).collect();
        assert!(matches!(
            said[..],
            [Decision::Allow { .. }, Decision::Ask { .. }, Decision::Deny { fault: None, .. }]
        ));
    }
    let identities: std::collections::BTreeSet<_> =
        loaded.iter().map(|policy| policy.digest().to_string()).collect();
    assert_eq!(identities.len(), 3);
    assert!(loaded.iter().all(|policy| policy.name() == "test/guest"));
}

#[test]
fn settings_have_to_be_one_json_object_and_do_not_leak_into_the_error() {
    let guest = call_policy(&says(0));
    for settings in ["", "[]", "{\"token\": \"hunter2\"", "nonsense-hunter2"] {
        let admission = Admission { settings: settings.into(), ..Admission::default() };
        let error = load(Kind::Policy, &guest, &admission).unwrap_err();
        assert!(matches!(error.kind, LoadErrorKind::Settings(_)), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn a_trap_in_the_start_function_is_found_at_load() {
    let guest = component(&Source {
        imports: &[],
        exports: &["call-hook"],
        core_imports: "",
        body: &format!(
            r#"{TEXTS} (func $start unreachable) (start $start)
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {})"#,
            says(0)
        ),
    });
    let error = refused(&guest, &release(Kind::Policy, &guest));
    assert!(matches!(error.kind, LoadErrorKind::DoesNotStart(_)), "{error}");
}

#[test]
fn types_alone_need_no_declaration() {
    let guest = call_policy(&says(0));
    let found = inspect(&guest).unwrap();
    assert_eq!(found.imports, ["toolgate:plugin/requests@0.1.0"]);
    assert_eq!(found.exports, ["toolgate:plugin/call-hook@0.1.0"]);
    let mut lists_types = release(Kind::Policy, &guest);
    lists_types.imports.push("toolgate:plugin/types@0.1.0".into());
    let host = PluginHost::new(HostOptions::default()).unwrap();
    assert!(host.load(&guest, &signed(&lists_types, &guest), &Admission::default()).is_ok());
}

#[test]
fn one_bad_plugin_does_not_keep_another_from_loading_wa_09() {
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let bad = importing("acme:thing/api@1.0.0");
    assert!(host.load(&bad, &signed(&release(Kind::Policy, &bad), &bad), &Admission::default()).is_err());
    let good = call_policy(&says(0));
    assert!(host.load(&good, &signed(&release(Kind::Policy, &good), &good), &Admission::default()).is_ok());
}
