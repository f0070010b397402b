//! A server as a child process: JSON lines over its standard input and output.
//!
//! Four tasks own one child: a writer, two readers, and the keeper, which alone waits for its end
//! and alone stops it. Bounds: lines up to `max_message`, a queue of [`QUEUE`] texts to write, a
//! tail of what the child says on stderr. The threats are a child that writes without end, reads
//! nothing, floods stderr, prints banners on stdout, or dies in the middle of a call; none of
//! these stalls another request or keeps a caller waiting.

mod environment;
mod process;
mod tail;

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_wire::line::{Line, LineDecoder};

use self::process::Recipe;
pub(crate) use self::tail::Tail;
use crate::error::ConnectError;
use crate::hub::{Asked, Hub};
use crate::pending::Shared;
use crate::spec::{ServerSpec, TransportSpec};
use crate::sys;

/// Texts that wait to be written at most.
const QUEUE: usize = 64;
/// How long a child may take to end after its input was closed.
const STDIN_GRACE: Duration = Duration::from_secs(2);
/// How long to read on after the end of a child: what it had written is still in the pipe.
const DRAIN: Duration = Duration::from_millis(300);
/// How long a child that closed its output may take to tell its exit status.
const EXIT_STATUS: Duration = Duration::from_millis(500);

/// One running child. Dropping it stops the child in the background.
#[derive(Debug)]
pub(crate) struct StdioLink {
    server: String,
    queue: mpsc::Sender<Frame>,
    stop: CancellationToken,
    ended: watch::Receiver<Option<String>>,
    tail: Arc<Tail>,
}

#[derive(Debug)]
struct Frame {
    text: String,
    /// The request this is, if it is one that may still be withdrawn.
    request: Option<Arc<Shared>>,
}

impl StdioLink {
    /// Starts the child of a stdio entry. What it says beside its messages goes to `tail`.
    pub(crate) async fn start(
        spec: &ServerSpec,
        hub: &Arc<Hub>,
        tail: Arc<Tail>,
    ) -> Result<Self, ConnectError> {
        let TransportSpec::Stdio { program, args, env, cwd } = &spec.transport else {
            return Err(ConnectError::Spawn {
                server: spec.name.clone(),
                detail: "the entry has no command".to_owned(),
            });
        };
        let recipe = Recipe {
            server: spec.name.clone(),
            child_program: spec.child_program.clone(),
            program: program.clone(),
            args: args.clone(),
            env: env.clone(),
            cwd: cwd.clone(),
        };
        let mut child = recipe.start().await?;
        let (queue, frames) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let output_ended = CancellationToken::new();
        let (told, ended) = watch::channel(None);

        let mut readers = Vec::new();
        if let Some(stdin) = child.stdin.take() {
            let writer = write(stdin, frames, stop.clone(), output_ended.clone());
            tokio::spawn(writer);
        }
        if let Some(stdout) = child.stdout.take() {
            let reader =
                read(stdout, Arc::clone(hub), Arc::clone(&tail), queue.downgrade(), output_ended.clone());
            readers.push(tokio::spawn(reader));
        }
        if let Some(stderr) = child.stderr.take() {
            readers.push(tokio::spawn(drain(stderr, Arc::clone(&tail))));
        }
        let answers = queue.downgrade();
        hub.questions.set_outlet(Box::new(move |text| {
            // A person's answer waits for its turn; there are only so many open questions.
            if let (Some(queue), Ok(runtime)) = (answers.upgrade(), tokio::runtime::Handle::try_current()) {
                runtime.spawn(async move { drop(queue.send(Frame { text, request: None }).await) });
            }
        }));
        let keeper = Keeper {
            child,
            hub: Arc::clone(hub),
            tail: Arc::clone(&tail),
            readers,
            stop: stop.clone(),
            output_ended,
        };
        tokio::spawn(keeper.keep(told));
        Ok(Self { server: spec.name.clone(), queue, stop, ended, tail })
    }

    /// Queues a request. It counts as sent from the moment its first byte may leave. If the child
    /// takes no more, the keeper is about to end every request with the reason, this one too.
    pub(crate) async fn send(&self, text: String, request: Arc<Shared>) {
        let _ = self.queue.send(Frame { text, request: Some(request) }).await;
    }

    /// Queues a notification or an answer without waiting; lost if the child reads nothing.
    pub(crate) fn post(&self, text: String) {
        if self.queue.try_send(Frame { text, request: None }).is_err() {
            tracing::warn!(server = self.server, "a notification was dropped: the server reads nothing");
        }
    }

    pub(crate) fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Stops the child and returns when no process of it is left: input closed, 2 s, `TERM` to
    /// its group, 3 s, `KILL`.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        let mut ended = self.ended.clone();
        // An error means that the keeper is gone, and with it the child.
        let _ = ended.wait_for(Option::is_some).await;
    }
}

