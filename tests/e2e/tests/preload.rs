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
