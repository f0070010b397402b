//! Asks: questions to the operator, bound to exactly one call, answered once and spent once.
//!
//! An ask is open while it is `pending` or `granted`. The same call asked again meets its open ask
//! instead of making another. Spending takes the write lock, compares the binding with one that is
//! computed anew, and closes the ask in the same transaction; of two processes one gets it.
//!
//! An ask is its session's: a yes in a client opens the call of the session that was asked and no other
//! (design.md 3.6). A yes of the operator's, who saw the call and not a client, is spent by the same call
//! of the same credential, so that a client that was started again need not ask again.
//!
//! Bounds: 8 pending asks a session unless the caller of this module says otherwise, 32 of all
//! sessions of a credential, 4 KiB of display text for each member, 32 MiB of open asks that are
//! longer than that; closed asks are forgotten after 30 days, and what of them was longer at once.

mod opening;

use std::fmt;

use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use toolgate_signing::Digest;

use super::State;
use super::ask_rows::{COLUMNS, close_expired, document, granted_to, read};
use crate::error::StoreError;

/// The most bytes of one member of [`AskAbout`].
const MAX_ABOUT: usize = 4 * 1024;
const DOMAIN: &[u8] = b"toolgate ask, version 2\n";

/// What a grant would be for (design section 3, step 6). The expiry joins it when the ask is
/// recorded. Any difference is another call, which the grant does not open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskBinding {
    /// Who asks: persona and credential as one text that the gateway makes. No grant crosses it.
    pub caller: String,
    /// The session that asks. Empty where sessions are not told apart, as on the command line.
    pub session: String,
    /// The server, as the digest of what it is started or reached by.
    pub server_identity: Digest,
    /// The definition of the tool.
    pub definition: Digest,
    /// The arguments as they would be sent, after every adapter, and what is sent beside them.
    pub arguments: Digest,
    /// The policies and adapters that judged the call.
    pub plugin_set: Digest,
}

/// What a person is shown. It binds nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskAbout {
    /// The persona that acts.
    pub persona: String,
    /// The server's name.
    pub server: String,
    /// The original name of the tool.
    pub tool: String,
    /// Why it was asked, and by which policy.
    pub reason: String,
    /// The arguments as JSON text, for display; longer ones are cut, and kept whole while the ask is open.
    pub arguments: String,
    /// How long they are, bytes; 0 where an older Toolgate recorded them.
    #[serde(default)]
    pub arguments_bytes: usize,
    /// What goes to the server beside the arguments and is the client's, as a JSON object; empty for nothing.
    #[serde(default)]
    pub beside: String,
    /// How long that is, bytes.
    #[serde(default)]
    pub beside_bytes: usize,
    /// What is done with it: `call`, `read`, …; a wider grant is for the same.
    #[serde(default = "call")]
    pub action: String,
    /// The session that asks; a grant for a session is for this one.
    #[serde(default)]
    pub session: String,
    /// Whether the server can leave its sandbox: no grant for it outlives a session (APR-020).
    #[serde(default)]
    pub host_escape: bool,
    /// The agent run that the client claims, so that the answer's row names it too (AUD-019).
    #[serde(default)]
    pub run_id: Option<String>,
    /// The conversation that the client claims.
    #[serde(default)]
    pub thread_id: Option<String>,
}

/// Where a person at a client answers.
const CLIENT: &str = "client";

/// What was asked about before there was anything but calls.
fn call() -> String {
    "call".to_owned()
}

/// All that an open ask is about, however long.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskDocument {
    /// The arguments, canonical JSON.
    pub arguments: String,
    /// What goes beside them, canonical JSON; empty for nothing.
    pub beside: String,
}

/// A recorded ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// `ask_` and 16 hex digits.
    pub id: String,
    /// What it is for.
    pub binding: AskBinding,
    /// What a person is shown.
    pub about: AskAbout,
    /// Where it stands.
    pub state: AskState,
    /// When it was recorded, in milliseconds since the Unix epoch.
    pub created_at_ms: i64,
    /// When it expires, in milliseconds since the Unix epoch.
    pub expires_at_ms: i64,
    /// Who answered, where somebody did.
    pub answered_by: Option<String>,
    /// Where it was answered: `cli`, `client`, `webhook`, `console`, `freeze`.
    pub surface: Option<String>,
}

/// A person's answer to an ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Whether the call may go on.
    pub grant: bool,
    /// Who answers, and how that was proven.
    pub by: String,
    /// Where it was answered: `cli`, `client`, `webhook`, `console`, `freeze`.
    pub surface: &'static str,
}

/// The life of an ask: pending, then one of denied, expired or granted; granted, then spent or
/// expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AskState {
    /// Nobody has answered.
    Pending,
    /// Answered with yes; opens one call.
    Granted,
    /// Answered with no.
    Denied,
    /// Nobody answered, or nobody used the answer, in time.
    Expired,
    /// The call that it opened was let through.
    Spent,
}

