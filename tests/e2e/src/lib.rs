//! What end-to-end tests stand on: a sandbox around the built binary, and clients that speak by hand.
//!
//! Contract: a sandbox has a home, a configuration and a data directory of its own and passes none of
//! the machine's environment on but `PATH`. Everything waits with a deadline; a deadline that passes
//! is a failed test with what was received so far. Processes end with their sandbox, gateways that clients started too.
// Code for tests may fail loudly.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::missing_panics_doc)]

pub mod gateways;
mod http;
mod receiver;
mod sandbox;
mod stdio;
mod steps;
mod terminal;

pub use http::{Http, Reply};
pub use receiver::{Received, Receiver};
pub use sandbox::{Run, Sandbox};
pub use stdio::Stdio;
pub use steps::{Steps, kill_at};
pub use terminal::Terminal;

use std::time::Duration;

/// The most that a process ever had resident, MiB, as Linux counts it; 0 where there is no such process.
pub fn most_resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Longest wait for anything; generous, because the machine may be busy.
pub const PATIENCE: Duration = Duration::from_secs(30);
