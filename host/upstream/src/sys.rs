//! What only Unix, and in part only Linux, can do: signals, process groups, death signals.
//!
//! Everything here is a safe call of `std`, `rustix` or `tokio`; the crate has no unsafe code.
//! The children of the children are held by a supervisor process, see [`supervise`].

mod container;
#[cfg(target_os = "linux")]
mod descendants;
mod launch;
mod supervise;

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rustix::process::{Pid, Signal};

/// The word after which the toolgate binary acts as a child's supervisor or launcher.
pub(crate) const CHILD_WORD: &str = "__child";

/// The longest time a supervisor takes to end after a `TERM`: stop a container, `TERM`, `KILL`.
pub(crate) use supervise::LONGEST_STOP;

/// Whether the path leads to a file that somebody may execute.
pub(crate) fn is_executable_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Asks a supervisor to stop everything below it. The caller must not have reaped it yet.
pub(crate) fn terminate(pid: u32) {
    signal(pid, Signal::TERM);
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // The process may have ended in between; that is what the caller wants anyway.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The body of `toolgate __child …`, where `args` are the words after `__child`. Never returns;
/// the exit status is the server's own, or 128 and the number of the signal that ended it.
///
/// There are two stages, both started by Toolgate itself and by nobody else:
/// `supervise PARENT -- PROGRAM ARG…` holds the process tree, `launch PARENT -- PROGRAM ARG…`
/// becomes the server.
pub fn child_main(args: impl IntoIterator<Item = OsString>) -> ! {
    let code = match Stage::parse(args.into_iter().collect()) {
        Some(stage) if stage.name == "supervise" => supervise::run(stage),
        Some(stage) if stage.name == "launch" => launch::run(&stage),
        _ => {
            complain("`__child` is started by Toolgate itself, with a stage, a parent and a command");
            2
        }
    };
    std::process::exit(code)
}

/// The parsed words after `__child`.
#[derive(Debug, PartialEq, Eq)]
struct Stage {
    name: String,
    parent: i32,
    program: OsString,
    args: Vec<OsString>,
}

impl Stage {
    fn parse(words: Vec<OsString>) -> Option<Self> {
        let mut words = words.into_iter();
        let name = words.next()?.into_string().ok()?;
        let parent = words.next()?.to_str()?.parse().ok()?;
        if words.next()? != "--" {
            return None;
        }
        Some(Self { name, parent, program: words.next()?, args: words.collect() })
    }
}

/// One line on standard error, which Toolgate keeps as the server's last words.
fn complain(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "toolgate: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<OsString> {
        list.iter().map(Into::into).collect()
    }

    #[test]
    fn a_stage_needs_a_parent_and_a_command() {
        let stage = Stage::parse(words(&["launch", "12", "--", "sh", "-c", "--"])).unwrap();
        assert_eq!((stage.parent, stage.program.to_str()), (12, Some("sh")));
        assert_eq!(stage.args, words(&["-c", "--"]));
        for bad in [&["launch", "x", "--", "sh"][..], &["launch", "1", "sh"], &["launch", "1", "--"], &[]] {
            assert_eq!(Stage::parse(words(bad)), None, "{bad:?}");
        }
    }
}
