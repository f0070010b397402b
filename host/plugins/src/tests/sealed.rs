//! `wasi = "sealed"`: guests that ask for what a process has, and find nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use toolgate_plugins::{
    Admission, Decision, DecisionSet, FaultKind, Hook, HostOptions, LoadErrorKind, Plugin, PluginHost,
};
use toolgate_signing::{Kind, Wasi};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use super::guests::{facts, release, says, signed};

/// As much of WASI 0.2 as these guests import.
const WASI: [(&str, &str); 4] = [
    (
        "cli.wit",
        "package wasi:cli@0.2.0;
        interface environment {
            get-environment: func() -> list<tuple<string, string>>;
            get-arguments: func() -> list<string>;
        }",
    ),
    (
        "filesystem.wit",
        "package wasi:filesystem@0.2.0;
        interface types { resource descriptor; }
        interface preopens { use types.{descriptor}; get-directories: func() -> list<tuple<descriptor, string>>; }",
    ),
    (
        "sockets.wit",
        "package wasi:sockets@0.2.0;
        interface network {
            resource network;
            enum ip-address-family { ipv4, ipv6 }
            enum error-code { unknown, access-denied, not-supported, invalid-argument, out-of-memory, timeout,
                concurrency-conflict, not-in-progress, would-block, invalid-state, new-socket-limit,
                address-not-bindable, address-in-use, remote-unreachable, connection-refused, connection-reset,
                connection-aborted, datagram-too-large, name-unresolvable, temporary-resolver-failure,
                permanent-resolver-failure }
        }
        interface instance-network { use network.{network}; instance-network: func() -> network; }
        interface ip-name-lookup {
            use network.{network, error-code};
            resource resolve-address-stream;
            resolve-addresses: func(network: borrow<network>, name: string) -> result<resolve-address-stream, error-code>;
        }
        interface tcp { resource tcp-socket; }
        interface tcp-create-socket {
            use network.{ip-address-family, error-code};
            use tcp.{tcp-socket};
            create-tcp-socket: func(address-family: ip-address-family) -> result<tcp-socket, error-code>;
        }",
    ),
    (
        "clocks.wit",
        "package wasi:io@0.2.0;
        interface poll { resource pollable { block: func(); } }",
    ),
];

/// A policy that imports these interfaces of WASI; its body may use `$drop` and `$said`.
fn guest(imports: &[&str], core_imports: &str, check: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")).unwrap();
    for (name, text) in WASI {
        resolve.push_str(name, text).unwrap();
    }
    let clock = "package wasi:clocks@0.2.0; interface monotonic-clock { use wasi:io/poll@0.2.0.{pollable}; subscribe-duration: func(when: u64) -> pollable; }";
    resolve.push_str("monotonic.wit", clock).unwrap();
    let lines: Vec<String> = imports.iter().map(|name| format!("import {name};")).collect();
    let lines = lines.concat();
    let world = format!(
        "package test:guest; world guest {{ import toolgate:plugin/requests@0.1.0; {lines} export toolgate:plugin/call-hook@0.1.0; }}"
    );
    let package = resolve.push_str("guest.wit", &world).unwrap();
    let world = resolve.select_world(&[package], Some("guest")).unwrap();
    let text = format!(
        r#"(module {} (data (i32.const 1024) "yes")
        (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32) {check}))"#,
        super::guests::PRELUDE.replace("IMPORTS", core_imports)
    );
    let mut module = wat::parse_str(text).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}

fn load(guest: &[u8], sealed: bool) -> Result<Plugin, LoadErrorKind> {
    let mut stated = release(Kind::Policy, guest);
    stated.capabilities.wasi = sealed.then_some(Wasi::Sealed);
    let admission = Admission { decisions: DecisionSet::ALL, ..Admission::default() };
    let host = PluginHost::new(HostOptions::default()).unwrap();
    host.load(guest, &signed(&stated, guest), &admission).map_err(|error| error.kind)
}

fn said(guest: &[u8]) -> Decision {
    match load(guest, true).unwrap() {
        Plugin::Policy(policy) => policy.check(Hook::Call, &facts()),
        other => panic!("{other:?}"),
    }
}

/// Says yes where the list that `call` puts at 512 is empty, and traps where it is not.
fn says_yes_if_empty(call: &str) -> String {
    format!("{call} (if (i32.load (i32.const 516)) (then unreachable)) {}", says(1))
}

