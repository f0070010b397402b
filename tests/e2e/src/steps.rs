//! Kills a process as it enters its n-th call that changes files: every state that a `kill -9` can leave.
//!
//! The process is traced (`ptrace`), so that the moment is the same in each run of the same program, and
//! nothing in the program has to help. Counted are calls of all its threads that make, rename, link, remove,
//! cut or flush a file; what is between two of them changes no name, and what was written to a file that is
//! not flushed and renamed yet is nothing that anybody reads.
//!
//! Only children of the calling thread are waited for, so tests beside it keep theirs.

use std::fs;
use std::process::{Command, Stdio};

use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// Stops, and goes on as another program when it is continued: it can be taken hold of in between.
const HELD: &str = "kill -STOP $$; exec \"$0\" \"$@\"";
/// `O_CREAT` of `open` and its kin.
const CREATES: u64 = libc::O_CREAT as u64;
/// What `PTRACE_GET_SYSCALL_INFO` says of a call that begins.
const ENTRY: u8 = libc::PTRACE_SYSCALL_INFO_ENTRY;

/// How a traced process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steps {
    /// Its exit code; none where it was killed.
    pub code: Option<i32>,
    /// How many calls that change files it had entered.
    pub steps: usize,
}

/// Runs a command, and kills it as it enters call number `at`, counted from 1. `env` is all of its
/// environment; `usize::MAX` lets it end by itself.
#[allow(clippy::zombie_processes)] // it is waited for by its id, as each of its threads is
pub fn kill_at(command: &Command, at: usize) -> Steps {
    let mut held = Command::new("sh");
    held.args(["-c", HELD]).arg(command.get_program()).args(command.get_args()).env_clear();
    for (name, value) in command.get_envs() {
        held.envs(value.map(|value| (name, value)));
    }
    held.current_dir(command.get_current_dir().unwrap());
    let child = held.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
    let stopped = waitpid(pid, Some(WaitPidFlag::WUNTRACED)).unwrap();
    assert!(matches!(stopped, WaitStatus::Stopped(..)), "{stopped:?}");
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD
        | ptrace::Options::PTRACE_O_TRACECLONE
        | ptrace::Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options)
        .unwrap_or_else(|error| panic!("a child cannot be traced here ({error}): ptrace has to be allowed"));
    kill(pid, Signal::SIGCONT).unwrap();
    follow(pid, at)
}

fn follow(pid: Pid, at: usize) -> Steps {
    let mut steps = 0;
    loop {
        let all = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let status = waitpid(None::<Pid>, Some(all)).unwrap();
        let (stopped, deliver) = match status {
            WaitStatus::Exited(ended, code) if ended == pid => return Steps { code: Some(code), steps },
            WaitStatus::Signaled(ended, ..) if ended == pid => return Steps { code: None, steps },
            WaitStatus::PtraceSyscall(stopped) => {
                if enters_a_change(stopped) {
                    steps += 1;
                    if steps == at {
                        kill(pid, Signal::SIGKILL).unwrap();
                    }
                }
                (stopped, None)
            }
            WaitStatus::Stopped(stopped, signal) => (stopped, Some(signal)),
            WaitStatus::PtraceEvent(stopped, ..) => (stopped, None),
            _ => continue,
        };
        // A thread that was killed meanwhile cannot go on, and says so when it is waited for.
        let _ = ptrace::syscall(stopped, deliver);
    }
}

/// Whether this thread begins a call that changes files.
fn enters_a_change(thread: Pid) -> bool {
    if !ptrace::syscall_info(thread).is_ok_and(|info| info.op == ENTRY) {
        return false;
    }
    let text = fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    let mut words = text.split_whitespace();
    let number: i64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(-1);
    let arguments: Vec<u64> = words
        .map(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or_default())
        .collect();
    let creates = |flags: usize| arguments.get(flags).is_some_and(|flags| flags & CREATES != 0);
    match number {
        libc::SYS_openat => creates(2),
        libc::SYS_renameat
        | libc::SYS_renameat2
        | libc::SYS_linkat
        | libc::SYS_symlinkat
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat
        | libc::SYS_ftruncate
        | libc::SYS_fsync
        | libc::SYS_fdatasync => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => creates(1),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename
        | libc::SYS_link
        | libc::SYS_symlink
        | libc::SYS_unlink
        | libc::SYS_mkdir
        | libc::SYS_rmdir => true,
        _ => false,
    }
}
