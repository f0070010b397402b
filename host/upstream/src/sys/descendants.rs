//! Every process below this one, found through `/proc`: those that left the process group too.

use std::collections::HashSet;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

/// Sends `KILL` to every descendant there is at this moment.
pub(super) fn kill_all() {
    for pid in below(getpid().as_raw_nonzero().get()) {
        let Some(target) = Pid::from_raw(pid) else {
            continue;
        };
        // The handle is taken first and the parent read again: a number that was given to a new,
        // unrelated process in between is not hit.
        let Ok(handle) = pidfd_open(target, PidfdFlags::empty()) else {
            continue;
        };
        if below(getpid().as_raw_nonzero().get()).contains(&pid) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
}

/// The ids of all processes whose chain of parents leads to `root`.
fn below(root: i32) -> HashSet<i32> {
    let pairs: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect();
    let mut found = HashSet::new();
    loop {
        let before = found.len();
        for (pid, parent) in &pairs {
            if *parent == root || found.contains(parent) {
                found.insert(*pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// The parent from `/proc/<pid>/stat`; the command in parentheses may itself hold parentheses.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_of_a_child_is_found() {
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 30 & wait"]).spawn().unwrap();
        let root = getpid().as_raw_nonzero().get();
        let child_id = i32::try_from(child.id()).unwrap();
        let grandchild = loop {
            if let Some(pid) = below(child_id).into_iter().next() {
                break pid;
            }
            std::thread::yield_now();
        };
        assert!(below(root).is_superset(&HashSet::from([child_id, grandchild])));
        for pid in [grandchild, child_id] {
            let _ = rustix::process::kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
        }
        child.wait().unwrap();
    }
}
