//! The one task that writes to a client.
//!
//! Whoever has something to say waits for a place in a short queue; steps of progress do not wait, they
//! are dropped. A reply for which the client's budget has no room is replaced by an error. When the pipe breaks the queue closes, which ends the session.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::error::ServeError;
use crate::unread::{Lost, Waiting, Waits};

/// How long the last messages may take to leave once the session has ended.
const FLUSH: Duration = Duration::from_secs(2);

/// A place to put messages for the client.
#[derive(Clone)]
pub(super) struct Writer {
    queue: mpsc::Sender<Waiting>,
    waits: Arc<Waits>,
    /// Hears of replies that found no room.
    note: Arc<dyn Fn(Lost) + Send + Sync>,
}

/// The writing task.
pub(super) struct Writing {
    task: JoinHandle<io::Result<()>>,
}

impl Writer {
    /// Starts the task with a queue of `places` messages, of which `waits` is the budget.
    pub(super) fn start<W>(
        pipe: W,
        places: usize,
        waits: Arc<Waits>,
        note: impl Fn(Lost) + Send + Sync + 'static,
    ) -> (Self, Writing)
    where
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (queue, messages) = mpsc::channel(places.max(1));
        let writer = Self { queue, waits, note: Arc::new(note) };
        (writer, Writing { task: tokio::spawn(write_all(pipe, messages)) })
    }

    /// Queues a message, waiting for a place. Lost only if the pipe is broken, or if the client reads so
    /// little that there is no room for it; a reply is then replaced by an error.
    pub(super) async fn send(&self, message: String) {
        let Some(message) = self.waits.reply(message, &mut |lost| (self.note)(lost)) else { return };
        if self.queue.send(message).await.is_err() {
            tracing::debug!("the client has gone; a message for it is dropped");
        }
    }

    /// Queues a message that may be lost if there is no place for it now.
    pub(super) fn send_if_room(&self, message: String) {
        let Some(message) = self.waits.may_lose(message) else { return };
        if self.queue.try_send(message).is_err() {
            tracing::debug!("the client reads too slowly; a step of progress is dropped");
        }
    }

    /// Resolves when there is a free place and little to read, or the pipe is broken.
    pub(super) async fn room(&self) {
        drop(self.queue.reserve().await);
        tokio::select! {
            () = self.waits.room() => {}
            () = self.queue.closed() => {}
        }
    }

    /// Resolves when the pipe is broken.
    pub(super) async fn closed(&self) {
        self.queue.closed().await;
    }

    /// True once the pipe is broken.
    pub(super) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }
}

impl Writing {
    /// Waits for the last messages. A client that closed its side has heard all it wanted.
    pub(super) async fn finish(mut self) -> Result<(), ServeError> {
        match tokio::time::timeout(FLUSH, &mut self.task).await {
            Ok(Ok(Err(error))) if error.kind() != io::ErrorKind::BrokenPipe => Err(ServeError::Write(error)),
            Ok(_) => Ok(()),
            Err(_) => {
                self.task.abort();
                Ok(())
            }
        }
    }
}

async fn write_all<W: AsyncWrite + Unpin>(
    mut pipe: W,
    mut messages: mpsc::Receiver<Waiting>,
) -> io::Result<()> {
    while let Some(mut message) = messages.recv().await {
        message.text.push('\n');
        pipe.write_all(message.text.as_bytes()).await?;
        if messages.is_empty() {
            pipe.flush().await?;
        }
    }
    pipe.shutdown().await
}