impl Drop for StdioLink {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn write(
    mut stdin: ChildStdin,
    mut frames: mpsc::Receiver<Frame>,
    stop: CancellationToken,
    broken: CancellationToken,
) {
    let work = async {
        while let Some(frame) = frames.recv().await {
            if frame.request.is_some_and(|request| !request.begin()) {
                continue;
            }
            let mut line = frame.text;
            line.push('\n');
            stdin.write_all(line.as_bytes()).await?;
            stdin.flush().await?;
        }
        Ok::<(), std::io::Error>(())
    };
    // A child that reads nothing blocks the write; a stop must not wait for it.
    tokio::select! {
        result = work => if result.is_err() { broken.cancel() },
        () = stop.cancelled() => {}
    }
}

async fn read(
    mut stdout: impl AsyncRead + Unpin,
    hub: Arc<Hub>,
    tail: Arc<Tail>,
    queue: mpsc::WeakSender<Frame>,
    ended: CancellationToken,
) {
    let mut decoder = LineDecoder::new(hub.limits.max_message);
    let mut buffer = vec![0; 64 * 1024];
    let take = |line: Line| {
        for answer in inbound(&hub, &tail, line) {
            // Waiting here could block both pipes at once; a flood of pings loses answers instead.
            if let Some(queue) = queue.upgrade() {
                let _ = queue.try_send(Frame { text: answer, request: None });
            }
        }
    };
    loop {
        match stdout.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(length) => decoder.push(buffer.get(..length).unwrap_or_default()).into_iter().for_each(&take),
        }
    }
    decoder.finish().into_iter().for_each(&take);
    ended.cancel();
}

fn inbound(hub: &Hub, tail: &Tail, line: Line) -> Vec<String> {
    match line {
        Line::Text(bytes) => {
            if may_be_message(&bytes) {
                return hub.inbound(&bytes, Asked::Nobody);
            }
            // ST-01: a banner or a debug line is for the log, never for the parser.
            tracing::info!(
                server = hub.server,
                line = tail.mask().quote(&String::from_utf8_lossy(&bytes), 200),
                "not a message, on standard output"
            );
            tail.push_line(&bytes);
        }
        Line::TooLong { recovered, .. } => hub.too_large(&recovered, Asked::Nobody),
    }
    Vec::new()
}

/// An object, or a list of objects; `[INFO] ready` is neither.
fn may_be_message(line: &[u8]) -> bool {
    match line.trim_ascii_start() {
        [b'{', ..] => true,
        [b'[', rest @ ..] => matches!(rest.trim_ascii_start(), [b'{', ..]),
        _ => false,
    }
}

async fn drain(mut stderr: impl AsyncRead + Unpin, tail: Arc<Tail>) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length) = stderr.read(&mut buffer).await {
        if length == 0 {
            return;
        }
        tail.push(buffer.get(..length).unwrap_or_default());
    }
}

/// The one owner of the child: nobody else waits for it, so its process id stays its own until
/// the last signal.
struct Keeper {
    child: Child,
    hub: Arc<Hub>,
    tail: Arc<Tail>,
    readers: Vec<JoinHandle<()>>,
    stop: CancellationToken,
    output_ended: CancellationToken,
}

impl Keeper {
    async fn keep(mut self, told: watch::Sender<Option<String>>) {
        let status = tokio::select! {
            status = self.child.wait() => Some(status),
            () = self.output_ended.cancelled() => timeout(EXIT_STATUS, self.child.wait()).await.ok(),
            () = self.stop.cancelled() => {
                self.hub.pending.close("Toolgate closed the connection");
                None
            }
        };
        let reason = if let Some(status) = status {
            for reader in &mut self.readers {
                let _ = timeout(DRAIN, reader).await;
            }
            self.exit_text(&status)
        } else if self.stop.is_cancelled() {
            "Toolgate closed the connection".to_owned()
        } else {
            format!("it closed its standard output{}", self.last_words())
        };
        self.hub.pending.close(&reason);
        self.stop.cancel();
        let running = self.child.id().is_some();
        if running {
            self.end().await;
        }
        self.hub.events.close(&reason);
        let _ = told.send(Some(reason));
    }

    /// The writer has dropped the child's input by now. The supervisor ends by itself when the
    /// server does; told to end, it works through `TERM` and `KILL` for the whole tree.
    async fn end(&mut self) {
        if timeout(STDIN_GRACE, self.child.wait()).await.is_ok() {
            return;
        }
        if let Some(id) = self.child.id() {
            sys::terminate(id);
        }
        let longest = sys::LONGEST_STOP + Duration::from_millis(500);
        if timeout(longest, self.child.wait()).await.is_err() {
            tracing::warn!(server = self.hub.server, "the supervisor did not end; killing it");
            let _ = self.child.kill().await;
        }
    }

    fn exit_text(&self, status: &std::io::Result<ExitStatus>) -> String {
        let how = match status {
            Ok(status) => match status.code() {
                Some(code @ 129..=192) => format!("exit status {code} (signal {})", code - 128),
                Some(code) => format!("exit status {code}"),
                None => status.to_string(),
            },
            Err(error) => format!("its exit status is unknown: {error}"),
        };
        format!("its process ended with {how}{}", self.last_words())
    }

    fn last_words(&self) -> String {
        let lines = self.tail.last_lines(5);
        if lines.is_empty() {
            "; it wrote nothing to stderr".to_owned()
        } else {
            format!("; last lines of stderr: {lines}")
        }
    }
}
