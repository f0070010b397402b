//! `toolgate:plugin/clock`: what time it is.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::bindings::clock::Host;
use crate::state::State;

impl Host for State {
    fn now_ms(&mut self) -> wasmtime::Result<u64> {
        self.knows.more = true;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic_ns(&mut self) -> wasmtime::Result<u64> {
        // Counted from the first question, so that it says nothing about the machine's uptime.
        static START: OnceLock<Instant> = OnceLock::new();
        self.knows.more = true;
        let since = START.get_or_init(Instant::now).elapsed();
        Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }
}
