//! The start of a child, on one thread that never ends.
//!
//! The parent-death signal of a child fires when the thread that started it ends, not when the
//! process does. Worker threads of a runtime come and go, so every child is started from one
//! thread of this module's own, which lives as long as the process.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};

use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use toolgate_base::Secret;

use super::environment::{child_environment, find_program};
use crate::error::ConnectError;
use crate::sys::CHILD_WORD;

/// The parts of a stdio entry and the program that supervises its child.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) server: String,
    pub(super) child_program: PathBuf,
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) env: Vec<(String, Secret)>,
    pub(super) cwd: Option<PathBuf>,
}

impl Recipe {
    /// Starts the child with pipes for all three streams. A missing command is told here, with
    /// the `PATH` that was searched; no shell is involved.
    pub(super) async fn start(&self) -> Result<Child, ConnectError> {
        let environment = child_environment(std::env::vars_os(), &self.env);
        let cwd = self.cwd.as_deref();
        let program = find_program(&self.server, &self.program, &environment, cwd)?;
        let spawn_failed = |error: io::Error| ConnectError::Spawn {
            server: self.server.clone(),
            detail: format!("{}: {error}", self.child_program.display()),
        };
        // A relative path would count from the child's directory.
        let supervisor = std::path::absolute(&self.child_program).map_err(spawn_failed)?;
        let mut command = Command::new(supervisor);
        command
            .args([CHILD_WORD, "supervise"])
            .arg(std::process::id().to_string())
            .arg("--")
            .arg(program)
            .args(self.args.iter().map(OsString::from))
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal is for Toolgate, which then stops its children in order.
            .process_group(0);
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        spawn(command).await.map_err(spawn_failed)
    }
}

struct Job {
    command: Command,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
}

async fn spawn(command: Command) -> io::Result<Child> {
    let (reply, answer) = oneshot::channel();
    let job = Job { command, runtime: Handle::current(), reply };
    let gone = || io::Error::other("the thread that starts children is gone");
    spawner()?.send(job).map_err(|_| gone())?;
    answer.await.map_err(|_| gone())?
}

fn spawner() -> io::Result<&'static Sender<Job>> {
    static SPAWNER: OnceLock<Sender<Job>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender);
    }
    let (sender, jobs) = channel::<Job>();
    std::thread::Builder::new().name("toolgate-spawn".to_owned()).spawn(move || {
        for mut job in jobs {
            let _inside = job.runtime.enter();
            if let Err(Ok(mut orphan)) = job.reply.send(job.command.spawn()) {
                // Whoever asked gave up meanwhile.
                let _ = orphan.start_kill();
            }
        }
    })?;
    // Of two threads made at the same moment the one whose sender is dropped ends without a job.
    Ok(SPAWNER.get_or_init(|| sender))
}