/// What [`record_ask`](crate::Store::record_ask) did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The ask of this call, pending or granted.
    pub ask: Ask,
    /// Whether it was made now. An ask that was met again is not audited again.
    pub is_new: bool,
}

impl AskState {
    /// The word in the database and on the screen.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Spent => "spent",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Granted, Self::Denied, Self::Expired, Self::Spent]
            .into_iter()
            .find(|state| state.as_str() == word)
    }
}

impl fmt::Display for AskState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl State {
    pub(crate) fn ask(&self, id: &str) -> Result<Option<Ask>, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        let sql = format!("SELECT {COLUMNS} FROM asks WHERE id = ?1");
        database
            .connection
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_row([id], read).optional())
            .map(|ask| ask.map(|ask| ask.at(now)))
            .map_err(database.error("read an ask"))
    }

    pub(crate) fn asks(&self, state: Option<AskState>) -> Result<Vec<Ask>, StoreError> {
        let now = self.now_ms();
        let database = self.database();
        let all = || -> rusqlite::Result<Vec<Ask>> {
            let sql = format!("SELECT {COLUMNS} FROM asks ORDER BY created_at_ms, id");
            let mut statement = database.connection.prepare_cached(&sql)?;
            statement.query_map([], read)?.collect()
        };
        let mut asks = all().map_err(database.error("list the asks"))?;
        for ask in &mut asks {
            *ask = ask.clone().at(now);
        }
        asks.retain(|ask| state.is_none_or(|state| ask.state == state));
        Ok(asks)
    }

    pub(crate) fn answer_ask(&self, id: &str, answer: &Answer) -> Result<Ask, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("answer an ask");
        let transaction = database.write("answer an ask")?;
        close_expired(&transaction, now).map_err(&failed)?;
        let sql = format!("SELECT {COLUMNS} FROM asks WHERE id = ?1");
        let ask = transaction.query_row(&sql, [id], read).optional().map_err(&failed)?;
        let answered = match ask {
            Some(ask) if ask.state == AskState::Pending => Ask {
                state: if answer.grant { AskState::Granted } else { AskState::Denied },
                answered_by: Some(answer.by.clone()),
                surface: Some(answer.surface.to_owned()),
                ..ask
            },
            other => {
                transaction.commit().map_err(&failed)?;
                return Err(StoreError::AskClosed {
                    id: id.to_owned(),
                    state: other.map_or_else(|| "unknown".to_owned(), |ask| ask.state.to_string()),
                });
            }
        };
        let closed = (!answer.grant).then_some(now);
        transaction
            .execute(
                "UPDATE asks SET state = ?2, answered_by = ?3, surface = ?5, closed_at_ms = ?4 WHERE id = ?1",
                params![id, answered.state.as_str(), answer.by, closed, answer.surface],
            )
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(answered)
    }

    /// Takes back what is open: pending asks and grants that nobody used, all of them or those of one
    /// server. Gives what was taken back.
    pub(crate) fn void_asks(
        &self,
        server: Option<&str>,
        by: &str,
        surface: &'static str,
    ) -> Result<Vec<Ask>, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("void asks");
        let transaction = database.write("void asks")?;
        close_expired(&transaction, now).map_err(&failed)?;
        let sql = format!(
            "UPDATE asks SET state = 'denied', answered_by = ?2, surface = ?3, closed_at_ms = ?4 \
             WHERE state IN ('pending', 'granted') AND (?1 IS NULL OR about ->> '$.server' = ?1) \
             RETURNING {COLUMNS}"
        );
        let voided = transaction
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_map(params![server, by, surface, now], read)?.collect())
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(voided)
    }

    /// All of an ask that is open; `None` where it is closed or unknown.
    pub(crate) fn ask_document(&self, id: &str) -> Result<Option<AskDocument>, StoreError> {
        let Some(ask) = self.ask(id)? else { return Ok(None) };
        if !matches!(ask.state, AskState::Pending | AskState::Granted) {
            return Ok(None);
        }
        if !ask.about.is_cut() {
            return Ok(Some(AskDocument { arguments: ask.about.arguments, beside: ask.about.beside }));
        }
        let database = self.database();
        document(&database.connection, id).map_err(database.error("read what an ask is about"))
    }

    pub(crate) fn spend(&self, binding: &AskBinding) -> Result<Option<Ask>, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("spend a grant");
        // Nearly every call has no ask; a look without the write lock spares it the wait.
        if granted_to(&database.connection, binding, now).map_err(&failed)?.is_none() {
            return Ok(None);
        }
        let transaction = database.write("spend a grant")?;
        let Some(ask) = granted_to(&transaction, binding, now).map_err(&failed)? else {
            return Ok(None);
        };
        let spent = transaction
            .execute(
                "UPDATE asks SET state = 'spent', closed_at_ms = ?2 \
                 WHERE id = ?1 AND state = 'granted' AND binding = ?3",
                params![ask.id, now, ask.binding.with_expiry(ask.expires_at_ms)],
            )
            .map_err(&failed)?;
        if spent != 1 {
            // The row was changed behind our back: an expiry moved by hand opens nothing.
            return Ok(None);
        }
        transaction.commit().map_err(&failed)?;
        Ok(Some(Ask { state: AskState::Spent, ..ask }))
    }

    pub(crate) fn take_expired_asks(&self) -> Result<Vec<Ask>, StoreError> {
        let now = self.now_ms();
        let mut database = self.database();
        let failed = database.error("close expired asks");
        let transaction = database.write("close expired asks")?;
        close_expired(&transaction, now).map_err(&failed)?;
        let sql = format!(
            "UPDATE asks SET expiry_reported = 1 \
             WHERE state = 'expired' AND expiry_reported = 0 RETURNING {COLUMNS}"
        );
        let expired = transaction
            .prepare_cached(&sql)
            .and_then(|mut statement| statement.query_map([], read)?.collect())
            .map_err(&failed)?;
        transaction.commit().map_err(&failed)?;
        Ok(expired)
    }
}

