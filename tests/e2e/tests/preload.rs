//! A small library between the binary and the C library: what a test cannot wait for or must not reach,
//! a later day and other machines, is said by it instead.

use std::process::{Command, Stdio};

use toolgate_e2e::Sandbox;

/// Builds it with the compiler that links these tests, and gives its path for `LD_PRELOAD`.
pub(crate) fn library(sandbox: &Sandbox, name: &str, source: &str) -> String {
    let (text, library) = (sandbox.write(&format!("{name}.c"), source), sandbox.path(&format!("{name}.so")));
    let built = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(&text)
        .arg("-ldl")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library.display().to_string()
}

/// A private network on this machine: the name `registry.internal` is 10.1.2.3, what is dialled there is
/// dialled on 127.0.0.1 at the same port, and each dial of it is a line of `NETWORK_LOG`. Nothing leaves the
/// machine.
pub(crate) const NETWORK: &str = r#"
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        (int (*)(const char *, const char *, const struct addrinfo *, struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");
    if (node && strcmp(node, "registry.internal") == 0) node = "10.1.2.3";
    return real(node, service, hints, found);
}

int connect(int socket, const struct sockaddr *to, socklen_t length) {
    int (*real)(int, const struct sockaddr *, socklen_t) =
        (int (*)(int, const struct sockaddr *, socklen_t))dlsym(RTLD_NEXT, "connect");
    if (to->sa_family != AF_INET) return real(socket, to, length);
    struct sockaddr_in in = *(const struct sockaddr_in *)to;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    if (strncmp(text, "127.", 4) == 0) return real(socket, to, length);
    FILE *log = fopen(getenv("NETWORK_LOG"), "a");
    if (log) { fprintf(log, "%s\n", text); fclose(log); }
    if (strcmp(text, "10.1.2.3") != 0) { errno = ECONNREFUSED; return -1; }
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return real(socket, (const struct sockaddr *)&in, sizeof in);
}
"#;

/// The time of day is `CLOCK_AT`, in seconds since 1970; clocks that only measure are left alone.
pub(crate) const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *at = getenv("CLOCK_AT");
    if (clock != CLOCK_REALTIME || !at) return real(clock, now);
    now->tv_sec = (time_t)atoll(at);
    now->tv_nsec = 0;
    return 0;
}
"#;
