//! Every limit of a store: what the release asks for, but never more than the host gives.
//!
//! Threat: a guest that loops, grows, recurses, hoards handles or returns huge values. Each of
//! these ends the guest's call and nothing else (design.md 4, rows WA-03, WA-07).

mod meter;

use std::time::Duration;

use toolgate_signing::{Kind, Release};
use wasmtime::ResourceLimiter;

pub(crate) use meter::{Meter, Verdict};

/// Bytes of linear memory of one instance.
pub(crate) const MAX_MEMORY: usize = 64 << 20;
/// Linear memories of one instance.
pub(crate) const MAX_MEMORIES: u32 = 1;
/// Core instances in one component: a guest and its adapter modules. The pool holds so many for
/// each place, so a larger number would cost every plugin.
pub(crate) const MAX_INSTANCES: u32 = 8;
/// Tables in one component.
pub(crate) const MAX_TABLES: u32 = 8;
/// Elements of all tables of one instance.
pub(crate) const MAX_TABLE_ELEMENTS: usize = 20_000;
/// Core instances, and tables, of a component that brings the runtime of its language: an
/// interpreter, its libc, what links them, and a module for each of its libraries. Such components
/// live outside the pool (`engine::sealed`), so that nobody else pays for this number.
pub(crate) const MAX_SEALED_INSTANCES: u32 = 32;
/// Bytes of stack for guest code. A caller's thread needs twice that.
pub(crate) const MAX_STACK: usize = 512 << 10;
/// Handles that a guest may hold: a batch of 256 requests, each with definition and document, and some.
pub(crate) const MAX_HANDLES: usize = 1024;
/// Requests in one batch of the list hook or of `adapter.tools` (design.md 4).
pub(crate) const MAX_BATCH: usize = 256;
/// Running time that each request of a batch adds to that of one call: a batch of 256 looks at 256
/// definitions, and on a busy machine that takes longer than looking at one.
const PER_REQUEST: Duration = Duration::from_micros(100);
/// Edits in one answer.
pub(crate) const MAX_EDITS: usize = 256;
/// Log lines that one call may write, and bytes of one line.
pub(crate) const MAX_LOG_LINES: u32 = 64;
/// Bytes of one log line.
pub(crate) const MAX_LOG_LINE: usize = 4096;
/// Bytes of a component (spec plugin-host 3.7).
pub(crate) const MAX_COMPONENT: usize = 8 << 20;
/// Bytes of a component that brings the runtime of its language (`wasi = "sealed"`).
pub(crate) const MAX_SEALED_COMPONENT: usize = 32 << 20;
/// Bytes of the settings of one plugin.
pub(crate) const MAX_SETTINGS: usize = 256 << 10;

/// Most bytes that one host call, or one answer, may carry: a whole message (design.md 9a).
const MAX_HOST_BYTES: usize = 16 << 20;
/// Least: room for reasons and labels, so that a release cannot ask for a plugin that only fails.
const MIN_HOST_BYTES: usize = 64 << 10;
/// What a release gets that asks for no number.
const DEFAULT_HOST_BYTES: usize = 1 << 20;
/// Least memory: one page is nothing; a Rust guest starts with 17.
const MIN_MEMORY: usize = 2 << 20;

/// The limits of one plugin, clamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Bytes of linear memory.
    pub(crate) memory: usize,
    /// Bytes that one host call or one answer may carry.
    pub(crate) host_bytes: usize,
    /// Running time of one call.
    pub(crate) call: Duration,
    /// Running time of instantiation and `configure`.
    pub(crate) init: Duration,
    /// How long all host calls of one call may wait for something outside.
    pub(crate) wait: Duration,
    /// Core instances, and tables, of one store.
    pub(crate) parts: Parts,
}

/// How many pieces one store may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Core instances.
    pub(crate) instances: usize,
    /// Tables.
    pub(crate) tables: usize,
}

impl Parts {
    /// What the pool has room for.
    pub(crate) const POOLED: Self = Self { instances: MAX_INSTANCES as usize, tables: MAX_TABLES as usize };
    /// Of a guest that brings the runtime of its language.
    pub(crate) const SEALED: Self =
        Self { instances: MAX_SEALED_INSTANCES as usize, tables: MAX_SEALED_INSTANCES as usize };
}

impl Limits {
    /// min(what the release asks for, what the host gives); nothing asked for is the host's default.
    pub(crate) fn clamped(release: &Release) -> Self {
        let sealed = release.capabilities.wasi.is_some();
        let (call_max, init_max, wait) = match release.kind {
            // A policy is asked several times in a call that may cost 0.15 ms in all. One in a
            // language with a runtime of its own needs milliseconds to wake up.
            Kind::Policy if sealed => (250, 2_000, 5),
            Kind::Policy => (5, 50, 5),
            Kind::Adapter => (250, if sealed { 2_000 } else { 500 }, 30),
            Kind::Installer => (5_000, if sealed { 2_000 } else { 500 }, 120),
        };
        let asked = &release.limits;
        Self {
            memory: ask(asked.memory_bytes, MAX_MEMORY, MAX_MEMORY).max(MIN_MEMORY),
            host_bytes: ask(asked.host_bytes, DEFAULT_HOST_BYTES, MAX_HOST_BYTES).max(MIN_HOST_BYTES),
            call: Duration::from_millis(asked_ms(asked.call_ms, call_max)),
            init: Duration::from_millis(asked_ms(asked.init_ms, init_max)),
            wait: Duration::from_secs(wait),
            parts: if sealed { Parts::SEALED } else { Parts::POOLED },
        }
    }
}

impl Limits {
    /// Running time of one call about so many requests, [`MAX_BATCH`] at most.
    pub(crate) fn batch(&self, requests: usize) -> Duration {
        let requests = u32::try_from(requests.min(MAX_BATCH)).unwrap_or(u32::MAX);
        self.call.saturating_add(PER_REQUEST.saturating_mul(requests))
    }
}

fn ask(asked: u64, default: usize, max: usize) -> usize {
    match usize::try_from(asked) {
        Ok(0) => default,
        Ok(bytes) => bytes.min(max),
        Err(_) => max,
    }
}

fn asked_ms(asked: u64, max: u64) -> u64 {
    if asked == 0 { max } else { asked.min(max) }
}

/// What wasmtime asks before an instance grows. It counts over the whole store, and remembers
/// which limit was met, because the guest then usually traps for a reason of its own.
pub(crate) struct Growth {
    memory_limit: usize,
    parts: Parts,
    memory: usize,
    table_elements: usize,
    /// The first limit that was met.
    pub(crate) met: Option<&'static str>,
}

impl Growth {
    /// For a store with these limits.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { memory_limit: limits.memory, parts: limits.parts, memory: 0, table_elements: 0, met: None }
    }
}

impl ResourceLimiter for Growth {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.memory.saturating_add(desired.saturating_sub(current));
        if total > self.memory_limit {
            self.met.get_or_insert("memory");
            return Ok(false);
        }
        self.memory = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let total = self.table_elements.saturating_add(desired.saturating_sub(current));
        if total > MAX_TABLE_ELEMENTS {
            self.met.get_or_insert("table elements");
            return Ok(false);
        }
        self.table_elements = total;
        Ok(true)
    }

    fn instances(&self) -> usize {
        self.parts.instances
    }

    fn tables(&self) -> usize {
        self.parts.tables
    }

    fn memories(&self) -> usize {
        MAX_MEMORIES as usize
    }
}

#[cfg(test)]
mod tests;
