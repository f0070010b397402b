//! Bounds of what a plugin may reach, met by the built binary: requests at a time, sizes of answers and
//! files, and a name that changes its mind between the check and the dial.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::json;
use toolgate_signing::{Access, Capabilities, FilesCapability, Kind, KvCapability, SigningKey, sign_release};

use crate::capabilities::{asks_http, echo, http, install};
use crate::guests::{Source, component, release};
use crate::preload;
use crate::{ECHO, sandbox};

/// A server that answers nobody until `wanted` requests are there, or a second has passed; the most
/// that were there at a time, and all of them.
fn holding_server(wanted: usize) -> (String, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (most, all) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (most_seen, count) = (Arc::clone(&most), Arc::clone(&all));
    let here = Arc::new((Mutex::new(0_usize), Condvar::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (here, most, count) = (Arc::clone(&here), Arc::clone(&most_seen), Arc::clone(&count));
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 2048]);
                count.fetch_add(1, Ordering::SeqCst);
                let (open, changed) = &*here;
                let mut open = open.lock().unwrap();
                *open += 1;
                most.fetch_max(*open, Ordering::SeqCst);
                changed.notify_all();
                let wait = Duration::from_secs(1);
                let (mut open, _) = changed.wait_timeout_while(open, wait, |open| *open < wanted).unwrap();
                *open -= 1;
                drop(open);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nreached");
            });
        }
    });
    (origin, most, all)
}

#[test]
fn one_label_of_http_has_four_requests_at_a_time_and_the_others_wait_their_turn() {
    let (origin, most, all) = holding_server(5);
    let sandbox = sandbox();
    install(&sandbox, &asks_http(&origin), http(), &format!("{{ http: {{ api: [\"{origin}\"] }} }}"), &[]);
    let mut client = sandbox.serve_stdio(&[]);
    client.initialize();
    let calls: Vec<_> = (0..7)
        .map(|n| ("tools/call", json!({ "name": "fix__echo", "arguments": { "message": n } })))
        .collect();
    for reply in client.requests(&calls) {
        assert!(reply.to_string().contains("reached"), "each of them got its answer: {reply}");
    }
    assert_eq!((most.load(Ordering::SeqCst), all.load(Ordering::SeqCst)), (4, 7));
}

#[test]
fn an_answer_over_the_size_of_the_label_is_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 2048]);
            // No length is stated, so that only the bytes themselves can be counted.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(&[b'x'; 5_000]);
        }
    });
    let sandbox = sandbox();
    let grants = format!("{{ http: {{ api: {{ hosts: [\"{origin}\"], max_response: 4000 }} }} }}");
    install(&sandbox, &asks_http(&origin), http(), &grants, &[]);
    let run = echo(&sandbox).exits(3);
    assert!(run.stderr.contains("the answer has more than 4000 bytes"), "{run:?}");
}

/// A server that sends a request for `/N` on to `/N-1`, and says `arrived` at `/0`.
fn redirecting_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 2048];
            let length = stream.read(&mut head).unwrap_or(0);
            let head = String::from_utf8_lossy(&head[..length]).into_owned();
            let left: usize = head[5..].split(' ').next().unwrap().parse().unwrap();
            let answer = match left {
                0 => "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\narrived".to_owned(),
                _ => format!(
                    "HTTP/1.1 302 Found\r\nlocation: /{}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                    left - 1
                ),
            };
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    origin
}

#[test]
fn gate_redirects_a_request_of_a_plugin_is_sent_on_five_times_and_no_more() {
    let origin = redirecting_server();
    for (redirects, said) in [(5, "arrived"), (6, "more than 5 redirects")] {
        let sandbox = sandbox();
        let guest = asks_http(&format!("{origin}/{redirects}"));
        install(&sandbox, &guest, http(), &format!("{{ http: {{ api: [\"{origin}\"] }} }}"), &[]);
        let run = echo(&sandbox).exits(3);
        assert!(run.stderr.contains(said), "{redirects}: {run:?}");
    }
}

