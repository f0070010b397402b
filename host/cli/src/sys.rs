//! The part that depends on the platform: who runs this process, who owns a directory, and how a process
//! leaves the one that started it.

use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use crate::exit::Failure;

/// The effective user id of this process.
pub(crate) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user id that owns `path`.
pub(crate) fn owner(path: &Path) -> io::Result<u32> {
    std::fs::metadata(path).map(|found| found.uid())
}

/// The first stage of a gateway that a client starts: begins a session of its own, so that no signal of
/// the client's terminal and no end of the client's process group reaches it, starts the gateway and
/// ends, so that it is no descendant of the client's either.
pub(crate) fn detach() -> ExitCode {
    let started = || {
        rustix::process::setsid()?;
        let rest = std::env::args_os().skip(1).filter(|word| word != "--detach");
        Command::new(std::env::current_exe()?).args(rest).spawn()
    };
    match started() {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => Failure::failed(format!("the gateway cannot be started: {error}")).report(),
    }
}

/// A write beyond the limit for files (`ulimit -f`) fails like one to a full disk, instead of ending the
/// process: from then on a call whose row cannot be written is refused. To be called inside a runtime. What
/// is started by this process has the system's default again.
pub(crate) fn outlive_file_limit() {
    use tokio::signal::unix::{SignalKind, signal};
    // The handler stays when the stream of its signals is dropped.
    if let Err(error) = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())) {
        tracing::warn!(%error, "a file that reaches the limit for files (ulimit -f) will end this process");
    }
}

/// Nothing that is printed from here on reaches whoever started this process.
pub(crate) fn close_stdout() -> io::Result<()> {
    let nothing = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(nothing)?;
    Ok(())
}

/// A user id from a number, or from a name in `/etc/passwd`.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    if let Ok(id) = name.parse() {
        return Some(id);
    }
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}
