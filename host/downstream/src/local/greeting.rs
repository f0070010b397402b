//! The two lines that a client and a gateway exchange before anything else, and what is compared.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};

/// The number of this exchange; a change of its meaning is another number.
pub const PROTOCOL: u32 = 2;
/// Longest line of a greeting or a reply, bytes. A status of many servers is the longest.
pub const MAX_GREETING: u64 = 64 * 1024 * 1024;

/// What a client says first.
#[derive(Clone, Serialize, Deserialize)]
pub struct Hello {
    /// [`PROTOCOL`] of the client.
    pub protocol: u32,
    /// Version of the client's binary.
    pub version: String,
    /// Which build of that version it is, in words; none of clients that do not say it.
    #[serde(default)]
    pub build: Option<String>,
    /// The configuration file that counts for the client; none where there is no file.
    pub config: Option<PathBuf>,
    /// Whether it holds to the lock file (`--locked`).
    pub locked: bool,
    /// The variables of the client's environment that its configuration names, with their values. They
    /// may be secrets: a greeting is never logged.
    pub variables: BTreeMap<String, String>,
    /// What it wants.
    pub want: Want,
}

/// What a client wants of a gateway.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Want {
    /// To speak MCP.
    Session {
        /// As whom.
        persona: String,
        /// In which lane.
        lane: String,
        /// Only this server, under its own names.
        server: Option<String>,
        /// The servers that the client declared that it needs; no session of it has others.
        servers: Option<Vec<String>>,
    },
    /// The state of servers.
    Status {
        /// As whom.
        persona: String,
        /// In which lane.
        lane: String,
    },
    /// Another start of a server, whatever became of those before.
    Reconnect {
        /// As whom.
        persona: String,
        /// In which lane.
        lane: String,
        /// The server.
        server: String,
    },
}

/// What a gateway answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    /// It lives and is at work on the answer; another line follows.
    Wait,
    /// From here on MCP passes.
    Welcome {
        /// The process of the gateway.
        pid: u32,
    },
    /// What was asked for.
    Done {
        /// A JSON value of the question's own.
        value: serde_json::Value,
    },
    /// No.
    Refused(Refused),
}

/// Why a gateway does not serve a client.
#[derive(Debug, Clone, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The exit code that fits.
    pub code: u8,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Refused {
    /// A refusal about how somebody was started (exit code 2).
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code: 2, message: message.into(), hint: Some(hint.into()) }
    }
}

/// What a gateway stands for; a client has to agree.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Version of the gateway's binary.
    pub version: String,
    /// Which build of that version it is, in words.
    pub build: String,
    /// Its configuration file.
    pub config: Option<PathBuf>,
    /// Whether it holds to the lock file.
    pub locked: bool,
}

impl Standing {
    /// Whether a client may be served by this gateway.
    ///
    /// # Errors
    /// What differs, with both sides, and what to do.
    pub fn agrees(&self, hello: &Hello) -> Result<(), Refused> {
        let pid = std::process::id();
        let other = "end it (it ends by itself some time after its last client), give the other a `data_dir` \
                     of its own, or serve without sharing once it has ended (--no-share)";
        if hello.protocol != PROTOCOL || hello.version != self.version {
            return Err(Refused::usage(
                format!(
                    "the gateway of this data directory (process {pid}) is toolgate {} ({}, which speaks protocol \
                     {PROTOCOL} with its clients), and this is toolgate {} ({}, protocol {})",
                    self.version,
                    self.build,
                    hello.version,
                    hello.build.as_deref().unwrap_or("another build"),
                    hello.protocol
                ),
                other,
            ));
        }
        if hello.config != self.config {
            return Err(Refused::usage(
                format!(
                    "the gateway of this data directory (process {pid}) was started with {}, and this with {}",
                    named(self.config.as_deref()),
                    named(hello.config.as_deref())
                ),
                other,
            ));
        }
        if hello.locked != self.locked {
            let how = |locked: bool| if locked { "with --locked" } else { "without --locked" };
            return Err(Refused::usage(
                format!(
                    "the gateway of this data directory (process {pid}) was started {}, and this {}",
                    how(self.locked),
                    how(hello.locked)
                ),
                other,
            ));
        }
        Ok(())
    }
}

fn named(config: Option<&Path>) -> String {
    config.map_or_else(|| "no configuration file".to_owned(), |path| path.display().to_string())
}

/// One line as a value; `None` where the other side closed before it was whole, or said too much.
pub(super) async fn read_line<T: for<'a> Deserialize<'a>>(
    from: &mut (impl AsyncBufRead + Unpin),
    longest: u64,
) -> std::io::Result<Option<T>> {
    let mut line = Vec::new();
    from.take(longest).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Ok(None);
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| {
        // The text of the error may quote a secret of the line.
        std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("not a greeting, at column {}", error.column()),
        )
    })
}

/// A value as one line.
pub(super) fn line_of(value: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests;