/// A policy that keeps a value of this many bytes under a key of that many, and denies with the error where
/// that fails.
fn keeps(key: u32, value: u32) -> Vec<u8> {
    component(&Source {
        imports: &["kv"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/kv@0.1.0" "[static]store.open" (func $open (param i32 i32 i32 i32)))
        (import "toolgate:plugin/kv@0.1.0" "[method]store.put" (func $put (param i32 i32 i32 i32 i32 i32 i64 i32)))"#,
        body: &format!(
            r#"(data (i32.const 1024) "seen")
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $drop (local.get 0))
              (memory.fill (i32.const 2048) (i32.const 107) (i32.const {key}))
              (drop (memory.grow (i32.const 64)))
              (call $open (i32.const 1024) (i32.const 4) (i32.const 0) (i32.const 512))
              (if (i32.load8_u (i32.const 512)) (then unreachable))
              (call $put (i32.load (i32.const 516)) (i32.const 2048) (i32.const {key}) (i32.const 8192) (i32.const {value})
                (i32.const 0) (i64.const 0) (i32.const 704))
              (if (i32.load8_u (i32.const 704)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 716)) (i32.load (i32.const 720))))))
              (call $said (i32.const 0) (i32.const 0) (i32.const 0)))"#
        ),
    })
}

#[test]
fn gate_kv_a_plugin_keeps_keys_of_512_bytes_and_values_that_one_host_call_carries_and_none_that_are_larger() {
    let label = KvCapability { max_bytes: 4 << 20 };
    for (key, value, said) in [
        (512, 1_000_000, None),
        (513, 1, Some("a key has 1 to 512 bytes")),
        (1, 2 << 20, Some("failed (limit)")),
    ] {
        let sandbox = sandbox();
        let capabilities =
            Capabilities { kv: [("seen".to_owned(), label.clone())].into(), ..Capabilities::default() };
        install(&sandbox, &keeps(key, value), capabilities, "{ kv: [seen] }", &[]);
        let run = echo(&sandbox);
        assert_eq!(run.code, if said.is_some() { 3 } else { 0 }, "{key} and {value}: {run:?}");
        assert!(said.is_none_or(|said| run.stderr.contains(said)), "{key} and {value}: {run:?}");
    }
}

/// A policy that reads so many bytes of a file below the label `work` and denies with them, or with the error.
pub(crate) fn reads(path: &str, bytes: u32) -> Vec<u8> {
    component(&Source {
        imports: &["files"],
        exports: &["call-hook"],
        core_imports: r#"(import "toolgate:plugin/files@0.1.0" "[static]dir.open" (func $open (param i32 i32 i32)))
            (import "toolgate:plugin/files@0.1.0" "[method]dir.read" (func $read (param i32 i32 i32 i64 i64 i32)))"#,
        body: &format!(
            r#"(data (i32.const 1024) "work") (data (i32.const 1100) "{path}")
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $drop (local.get 0))
              (call $open (i32.const 1024) (i32.const 4) (i32.const 512))
              (if (i32.load8_u (i32.const 512)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 520)) (i32.load (i32.const 524))))))
              (call $read (i32.load (i32.const 516)) (i32.const 1100) (i32.const {length}) (i64.const 0) (i64.const {bytes}) (i32.const 600))
              (if (i32.load8_u (i32.const 600)) (then (return
                (call $said (i32.const 3) (i32.load (i32.const 608)) (i32.load (i32.const 612))))))
              (call $said (i32.const 3) (i32.load (i32.const 604)) (i32.const 5)))"#,
            length = path.len()
        ),
    })
}

