//! The gateway's side of the socket: who comes in, for how long, and when nobody is left.
//!
//! Order of the checks, each before anything of the next is looked at: the user id of the other side,
//! one line of greeting, what the two sides stand for, what is wanted.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use rustix::event::{PollFd, PollFlags, Timespec};
use tokio::io::{AsyncRead, AsyncWriteExt as _, BufReader, ReadBuf};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolgate_gateway::Gateway;

use super::claim::Claim;
use super::greeting::{Hello, Refused, Reply, Standing, Want, line_of, read_line};
use super::{MAX_CLIENTS, MAX_GREETERS, own_user, socket};
use crate::options::StdioOptions;
use crate::stdio::serve_pipes;

/// How long a greeting may take.
const GREETING: Duration = Duration::from_secs(10);
/// How often a client hears that the answer is being worked on; well within its patience.
const WORD: Duration = Duration::from_secs(2);
/// How often the door looks whether its socket is still where clients look for it.
const LOOK: Duration = Duration::from_secs(1);
/// The least pause between two looks at whether something still goes on.
const BUSY: Duration = Duration::from_millis(250);
/// Longest greeting that a client may send, bytes: a name and its variables.
const LONGEST: u64 = 4 * 1024 * 1024;

/// What stands behind the door.
#[async_trait]
pub trait Answering: Send + Sync + 'static {
    /// The gateway for a session, as this client would be served alone.
    async fn room(&self, hello: &Hello) -> Result<Room, Refused>;
    /// The answer to anything else.
    async fn answer(&self, hello: &Hello) -> Result<serde_json::Value, Refused>;
    /// Whether something goes on for clients that are not here: a task at a server.
    fn is_busy(&self) -> bool;
}

/// A place for one session.
pub struct Room {
    /// Where its requests go.
    pub gateway: Arc<Gateway>,
    /// As whom, and in what bounds.
    pub options: StdioOptions,
    /// Dropped when the session has ended.
    pub held: Box<dyn std::any::Any + Send>,
}

/// How the door is kept.
pub struct DoorOptions {
    /// What a client has to agree with.
    pub standing: Standing,
    /// How long to stay without anybody and without anything that goes on; for ever where there is none.
    pub idle_exit: Option<Duration>,
    /// Closes the door and ends all sessions.
    pub shutdown: CancellationToken,
}

/// Why the door was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// `shutdown` fired.
    Told,
    /// Nobody came for so long.
    Idle,
}

/// The socket of a data directory that this process serves.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    data_dir: PathBuf,
    /// Device and number of the socket's file, by which it is known again.
    mark: Option<(u64, u64)>,
}

