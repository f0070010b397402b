//! Gateways that clients started in the background: found by the lock that they hold, and ended.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::PATIENCE;

/// The gateway that serves a data directory, if one runs. A number in the lock whose process is something
/// else by now, or does not serve clients on pipes, is none.
pub fn of(data_dir: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(data_dir.join("run/gateway.lock")).ok()?;
    let pid: u32 = text.trim().parse().ok()?;
    is_gateway(pid).then_some(pid)
}

/// The gateways of all data directories below a directory.
pub fn below(directory: &Path) -> Vec<u32> {
    let mut found = Vec::from_iter(of(directory));
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(below(&entry.path()));
        }
    }
    found
}

/// Sends a signal to a gateway and waits for its end.
pub fn end(pid: u32, signal: &str) {
    let _ = Command::new("kill").args([signal, &pid.to_string()]).status();
    let until = Instant::now() + PATIENCE;
    while is_gateway(pid) {
        assert!(Instant::now() < until, "the gateway {pid} does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn is_gateway(pid: u32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command.split(|byte| *byte == 0).any(|word| word == b"__gateway")
}