#[test]
fn a_guest_that_asks_for_its_environment_its_arguments_or_a_preopen_finds_nothing() {
    for (interface, function) in [
        ("wasi:cli/environment@0.2.0", "get-environment"),
        ("wasi:cli/environment@0.2.0", "get-arguments"),
        ("wasi:filesystem/preopens@0.2.0", "get-directories"),
    ] {
        let import = format!(r#"(import "{interface}" "{function}" (func $get (param i32)))"#);
        let guest = guest(&[interface], &import, &says_yes_if_empty("(call $get (i32.const 512))"));
        assert_eq!(said(&guest), Decision::Allow { reason: "yes".into() }, "{function}");
        assert!(
            matches!(load(&guest, false), Err(LoadErrorKind::Wasi(name)) if name == interface),
            "{function}"
        );
    }
}

#[test]
fn a_guest_that_asks_for_a_socket_or_a_name_is_denied_by_a_value() {
    // Both answer with an error; the test traps where they do not.
    let socket = guest(
        &["wasi:sockets/tcp-create-socket@0.2.0"],
        r#"(import "wasi:sockets/tcp-create-socket@0.2.0" "create-tcp-socket" (func $create (param i32 i32)))"#,
        &format!(
            "(call $create (i32.const 0) (i32.const 512)) (if (i32.eqz (i32.load8_u (i32.const 512))) (then unreachable)) {}",
            says(1)
        ),
    );
    assert_eq!(said(&socket), Decision::Allow { reason: "yes".into() });
}

#[test]
fn a_guest_that_sleeps_in_a_host_call_is_dropped_at_its_wall_clock_time() {
    let sleeps = guest(
        &["wasi:io/poll@0.2.0", "wasi:clocks/monotonic-clock@0.2.0"],
        r#"(import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration" (func $after (param i64) (result i32)))
           (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))"#,
        "(call $block (call $after (i64.const 3600000000000))) (i32.const 0)",
    );
    let started = Instant::now();
    let Decision::Deny { fault: Some(fault), .. } = said(&sleeps) else { panic!("an hour has not passed") };
    assert_eq!(fault.kind, FaultKind::Deadline);
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn http_of_wasi_and_wasi_0_3_are_refused_also_where_wasi_is_declared() {
    for name in ["wasi:http/outgoing-handler@0.2.0", "wasi:cli/environment@0.3.0"] {
        let guest = super::loading::importing(name);
        assert!(matches!(load(&guest, true), Err(LoadErrorKind::Wasi(found)) if found == name), "{name}");
    }
}

#[test]
fn a_runtime_in_a_dozen_pieces_has_room_where_wasi_is_sealed_and_nowhere_else() {
    let pieces =
        |count: usize| super::guests::hook_beside("", &"(core instance (instantiate $m))".repeat(count));
    // So far that only the type of its hook is left to refuse: every instance was made.
    let fits = load(&pieces(20), true).unwrap_err();
    assert!(matches!(fits, LoadErrorKind::DoesNotFit { .. }), "{fits}");
    let pooled = load(&pieces(20), false).unwrap_err();
    assert!(pooled.to_string().contains("contains 21 core module instances"), "{pooled}");
    let bomb = load(&pieces(50), true).unwrap_err();
    assert!(bomb.to_string().contains("instance count too high at 33"), "{bomb}");
}

#[test]
fn an_instance_that_a_linker_left_standing_is_ignored_where_wasi_is_sealed_and_refused_elsewhere() {
    let plain = super::guests::call_policy(&says(1));
    // The same component with an instance of no interface among its exports, as componentize-py leaves one.
    let mut component = plain.clone();
    component.extend(b"\x0b\x0d\x01\x00\x07exports\x05\x00\x00");
    let shape = toolgate_plugins::inspect(&component).unwrap();
    assert_eq!(shape.helpers, ["exports"]);
    assert_eq!(shape.exports, ["toolgate:plugin/call-hook@0.1.0"], "no release has to list it");
    assert_eq!(said(&component), Decision::Allow { reason: "yes".into() });
    let refused = load(&component, false).unwrap_err();
    assert!(matches!(&refused, LoadErrorKind::Export { name, .. } if name == "exports"), "{refused}");
    assert!(refused.to_string().contains("no interface"), "{refused}");
}
