//! Who asks. Everything that opens something comes from the credential; what the client claims of
//! itself is kept for the audit log and opens nothing (design: "caller").

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolgate_config::Lane;
use toolgate_wire::envelope::Era;

use crate::abilities::Abilities;

/// The credential of the command line.
const CLI: &str = "cli";

/// The caller of one request, fixed by the credential it came with.
///
/// Two callers are the same to grants and upstream connections only if persona, credential and
/// session agree.
#[derive(Debug, Clone)]
pub struct Caller {
    /// As whom the agent acts.
    pub persona: String,
    /// What kind of run it is: which skills' servers exist for it.
    pub lane: Lane,
    /// `stdio`, `cli` or `token:<id>`.
    pub credential: String,
    /// Opaque id of the session; for modern HTTP the credential with the claimed thread.
    pub session: String,
    /// Run id as claimed by the client (row AUD-003).
    pub run_id: Option<String>,
    /// Thread id as claimed by the client (row AUD-004).
    pub thread_id: Option<String>,
    /// The era the client speaks, so that replies can be shaped for it.
    pub era: Era,
    /// Set where the client reached an endpoint of one server: no other server exists for it.
    pub server_only: Option<String>,
    /// The servers that the session declared that it needs; no other exists for it. It takes away and
    /// never adds: only what the persona has besides is there (SCP-018, APR-022).
    pub declared: Option<Arc<[String]>>,
    /// Names are the server's own: only where a client reaches one server and nothing else.
    pub plain_names: bool,
    /// What its client can be asked; servers are told of it, and connections differ by it.
    pub abilities: Abilities,
    /// Fires when its client waits no longer for a server that still starts.
    pub leaving: CancellationToken,
}

/// What a client claimed of itself and its credential does not bear out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FalseClaim {
    /// The credential it came with, as [`Caller::credential`].
    pub credential: String,
    /// As whom the holder of that credential acts.
    pub persona: String,
    /// In which lane.
    pub lane: Lane,
    /// Where it was claimed: `path`, `header` or `message`.
    pub place: &'static str,
    /// What was claimed: `persona` or `lane`.
    pub what: &'static str,
    /// As what; bounded by the door, written by the client.
    pub claimed: String,
}

/// A reply that its client did not get, because too much waited for it to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DroppedReply {
    /// The credential of the client, as [`Caller::credential`].
    pub credential: String,
    /// As whom it acts.
    pub persona: String,
    /// The client's id of the request; none where the reply has none.
    pub request_id: Option<toolgate_wire::Id>,
    /// How long the reply was.
    pub bytes: usize,
    /// The key of the configuration that bounds what waits.
    pub limit: &'static str,
}

impl Caller {
    /// A caller in the `main` lane that claims nothing.
    pub fn new(
        persona: impl Into<String>,
        credential: impl Into<String>,
        session: impl Into<String>,
        era: Era,
    ) -> Self {
        Self {
            persona: persona.into(),
            lane: Lane::Main,
            credential: credential.into(),
            session: session.into(),
            run_id: None,
            thread_id: None,
            era,
            server_only: None,
            declared: None,
            plain_names: false,
            abilities: Abilities::NONE,
            leaving: CancellationToken::new(),
        }
    }

    /// What no grant crosses: the persona and the credential. Not the session, because the same person
    /// retries from a new session of the same client.
    pub(crate) fn binding(&self) -> String {
        format!("{}\u{1f}{}", self.persona, self.credential)
    }

    /// The session whose asks its own are. A verb of the command line is a session of its own, and whoever
    /// types it again means the same ask.
    pub(crate) fn asks_as(&self) -> &str {
        if self.credential == CLI { "" } else { &self.session }
    }

    /// Whom a sealed state is for: this caller in this session.
    pub(crate) fn sealed_for(&self) -> String {
        format!("{}\u{1f}{}", self.binding(), self.session)
    }
}
