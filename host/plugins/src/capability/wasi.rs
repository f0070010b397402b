//! `wasi = "sealed"`: the WASI 0.2 that a guest's libc wants to link, with nothing in it.
//!
//! For guests whose language cannot do without (JavaScript, Python, Go). They find no preopened
//! directory, no argument, no variable, no address that could be dialled or listened on, no name
//! that resolves, an empty standard input; what they print goes to the operator's log under the
//! plugin's name. Clocks tick and random numbers are random, since a libc does not start without
//! them, so views that such a policy makes are never cached.
//!
//! Threat: a guest that waits inside a host call, where no epoch interrupts it. Sealed guests run
//! asynchronously (`guest`), so that what does not end within the call's wall-clock time is dropped.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::io::AsyncWrite;
use toolgate_base::display;
use wasmtime::component::Linker;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, add_to_linker_async};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::limits::{MAX_LOG_LINE, MAX_LOG_LINES};
use crate::state::State;
use crate::text;

/// Packages of WASI that a sealed guest may import. HTTP is not among them: that is a capability.
const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "io", "random", "sockets"];

/// Whether a sealed guest may import this, as `wasi:cli/stdout@0.2.3`.
pub(crate) fn offers(import: &str) -> bool {
    let Some((package, rest)) = import.strip_prefix("wasi:").and_then(|rest| rest.split_once('/')) else {
        return false;
    };
    let version = rest.split_once('@').and_then(|(_, version)| semver::Version::parse(version).ok());
    let fits = |version: semver::Version| version.major == 0 && version.minor == 2 && version.pre.is_empty();
    PACKAGES.contains(&package) && version.is_some_and(fits)
}

/// Adds all of it to a linker.
pub(crate) fn link(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    add_to_linker_async(linker)
}

/// A context with nothing in it.
pub(crate) fn sealed(plugin: &str) -> WasiCtx {
    let lines = Arc::new(Mutex::new(Lines { plugin: plugin.to_owned(), pending: Vec::new(), written: 0 }));
    let mut builder = WasiCtxBuilder::new();
    builder
        .stdout(ToLog(Arc::clone(&lines)))
        .stderr(ToLog(lines))
        .allow_tcp(false)
        .allow_udp(false)
        .allow_ip_name_lookup(false)
        .allow_blocking_current_thread(false)
        .max_random_size(1 << 16);
    builder.build()
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let name = &self.shared.name;
        let ctx = self.wasi.get_or_insert_with(|| Box::new(sealed(name)));
        WasiCtxView { ctx, table: &mut self.table }
    }
}

/// What a guest printed and is not yet a line.
struct Lines {
    plugin: String,
    pending: Vec<u8>,
    written: u32,
}

impl Lines {
    /// Takes bytes in; whole lines, and what is too long for one, go to the log.
    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' || self.pending.len() >= MAX_LOG_LINE {
                self.flush();
            }
            if *byte != b'\n' {
                self.pending.push(*byte);
            }
        }
    }

    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let line = String::from_utf8_lossy(&self.pending).into_owned();
        self.pending.clear();
        self.written = self.written.saturating_add(1);
        let plugin = self.plugin.as_str();
        if self.written <= MAX_LOG_LINES {
            tracing::info!(plugin, "{}", display::escape(text::cut(&line, MAX_LOG_LINE)));
        } else if self.written == MAX_LOG_LINES + 1 {
            tracing::warn!(
                plugin,
                "the plugin printed more than {MAX_LOG_LINES} lines in one instance; the rest is dropped"
            );
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.flush();
    }
}

/// Standard output and standard error.
#[derive(Clone)]
struct ToLog(Arc<Mutex<Lines>>);

impl IsTerminal for ToLog {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for ToLog {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    /// Written at once: a line must not be lost because the instance ends with its call.
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for ToLog {
    fn write(&mut self, bytes: Bytes) -> Result<(), StreamError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StreamError> {
        Ok(())
    }

    fn check_write(&mut self) -> Result<usize, StreamError> {
        Ok(MAX_LOG_LINE)
    }
}

#[async_trait]
impl Pollable for ToLog {
    async fn ready(&mut self) {}
}

impl AsyncWrite for ToLog {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