#[test]
fn a_file_is_read_in_bounded_pieces_and_a_pipe_holds_nobody() {
    let sandbox = sandbox();
    sandbox.write("work-dir/large", "begin".repeat(1 << 20));
    let pipe = sandbox.path("work-dir/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let dir = sandbox.path("work-dir").display().to_string();
    for (path, bytes, said) in [
        ("large", 1_000, "begin"),
        ("large", 2 << 20, "2097152 bytes are more than the limit host-bytes of 1048576"),
        ("pipe", 1_000, "no regular file"),
    ] {
        let label = FilesCapability { access: Access::Read, settings: None };
        let capabilities =
            Capabilities { files: [("work".to_owned(), label)].into(), ..Capabilities::default() };
        let grants = format!("{{ files: {{ work: {dir:?} }} }}");
        install(&sandbox, &reads(path, bytes), capabilities, &grants, &[]);
        let run = echo(&sandbox).exits(3);
        assert!(run.stderr.contains(said), "{path}: {run:?}");
    }
}

/// Stands between the binary and the C library: the n-th question for `rebind.test` gets the n-th address
/// of `REBIND`, each look-up and each dial of the port 443 is a line of `REBIND_LOG`, and no packet
/// leaves the machine.
const RESOLVER: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void note(const char *what, const char *which) {
    FILE *log = fopen(getenv("REBIND_LOG"), "a");
    if (log) { fprintf(log, "%s %s\n", what, which); fclose(log); }
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    static atomic_int asked;
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
    if (!node || strcmp(node, "rebind.test") != 0) return real(node, service, hints, found);
    char list[256];
    snprintf(list, sizeof list, "%s", getenv("REBIND"));
    char *rest = list, *address = strsep(&rest, ",");
    for (int skip = atomic_fetch_add(&asked, 1); skip > 0 && rest; skip--) address = strsep(&rest, ",");
    note("asked", address);
    return real(address, service, hints, found);
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    if (to->sa_family != AF_INET) return real(socket, to, length);
    const struct sockaddr_in *in = (const struct sockaddr_in *)to;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof text);
    if (ntohs(in->sin_port) == 443) note("dialled", text);
    if (strncmp(text, "127.", 4) != 0) { errno = ECONNREFUSED; return -1; }
    return real(socket, to, length);
}
"#;

// FR-35, FT-07
#[test]
fn a_name_that_resolves_differently_between_check_and_dial_is_dialled_as_it_was_checked() {
    let sandbox = sandbox();
    let library = preload::library(&sandbox, "resolver", RESOLVER);
    let guest = asks_http("https://rebind.test/");
    let mut capabilities = http();
    capabilities.http.get_mut("api").unwrap().hosts.push("https://rebind.test".to_owned());
    install(&sandbox, &guest, capabilities, "{ http: { api: true } }", &[]);
    let log = sandbox.path("resolver.log").display().to_string();
    let call = |addresses: &str| {
        sandbox.write("resolver.log", "");
        let preload = [("LD_PRELOAD", library.as_str()), ("REBIND", addresses), ("REBIND_LOG", &log)];
        let run = sandbox.run_with(&ECHO, "", &preload).exits(3);
        (run, sandbox.read("resolver.log"))
    };
    // A public address while it is checked, this machine's from then on.
    let (run, met) = call("9.9.9.9,127.0.0.1");
    assert_eq!(met, "asked 9.9.9.9\ndialled 9.9.9.9\n", "one look-up, and its answer is dialled: {run:?}");
    // This machine's at once, or that of a cloud's metadata service: nothing is dialled.
    for inside in ["127.0.0.1", "169.254.169.254", "10.0.0.1"] {
        let (run, met) = call(&format!("{inside},9.9.9.9"));
        assert_eq!(met, format!("asked {inside}\n"), "{run:?}");
        assert!(run.stderr.contains("rebind.test") && run.stderr.contains(inside), "{run:?}");
    }
}

