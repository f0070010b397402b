//! From a client to the gateway of its data directory.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::greeting::{Hello, MAX_GREETING, Refused, Reply, line_of, read_line};
use super::{own_user, socket};

/// How long a gateway may be silent. One that is at work on the answer says so more often
/// (`Reply::Wait`): it may load its configuration and its plugins anew, or start a server.
const SILENCE: Duration = Duration::from_secs(10);

/// A connection that was greeted.
#[derive(Debug)]
pub struct Connected {
    pub(super) from: BufReader<OwnedReadHalf>,
    pub(super) to: OwnedWriteHalf,
    /// The process of the gateway.
    pub pid: u32,
    /// What was asked for, where that was no session.
    pub value: Option<serde_json::Value>,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// The gateway refuses this client.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// It ended, or is about to, before it said anything: dial again.
    #[error("the gateway ended before it answered")]
    Gone,
    /// Somebody else listens there.
    #[error(
        "the socket in this data directory is served by user {0}, which is not this one; nothing was sent"
    )]
    Stranger(u32),
    /// Somebody listens and says nothing.
    #[error("the gateway of this data directory{} did not answer within {} s", named(*.pid), SILENCE.as_secs())]
    Silent {
        /// Its process, as the kernel states it; none where it does not.
        pid: Option<i32>,
    },
    /// The system failed.
    #[error("the gateway of this data directory cannot be reached: {0}")]
    Io(io::Error),
}

/// Connects to the socket of a data directory; `None` where nobody listens.
///
/// # Errors
/// [`DialError::Stranger`] before a byte is sent.
pub async fn dial(data_dir: &Path) -> Result<Option<UnixStream>, DialError> {
    let (path, _held) = match socket(data_dir) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DialError::Io(error)),
    };
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        // What a gateway that was killed left behind, or nothing.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
            return Ok(None);
        }
        Err(error) => return Err(DialError::Io(error)),
    };
    let user = stream.peer_cred().map_err(DialError::Io)?.uid();
    if user != own_user() {
        return Err(DialError::Stranger(user));
    }
    Ok(Some(stream))
}

/// Says who one is and what one wants.
///
/// # Errors
/// [`DialError::Refused`] with the gateway's reason, [`DialError::Gone`] where it ended meanwhile.
pub async fn greet(stream: UnixStream, hello: &Hello) -> Result<Connected, DialError> {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let (from, mut to) = stream.into_split();
    let mut from = BufReader::new(from);
    let line = line_of(hello).map_err(DialError::Io)?;
    let written = tokio::time::timeout(SILENCE, to.write_all(&line)).await;
    if written.map_err(|_| DialError::Silent { pid })?.is_err() {
        return Err(DialError::Gone);
    }
    let reply = loop {
        let answer = tokio::time::timeout(SILENCE, read_line::<Reply>(&mut from, MAX_GREETING)).await;
        match answer {
            Ok(Ok(Some(Reply::Wait))) => {}
            Ok(Ok(Some(reply))) => break reply,
            Ok(Err(error)) if error.kind() == ErrorKind::InvalidData => return Err(DialError::Io(error)),
            Ok(Ok(None) | Err(_)) => return Err(DialError::Gone),
            Err(_) => return Err(DialError::Silent { pid }),
        }
    };
    match reply {
        // Taken above.
        Reply::Wait => Err(DialError::Gone),
        Reply::Welcome { pid } => Ok(Connected { from, to, pid, value: None }),
        Reply::Done { value } => Ok(Connected { from, to, pid: 0, value: Some(value) }),
        Reply::Refused(refused) => Err(refused.into()),
    }
}

fn named(pid: Option<i32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}
