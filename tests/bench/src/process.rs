//! A child process, what it uses, and its end.

use std::process::Child;
use std::time::Duration;

use crate::Outcome;

/// Ends with its owner.
pub(crate) struct Process(pub(crate) Child);

impl Process {
    /// CPU time so far, of this process alone (`/proc/<pid>/stat`, clock ticks of 10 ms).
    pub(crate) fn cpu(&self) -> Outcome<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id()))?;
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ticks: u64 = after_name
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum();
        Ok(Duration::from_millis(ticks * 10))
    }

    /// Resident memory in MiB.
    pub(crate) fn memory_mib(&self) -> Outcome<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
        let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib / 1024.0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
