//! One agent on a pair of pipes, usually the process's own stdin and stdout.
//!
//! **Contract.** Each line is one message (or one batch of revision 2025-03-26); both eras may come on
//! the same pipes, message by message. Nothing but protocol is written. A cancelled request gets no
//! reply; every other request gets exactly one. The end of input ends the session: running calls have a
//! moment to finish, then they are cancelled and the pipe is closed.
//!
//! **Bounds.** All writing goes through one task with a short queue. While the queue is full nothing is
//! read, so a client that stops reading stops being served instead of filling memory. Nothing is read
//! either while much waits, and a reply for which the budget has no room is replaced by an error
//! ([`crate::unread`]).

mod session;
mod writer;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use toolgate_wire::line::LineDecoder;

use crate::backend::{Backend, DroppedReply};
use crate::error::ServeError;
use crate::options::StdioOptions;
use crate::unread::Lost;
use session::{CREDENTIAL, Session};
use writer::Writer;

/// Bytes read at once.
const CHUNK: usize = 64 * 1024;

/// Serves the agent on stdin and stdout until it closes its side, or `options.shutdown` fires.
///
/// Reading stdin occupies a thread that cannot be interrupted: a process that ends for another reason
/// than the end of input must exit, or shut its runtime down in the background.
pub async fn serve_stdio(backend: impl Backend, options: StdioOptions) -> Result<(), ServeError> {
    serve_pipes(backend, options, tokio::io::stdin(), tokio::io::stdout()).await
}

/// The same on any pair of pipes.
pub async fn serve_pipes<R, W>(
    backend: impl Backend,
    options: StdioOptions,
    reader: R,
    writer: W,
) -> Result<(), ServeError>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let backend: Arc<dyn Backend> = Arc::new(backend);
    let note = {
        let (backend, persona) = (Arc::clone(&backend), options.persona.clone());
        move |Lost { id, bytes, limit }: Lost| {
            let credential = CREDENTIAL.to_owned();
            backend.note_dropped(DroppedReply {
                credential,
                persona: persona.clone(),
                request_id: id,
                bytes,
                limit,
            });
        }
    };
    let (writer, writing) = Writer::start(writer, options.queue, options.unread.client(), note);
    let shutdown = options.shutdown.clone();
    let session = Session::new(backend, options, writer.clone());
    let read = tokio::select! {
        biased;
        () = shutdown.cancelled() => Ok(()),
        () = writer.closed() => Ok(()),
        read = read_lines(&session, &writer, reader) => read,
    };
    session.close().await;
    drop((session, writer));
    let written = writing.finish().await;
    read.and(written)
}

async fn read_lines<R: AsyncRead + Unpin>(
    session: &Arc<Session>,
    writer: &Writer,
    mut reader: R,
) -> Result<(), ServeError> {
    let mut decoder = LineDecoder::new(session.limits().max_message);
    let mut chunk = vec![0; CHUNK];
    loop {
        writer.room().await;
        let count = reader.read(&mut chunk).await.map_err(ServeError::Read)?;
        if count == 0 {
            break;
        }
        for line in decoder.push(chunk.get(..count).unwrap_or_default()) {
            session.line(line).await;
        }
    }
    // A last line without its newline is still a message: the pipe ended, the text did not break off.
    if let Some(line) = decoder.finish() {
        session.line(line).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
