//! The second stage of `__child`: becomes the server.
//!
//! It dies with its supervisor, whatever kills that one, and then is replaced by the server's
//! program. The death signal survives the exec; a program with set-user-id would lose it, but
//! cannot gain such rights here, because the supervisor has set no-new-privileges before.

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use super::{Stage, complain};

/// Returns only when the program could not be started.
pub(super) fn run(stage: &Stage) -> i32 {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
    {
        complain(&format!("cannot set the parent-death signal: {error}"));
        return 126;
    }
    // The supervisor may have died before the signal was set; then nobody would ever send it.
    let parent = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    if parent != Some(stage.parent) {
        return 126;
    }
    let error = Command::new(&stage.program).args(&stage.args).exec();
    complain(&format!("cannot run {}: {error}", stage.program.to_string_lossy()));
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}
