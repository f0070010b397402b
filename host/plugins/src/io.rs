//! Where host calls wait for the network, and where sealed guests run: a small runtime of the
//! plugins' own, made on first use.
//!
//! A host call of a guest is synchronous, on a thread that may belong to any runtime or to none.
//! So the work is handed over here, and the thread waits for its answer with a bound: a future
//! that does not end is dropped at the bound, and no wait depends on who called.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

/// Threads that drive connections. They only move bytes; nothing blocks them.
const WORKERS: usize = 2;

/// Runs a future here and waits for it on this thread, at most `limit`; none where it did not end
/// in time, or the machine gave no thread.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let handle = handle()?;
    let (done, wait) = std::sync::mpsc::sync_channel(1);
    let task = handle.spawn(async move {
        let _ = done.send(work.await);
    });
    let answer = wait.recv_timeout(limit).ok();
    // What has not ended by now is not waited for, and must not go on.
    task.abort();
    answer
}

/// The runtime; none where the machine gave no thread.
pub(crate) fn handle() -> Option<Handle> {
    static RUNTIME: OnceLock<Option<Runtime>> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let made = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("plugin-io")
            .enable_all()
            .build();
        match made {
            Ok(runtime) => Some(runtime),
            Err(error) => {
                tracing::error!(%error, "no threads for the network calls of plugins; they answer as unavailable");
                None
            }
        }
    });
    runtime.as_ref().map(|runtime| runtime.handle().clone())
}

/// Runs a future on that runtime without waiting for it: for a port that has to write something
/// down whoever called. An error where the machine gave no thread.
pub fn detached(work: impl Future<Output = ()> + Send + 'static) -> Result<(), &'static str> {
    let handle = handle().ok_or("no threads are there to do it")?;
    drop(handle.spawn(work));
    Ok(())
}