impl Door {
    /// Listens on the socket of a claimed directory. What an earlier holder left there is removed: it
    /// cannot be in use, since the claim is ours.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(claim: &Claim) -> io::Result<Self> {
        Self::at(claim.data_dir())
    }

    fn at(data_dir: &Path) -> io::Result<Self> {
        let (path, held) = socket(data_dir)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&path)?;
        drop(held);
        let path = super::run_dir(data_dir).join("gateway.sock");
        // The directory lets nobody in meanwhile.
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        let mark = mark(&path);
        Ok(Self { listener, path, data_dir: data_dir.to_owned(), mark })
    }

    /// Makes the socket anew where its file is gone or another one: whoever cleaned up took the only way
    /// in, and the directory stays claimed, so that nobody else could serve it.
    fn mend(&mut self) {
        if mark(&self.path) == self.mark {
            return;
        }
        match Self::at(&self.data_dir) {
            Ok(anew) => {
                tracing::warn!(path = %self.path.display(), "the socket was removed; it is made anew");
                *self = anew;
            }
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "the socket was removed and cannot be made anew");
            }
        }
    }

    /// Lets clients in until it is told to stop or nobody is left.
    pub async fn keep(mut self, behind: Arc<dyn Answering>, options: DoorOptions) -> Ended {
        let options = Arc::new(options);
        let mut greeters = Greeters::default();
        let (guests, count) = watch::channel(0usize);
        let guests = Arc::new(guests);
        let tasks = TaskTracker::new();
        let alone = alone(count, options.idle_exit, Arc::clone(&behind));
        tokio::pin!(alone);
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ended = loop {
            let accepted = tokio::select! {
                biased;
                () = options.shutdown.cancelled() => break Ended::Told,
                accepted = self.listener.accept() => accepted,
                _ = look.tick() => {
                    self.mend();
                    continue;
                }
                () = &mut alone => break Ended::Idle,
            };
            match accepted {
                Ok((stream, _)) if tasks.len() < MAX_CLIENTS + MAX_GREETERS => {
                    let guest = Guest {
                        behind: Arc::clone(&behind),
                        options: Arc::clone(&options),
                        greets: greeters.another(),
                    };
                    // From its first moment: a door that closes while somebody greets would leave the
                    // directory taken, and nobody could be served until it was free.
                    let counted = Counted::new(&guests);
                    tasks.spawn(async move {
                        if let Err(error) = guest.receive(stream, counted).await {
                            tracing::debug!(%error, "a client on the socket has gone");
                        }
                    });
                }
                Ok(_) => tracing::warn!("more than {MAX_CLIENTS} clients on the socket; one was turned away"),
                Err(error) => {
                    tracing::warn!(%error, "a client on the socket cannot be let in");
                    // Out of descriptors, most likely: there is nothing to do but to wait.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        // Whoever comes from here on finds nobody and starts a gateway, which waits for the claim.
        let _ = std::fs::remove_file(&self.path);
        drop(self.listener);
        tasks.close();
        tasks.wait().await;
        ended
    }
}

/// By what a socket's file is known again; none where there is no file.
fn mark(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Resolves when there was nobody for so long, and nothing goes on.
async fn alone(mut count: watch::Receiver<usize>, idle_exit: Option<Duration>, behind: Arc<dyn Answering>) {
    let Some(wait) = idle_exit else { return std::future::pending().await };
    loop {
        if count.wait_for(|count| *count == 0).await.is_err() {
            return std::future::pending().await;
        }
        tokio::select! {
            // First: whoever came in the moment in which the wait was over is here.
            biased;
            changed = count.changed() => if changed.is_err() { return std::future::pending().await },
            () = idle(wait, &*behind) => return,
        }
    }
}

async fn idle(wait: Duration, behind: &dyn Answering) {
    tokio::time::sleep(wait).await;
    while behind.is_busy() {
        tokio::time::sleep(wait.max(BUSY)).await;
    }
}

/// One of those who are here: with a session, a question, or a greeting that is not over.
struct Counted(Arc<watch::Sender<usize>>);

impl Counted {
    fn new(guests: &Arc<watch::Sender<usize>>) -> Self {
        guests.send_modify(|count| *count += 1);
        Self(Arc::clone(guests))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// Those who came and have not greeted yet, oldest first.
#[derive(Default)]
struct Greeters(VecDeque<Weak<CancellationToken>>);

impl Greeters {
    /// A place for one more. Where there are [`MAX_GREETERS`], whoever was silent for longest gives its own
    /// up: who comes to be served greets at once, and must not wait for those who never will.
    fn another(&mut self) -> Arc<CancellationToken> {
        self.0.retain(|greeter| greeter.strong_count() > 0);
        if self.0.len() >= MAX_GREETERS
            && let Some(oldest) = self.0.pop_front().and_then(|oldest| oldest.upgrade())
        {
            oldest.cancel();
        }
        let place = Arc::new(CancellationToken::new());
        self.0.push_back(Arc::downgrade(&place));
        place
    }
}

/// Somebody at the door.
struct Guest {
    behind: Arc<dyn Answering>,
    options: Arc<DoorOptions>,
    /// Its place among those who have not greeted, cancelled when somebody else gets it.
    greets: Arc<CancellationToken>,
}

impl Guest {
    async fn receive(self, stream: UnixStream, counted: Counted) -> io::Result<()> {
        let user = stream.peer_cred()?.uid();
        if !is_owner(user) {
            tracing::warn!(user, "somebody else than the owner came to the socket and was turned away");
            return Ok(());
        }
        let (from, mut to) = stream.into_split();
        let mut from = BufReader::new(from);
        let greeting = tokio::time::timeout(GREETING, read_line::<Hello>(&mut from, LONGEST));
        let greeting = tokio::select! {
            greeting = greeting => greeting,
            () = self.greets.cancelled() => return Ok(()),
        };
        let Some(hello) = greeting.map_err(|_| io::Error::from(ErrorKind::TimedOut))?? else {
            return Ok(());
        };
        drop(self.greets);
        if let Err(refused) = self.options.standing.agrees(&hello) {
            return say(&mut to, &Reply::Refused(refused)).await;
        }
        if !matches!(hello.want, Want::Session { .. }) {
            let answer = tokio::select! {
                answer = working(&mut to, self.behind.answer(&hello)) => answer?,
                () = self.options.shutdown.cancelled() => return Ok(()),
            };
            let reply = answer.map_or_else(Reply::Refused, |value| Reply::Done { value });
            return say(&mut to, &reply).await;
        }
        match working(&mut to, self.behind.room(&hello)).await? {
            Err(refused) => say(&mut to, &Reply::Refused(refused)).await,
            Ok(room) => {
                say(&mut to, &Reply::Welcome { pid: std::process::id() }).await?;
                session(room, from, to, counted).await;
                Ok(())
            }
        }
    }
}

/// Whether a user may come in: the one who runs this process, and nobody else, the superuser included,
/// who has other ways.
fn is_owner(user: u32) -> bool {
    user == own_user()
}

async fn session(room: Room, from: BufReader<OwnedReadHalf>, to: OwnedWriteHalf, counted: Counted) {
    let Room { gateway, mut options, held } = room;
    let gone = options.shutdown.child_token();
    options.shutdown = gone.clone();
    if let Err(error) = serve_pipes(gateway, options, UntilGone { from, gone }, to).await {
        tracing::debug!(%error, "a client on the socket has gone");
    }
    drop(held);
    drop(counted);
}

/// What a client says. One that only closed its side waits for its replies; one that is gone altogether,
/// as after a kill, has nobody for whom its calls could go on.
struct UntilGone {
    from: BufReader<OwnedReadHalf>,
    gone: CancellationToken,
}

impl AsyncRead for UntilGone {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = std::task::ready!(Pin::new(&mut self.from).poll_read(context, buffer));
        if buffer.filled().len() == before && has_hung_up(self.from.get_ref().as_ref()) {
            self.gone.cancel();
        }
        Poll::Ready(read)
    }
}

/// Whether the other side is closed in both directions.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut polled = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut polled, Some(&now)).is_ok()
        && polled.iter().any(|polled| polled.revents().contains(PollFlags::HUP))
}

/// Waits for an answer, and tells the client so meanwhile: one that hears nothing takes the gateway for
/// dead.
async fn working<T>(to: &mut OwnedWriteHalf, answer: impl Future<Output = T>) -> io::Result<T> {
    tokio::pin!(answer);
    loop {
        match tokio::time::timeout(WORD, &mut answer).await {
            Ok(answer) => return Ok(answer),
            Err(_) => say(to, &Reply::Wait).await?,
        }
    }
}

async fn say(to: &mut OwnedWriteHalf, reply: &Reply) -> io::Result<()> {
    to.write_all(&line_of(reply)?).await?;
    to.flush().await
}
