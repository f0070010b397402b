//! Carries bytes between an agent's pipes and the gateway, and speaks itself only when the gateway is
//! gone.
//!
//! **Contract.** What the agent says passes as it comes; what the gateway says passes in whole lines, so
//! that its sudden end leaves no torn line before an agent. When the gateway ends first, each open
//! request gets an error that says so. Nothing is ever sent a second time: a call may have run.
//!
//! **Bounds.** 64 KiB upwards, one line downwards. A side that does not read stops the other one being
//! read.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio_util::sync::CancellationToken;
use toolgate_wire::line::{Line, LineDecoder};
use toolgate_wire::{ErrorObject, Limits, Outcome, codes};

use super::dial::Connected;
use super::open_requests::OpenRequests;
use crate::error::ServeError;
use crate::reply;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;
/// A line that was longer gives its memory back.
const KEPT: usize = 1024 * 1024;
/// How long the gateway may go on after the agent was told to end by a signal.
const AFTER_SIGNAL: Duration = Duration::from_secs(8);

/// How a relay ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayEnd {
    /// The agent closed its side, and the gateway ended the session.
    ClientLeft,
    /// The gateway ended first; so many requests got an error from here.
    GatewayEnded {
        /// Requests without a reply.
        unanswered: usize,
    },
}

/// Relays until either side ends, or `shutdown` fires, which is to the gateway as if the agent had
/// closed its side.
///
/// # Errors
/// Where the agent's own pipes break in another way than by being closed.
pub async fn relay<R, W>(
    connected: Connected,
    mut input: R,
    mut output: W,
    shutdown: &CancellationToken,
) -> Result<RelayEnd, ServeError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let Connected { mut from, mut to, pid, .. } = connected;
    let open = Mutex::new(OpenRequests::default());
    if both(&mut from, &mut to, &mut input, &mut output, (&open, shutdown)).await? {
        return Ok(RelayEnd::ClientLeft);
    }
    let unanswered = open.lock().unwrap_or_else(PoisonError::into_inner).take();
    for id in &unanswered {
        let text = reply::response(Some(id), Outcome::Error(gone(pid)));
        write(&mut output, format!("{text}\n").as_bytes()).await?;
    }
    Ok(RelayEnd::GatewayEnded { unanswered: unanswered.len() })
}

/// Carries both directions until one of them is over; whether it was the agent who left.
async fn both(
    from: &mut (impl AsyncBufRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    input: &mut (impl AsyncRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
    (open, shutdown): (&Mutex<OpenRequests>, &CancellationToken),
) -> Result<bool, ServeError> {
    let up = async {
        let ended = tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(Up::Left),
            ended = upwards(input, to, open) => ended,
        };
        // To a gateway that is gone there is nothing to shut.
        let _ = to.shutdown().await;
        ended
    };
    let down = downwards(from, output, open);
    tokio::pin!(up, down);
    let mut left = false;
    let rest = tokio::select! {
        ended = &mut down => ended?,
        ended = &mut up => {
            left = matches!(ended?, Up::Left);
            tokio::select! {
                ended = &mut down => ended?,
                () = patience(shutdown) => Down::Left,
            }
        }
    };
    Ok(left || matches!(rest, Down::Left))
}

/// How the direction from the agent ended.
enum Up {
    /// The agent has no more to say.
    Left,
    /// The gateway takes no more; its own direction says why.
    Gone,
}

/// How the direction to the agent ended.
enum Down {
    /// The agent does not listen any more.
    Left,
    /// The gateway has no more to say.
    Gone,
}

/// Resolves when the gateway has had its time after a signal; without one it takes what it needs, since
/// it bounds the end of a session itself.
async fn patience(shutdown: &CancellationToken) {
    shutdown.cancelled().await;
    tokio::time::sleep(AFTER_SIGNAL).await;
}

/// What an open request is told.
fn gone(pid: u32) -> ErrorObject {
    let text = format!(
        "the Toolgate gateway (process {pid}) ended before it answered. A call may have run; it was not sent \
         again. Start the client's connection again to go on"
    );
    let mut error = ErrorObject::new(codes::UPSTREAM_UNAVAILABLE, text);
    let data = json!({ "toolgate/error": { "code": "gateway_ended" } }).to_string();
    error.data = toolgate_wire::edit::raw(data).ok();
    error
}

async fn upwards(
    input: &mut (impl AsyncRead + Unpin),
    to: &mut (impl AsyncWrite + Unpin),
    open: &Mutex<OpenRequests>,
) -> Result<Up, ServeError> {
    let mut lines = LineDecoder::new(Limits::default().max_message);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = input.read(&mut chunk).await.map_err(ServeError::Read)?;
        let bytes = chunk.get(..count).unwrap_or_default();
        let whole = if count == 0 { Vec::from_iter(lines.finish()) } else { lines.push(bytes) };
        // Noted before it leaves: the reply could be here before the next statement.
        for line in whole {
            if let Line::Text(text) = line {
                open.lock().unwrap_or_else(PoisonError::into_inner).sent(&text);
            }
        }
        if count == 0 {
            return Ok(Up::Left);
        }
        if to.write_all(bytes).await.is_err() {
            return Ok(Up::Gone);
        }
    }
}

async fn downwards(
    from: &mut (impl AsyncBufRead + Unpin),
    output: &mut (impl AsyncWrite + Unpin),
    open: &Mutex<OpenRequests>,
) -> Result<Down, ServeError> {
    let mut line = Vec::new();
    loop {
        let read = from.read_until(b'\n', &mut line).await;
        if !matches!(read, Ok(count) if count > 0) || line.last() != Some(&b'\n') {
            // A line that breaks off is no message.
            return Ok(Down::Gone);
        }
        open.lock().unwrap_or_else(PoisonError::into_inner).answered(&line);
        if !write(output, &line).await? {
            return Ok(Down::Left);
        }
        line.clear();
        line.shrink_to(KEPT);
    }
}

/// False where the agent does not listen any more: it has heard all it wanted.
async fn write(output: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<bool, ServeError> {
    let written = async {
        output.write_all(bytes).await?;
        output.flush().await
    };
    match written.await {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(ServeError::Write(error)),
    }
}

#[cfg(test)]
mod tests;
