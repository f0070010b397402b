//! The first stage of `__child`: a small process that stays between Toolgate and a server and
//! leaves no process behind.
//!
//! A parent-death signal reaches only direct children, and a process group only those who stay in
//! it; `npx`, `uvx` and `sh -c "srv & wait"` have grandchildren (ST-12). So the supervisor
//! - gets a `TERM` itself when Toolgate dies, `kill -9` included, or when Toolgate wants a stop,
//! - adopts every orphan below it (child subreaper), so that "no child left to wait for" means
//!   that the whole tree is gone,
//! - ends the tree when its server ends: what remains then would hold pipes and locks for nobody.
//!
//! What it cannot survive is a `KILL` of itself; then its server dies by its own death signal.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::container::Container;
use super::{CHILD_WORD, Stage, complain};

/// From `TERM` to the group until `KILL`.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// The same when the server itself has ended, or its container was stopped already.
const LEFTOVER_GRACE: Duration = Duration::from_millis(700);
/// How long a container may take to stop.
const CONTAINER_STOP: Duration = Duration::from_secs(3);
/// How long to repeat `KILL` before giving up on what cannot be killed.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// The sum of the longest path through [`end_tree`]; Toolgate waits a little longer than that.
pub(crate) const LONGEST_STOP: Duration = Duration::from_millis(4_700);

type Deaths = mpsc::UnboundedReceiver<(Pid, WaitStatus)>;

/// Runs the server to its end and returns its exit status.
pub(super) fn run(stage: Stage) -> i32 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.and_then(|runtime| {
        let ended = runtime.block_on(supervise(stage));
        // The reaper thread may sit in `wait`; the process is about to exit in any case.
        runtime.shutdown_background();
        ended
    });
    ended.unwrap_or_else(|error| {
        complain(&format!("cannot supervise the server: {error}"));
        126
    })
}

async fn supervise(mut stage: Stage) -> io::Result<i32> {
    // The handler comes first: a TERM between the death signal and the handler would be lost.
    let mut term = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut hangup = signal(SignalKind::hangup())?;
    if !tie_to_parent(stage.parent)? {
        return Ok(126);
    }
    let container = Container::plan(&stage.program, &mut stage.args)?;
    let server = spawn_server(&stage)?;
    let mut deaths = reap();
    release_stdio()?;

    let mut status = None;
    let stopped = loop {
        tokio::select! {
            _ = term.recv() => break true,
            _ = interrupt.recv() => break true,
            _ = hangup.recv() => break true,
            death = deaths.recv() => match death {
                Some((pid, how)) if pid == server => {
                    status = Some(how);
                    break false;
                }
                Some(_) => {}
                None => break false,
            },
        }
    };
    let last = end_tree(server, deaths, container, stopped).await;
    Ok(status.or(last).map_or(137, exit_code))
}

/// Death signal, adoption of orphans and no-new-privileges, all inherited or kept for the tree.
/// False: Toolgate is gone already.
fn tie_to_parent(parent: i32) -> io::Result<bool> {
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::thread::set_no_new_privs(true)?;
    }
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get());
    Ok(now == Some(parent))
}

/// Starts the launch stage as the leader of a group of its own. Called on the main thread, which
/// lives as long as this process, because the launched process dies with the thread that made it.
fn spawn_server(stage: &Stage) -> io::Result<Pid> {
    let child = Command::new(own_program()?)
        .args([CHILD_WORD, "launch"])
        .arg(std::process::id().to_string())
        .arg("--")
        .arg(&stage.program)
        .args(&stage.args)
        .process_group(0)
        .spawn()?;
    i32::try_from(child.id())
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("the system gave an impossible process id"))
}

/// The running program, even if its file was replaced by an upgrade meanwhile.
fn own_program() -> io::Result<std::path::PathBuf> {
    let running = std::path::Path::new("/proc/self/exe");
    if running.exists() {
        return Ok(running.to_owned());
    }
    std::env::current_exe()
}

/// Gives up this process's copies of the server's pipes, so that their ends are seen on both
/// sides when the server closes them.
fn release_stdio() -> io::Result<()> {
    let null = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// A thread that waits for every child, adopted ones included. The channel closes when there is
/// no child left: then there is no descendant left either.
fn reap() -> Deaths {
    let (sender, deaths) = mpsc::unbounded_channel();
    tokio::task::spawn_blocking(move || {
        loop {
            match rustix::process::wait(WaitOptions::empty()) {
                Ok(Some(death)) => {
                    if sender.send(death).is_err() {
                        return;
                    }
                }
                Ok(None) | Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
            }
        }
    });
    deaths
}

/// Ends everything below this process. Returns how the server ended, if that happened here.
async fn end_tree(
    server: Pid,
    mut deaths: Deaths,
    container: Option<Container>,
    stopped: bool,
) -> Option<WaitStatus> {
    let mut grace = if stopped { TERM_GRACE } else { LEFTOVER_GRACE };
    if let Some(container) = container
        && container.stop(CONTAINER_STOP).await
    {
        grace = LEFTOVER_GRACE;
    }
    let _ = rustix::process::kill_process_group(server, Signal::TERM);
    let mut status = None;
    let mut note = |death: Option<(Pid, WaitStatus)>| {
        if let Some((pid, how)) = death
            && pid == server
        {
            status = Some(how);
        }
        death.is_some()
    };
    let deadline = Instant::now() + grace;
    while let Ok(death) = timeout_at(deadline, deaths.recv()).await {
        if !note(death) {
            return status;
        }
    }
    let deadline = Instant::now() + KILL_LIMIT;
    while Instant::now() < deadline {
        let _ = rustix::process::kill_process_group(server, Signal::KILL);
        #[cfg(target_os = "linux")]
        super::descendants::kill_all();
        // Orphans arrive here as their parents die, so the round is repeated until none is left.
        while let Ok(death) = timeout(Duration::from_millis(20), deaths.recv()).await {
            if !note(death) {
                return status;
            }
        }
        sleep(Duration::from_millis(5)).await;
    }
    status
}

fn exit_code(status: WaitStatus) -> i32 {
    status.exit_status().or_else(|| status.terminating_signal().map(|signal| 128 + signal)).unwrap_or(137)
}

impl Container {
    /// Runs the engine's stop command, bounded by `limit`. True: there was something to stop.
    async fn stop(&self, limit: Duration) -> bool {
        let Some(mut command) = self.stop_command() else {
            return false;
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // The reaper may take its status first; either way this returns when the command ended.
        let run = tokio::task::spawn_blocking(move || command.status());
        let _ = timeout(limit, run).await;
        true
    }
}