/// An adapter whose `content` sends a request, so that it may sleep or be dripped upon after the verdict.
pub(crate) fn slow_adapter(origin: &str) -> Vec<u8> {
    component(&Source {
        imports: &["http"],
        exports: &["adapter"],
        core_imports: r#"(import "toolgate:plugin/http@0.1.0" "[static]client.open" (func $open (param i32 i32 i32)))
            (import "toolgate:plugin/http@0.1.0" "[method]client.send" (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))"#,
        body: &format!(
            r#"(data (i32.const 1024) "api") (data (i32.const 1040) "GET") (data (i32.const 1100) "{origin}")
            (func (export "toolgate:plugin/adapter@0.1.0#configure") (result i32) (i32.const 128))
            (func (export "toolgate:plugin/adapter@0.1.0#tools") (param i32 i32) (result i32)
              (i32.store (i32.const 0) (call $alloc (i32.const 0) (i32.const 0) (i32.const 4) (i32.mul (i32.const 12) (local.get 1))))
              (i32.store (i32.const 4) (local.get 1)) (i32.const 0))
            (func (export "toolgate:plugin/adapter@0.1.0#arguments") (param i32) (result i32)
              (call $drop (local.get 0)) (call $said (i32.const 0) (i32.const 0) (i32.const 0)))
            (func (export "toolgate:plugin/adapter@0.1.0#content") (param i32) (result i32)
              (call $drop (local.get 0))
              (call $open (i32.const 1024) (i32.const 3) (i32.const 512))
              (if (i32.load8_u (i32.const 512)) (then unreachable))
              (call $send (i32.load (i32.const 516)) (i32.const 1040) (i32.const 3) (i32.const 1100) (i32.const {length})
                (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 600))
              (if (i32.eqz (i32.load8_u (i32.const 600))) (then unreachable))
              (call $said (i32.const 3) (i32.load (i32.const 608)) (i32.load (i32.const 612))))"#,
            length = origin.len()
        ),
    })
}

#[test]
fn while_one_adapter_sleeps_in_a_host_call_or_is_dripped_upon_another_server_is_served() {
    let key = SigningKey::from_seed(&[7; 32]);
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n"] {
        let (origin, _) = crate::capabilities::server(answer, true);
        let sandbox = sandbox();
        let guest = slow_adapter(&origin);
        let mut stated = release(Kind::Adapter, &guest);
        stated.capabilities = http();
        sandbox.write("plugin/component.wasm", &guest);
        sandbox.write("plugin/release.dsse.json", sign_release(&stated, &guest, &key));
        let (slow, good) = (sandbox.fixture_entry("slow", &[]), sandbox.fixture_entry("good", &[]));
        let (dir, public) = (sandbox.path("plugin").display().to_string(), key.public());
        sandbox.configure(&format!(
            "servers:\n{slow}    adapter: {{ plugin: test/guest, grants: {{ http: {{ api: {{ hosts: [\"{origin}\"], timeout: 4s }} }} }} }}\n{good}personas:\n  default:\n    servers: [slow, good]\n    capabilities: {{ allow: [\"mcp.call:*\"] }}\nplugins:\n  trust:\n    - {{ plugins: \"test/*\", keys: [\"{public}\"] }}\n  load:\n    - {{ plugin: {dir:?} }}\n"
        ));
        let mut client = sandbox.serve_stdio(&[]);
        client.initialize();
        let call = |server: &str, message: &str| {
            ("tools/call", json!({ "name": format!("{server}__echo"), "arguments": { "message": message } }))
        };
        // Once each before, so that both servers run.
        client.requests(&[call("good", "first")]);
        let order = client.order_of(&[call("slow", "x"), call("good", "on"), call("good", "and on")]);
        assert_eq!(order.last().unwrap().0, 0, "the slow one is the last to be answered: {order:?}");
        for (_, reply) in &order[..2] {
            assert_eq!(reply["result"]["isError"], serde_json::Value::Null, "{reply}");
        }
        let told = order[2].1.to_string();
        assert!(told.contains("no complete answer within the timeout"), "{told}");
    }
}
