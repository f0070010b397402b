//! The thread that moves the engine's epoch, so that guests can be interrupted.
//!
//! It ticks only while guests run, and sleeps otherwise: an idle gateway wakes nobody. It holds
//! the engine weakly and ends with it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::EngineWeak;

/// Length of one epoch. A deadline is met at most one tick late (spec plugin-host 3.5).
pub(crate) const TICK: Duration = Duration::from_millis(1);

/// Ticks without a running guest after which the thread sleeps.
const IDLE_TICKS: u32 = 50;

/// The ticker thread's handle.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Thread,
}

#[derive(Default)]
struct Shared {
    /// Guests running now.
    running: AtomicUsize,
    /// Whether the thread sleeps, or is about to.
    asleep: AtomicBool,
}

/// As long as one of these lives, epochs pass.
pub(crate) struct Running<'a>(&'a Shared);

impl Ticker {
    /// Starts the thread.
    pub(crate) fn start(engine: EngineWeak) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let handle = thread::Builder::new()
            .name("plugin-epochs".to_owned())
            .spawn(move || tick(&engine, &of_thread))?;
        Ok(Self { shared, thread: handle.thread().clone() })
    }

    /// To be held while a guest runs.
    pub(crate) fn running(&self) -> Running<'_> {
        // The order matters on both sides: first count the guest, then look whether the thread
        // sleeps; the thread first says that it sleeps, then looks for guests. One of the two sees
        // the other, so no guest ever runs without ticks.
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        if self.shared.asleep.load(Ordering::SeqCst) {
            self.thread.unpark();
        }
        Running(&self.shared)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn tick(engine: &EngineWeak, shared: &Shared) {
    let mut idle = 0_u32;
    loop {
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
        if shared.running.load(Ordering::SeqCst) > 0 {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle < IDLE_TICKS {
            thread::sleep(TICK);
            continue;
        }
        shared.asleep.store(true, Ordering::SeqCst);
        if shared.running.load(Ordering::SeqCst) == 0 {
            // The bound only lets the thread notice that its engine has gone.
            thread::park_timeout(Duration::from_secs(5));
        }
        shared.asleep.store(false, Ordering::SeqCst);
        idle = 0;
    }
}
