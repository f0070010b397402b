//! What a call can ask of the client it came from: the port that the front doors implement.
//!
//! Contract: a client of the initialize era is asked on its session ([`Asker`]); one of the stateless
//! era is asked by a result of the kind `input_required`, and repeats its call with the answer. A
//! client is asked only for what it declared. Whoever drops the future of a question takes the
//! question back.
//!
//! Threat: what comes back was made by a client, which may answer by itself. What its answer opens is
//! the operator's choice (`approvals.in_client`).

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::value::RawValue;
use toolgate_wire::Outcome;
use toolgate_wire::envelope::Era;

use crate::abilities::Abilities;

/// Why a question to a client has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The client went away, or its session started over.
    #[error("the client has gone")]
    Gone,
    /// The call has no way back on which a question could go.
    #[error("the client cannot be asked on this connection")]
    NoWay,
}

/// A session that can be asked.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Sends a request to the client and waits for its answer, as long as the caller does. The id is
    /// the session's own. Dropping the future tells the client that the question is taken back.
    async fn ask(&self, method: &str, params: Box<RawValue>) -> Result<Outcome, AskError>;
}

/// The client behind one call.
#[derive(Clone)]
pub struct Client {
    era: Era,
    abilities: Abilities,
    asker: Option<Arc<dyn Asker>>,
}

impl Client {
    /// A client that can be asked nothing.
    pub fn silent() -> Self {
        Self { era: Era::Legacy, abilities: Abilities::NONE, asker: None }
    }

    /// A client of the initialize era with a session that can be asked.
    pub fn session(abilities: Abilities, asker: Arc<dyn Asker>) -> Self {
        Self { era: Era::Legacy, abilities, asker: Some(asker) }
    }

    /// A client of the stateless era, which is asked by input rounds.
    pub fn rounds(abilities: Abilities) -> Self {
        Self { era: Era::Modern, abilities, asker: None }
    }

    /// What it can be asked.
    pub fn abilities(&self) -> Abilities {
        self.abilities
    }

    /// Whether the client shows forms to a person.
    pub fn shows_forms(&self) -> bool {
        self.abilities.has(Abilities::FORMS)
    }

    /// The session, where this client has one that can be asked.
    pub fn asker(&self) -> Option<&Arc<dyn Asker>> {
        self.asker.as_ref()
    }

    /// Whether the client is asked by input rounds.
    pub fn has_rounds(&self) -> bool {
        self.era == Era::Modern
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("era", &self.era).finish_non_exhaustive()
    }
}