impl Ask {
    /// The digest of what a grant would be for: every member of the binding, and the expiry. An answer
    /// from elsewhere repeats it, so that it is an answer to this call and no other.
    pub fn call_digest(&self) -> String {
        format!("sha256:{}", self.binding.with_expiry(self.expires_at_ms))
    }

    /// Whether a granted ask opens a call with this binding: exactly this call of the same caller, from the
    /// session that asked. Where the operator answered and not a client, any session of the caller will do.
    pub(super) fn opens(&self, binding: &AskBinding) -> bool {
        let session_may_differ = self.surface.as_deref().is_some_and(|surface| surface != CLIENT);
        let asked = AskBinding { session: binding.session.clone(), ..self.binding.clone() };
        asked == *binding && (session_may_differ || self.binding.session == binding.session)
    }
}

impl AskBinding {
    /// The digest that finds the open ask of the same call.
    pub(super) fn subject(&self) -> String {
        hex::encode(self.hasher().finalize())
    }

    /// The binding proper: the subject and the expiry.
    pub(super) fn with_expiry(&self, expires_at_ms: i64) -> String {
        let mut hasher = self.hasher();
        hasher.update(b"expires\n");
        hasher.update(expires_at_ms.to_be_bytes());
        hex::encode(hasher.finalize())
    }

    fn hasher(&self) -> Sha256 {
        let mut hasher = Sha256::new();
        hasher.update(DOMAIN);
        for field in [
            self.caller.as_str(),
            self.session.as_str(),
            &self.server_identity.to_string(),
            &self.definition.to_string(),
            &self.arguments.to_string(),
            &self.plugin_set.to_string(),
        ] {
            hasher.update(u64::try_from(field.len()).unwrap_or(u64::MAX).to_be_bytes());
            hasher.update(field.as_bytes());
        }
        hasher
    }
}

impl AskAbout {
    /// Whether what is shown of the call is not all of it; the whole is kept while the ask is open.
    pub fn is_cut(&self) -> bool {
        self.arguments_bytes > MAX_ABOUT || self.beside_bytes > MAX_ABOUT
    }

    fn bounded(&self) -> Self {
        Self {
            persona: bounded(&self.persona),
            server: bounded(&self.server),
            tool: bounded(&self.tool),
            reason: bounded(&self.reason),
            arguments: cut(&self.arguments).to_owned(),
            arguments_bytes: self.arguments.len(),
            beside: cut(&self.beside).to_owned(),
            beside_bytes: self.beside.len(),
            action: bounded(&self.action),
            session: bounded(&self.session),
            host_escape: self.host_escape,
            run_id: self.run_id.as_deref().map(bounded),
            thread_id: self.thread_id.as_deref().map(bounded),
        }
    }
}

impl Ask {
    /// The ask as it stands at a time: what has expired but was not closed yet reads as expired.
    fn at(mut self, now: i64) -> Self {
        let open = matches!(self.state, AskState::Pending | AskState::Granted);
        if open && self.expires_at_ms <= now {
            self.state = AskState::Expired;
        }
        self
    }
}

fn bounded(text: &str) -> String {
    let cut = cut(text);
    if cut.len() == text.len() { cut.to_owned() } else { format!("{cut}… ({} bytes)", text.len()) }
}

/// The beginning of a text, at most [`MAX_ABOUT`] bytes of it.
fn cut(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_ABOUT)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
