//! What a caller does at a server: calls, reads, prompts, completions and subscriptions, from the name
//! that a client used to the path that all of them take ([`crate::forward`]).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_signing::DefinitionKind;
use toolgate_store::{AuditRow, Deed};
use toolgate_upstream::{Logs, Progress};
use toolgate_wire::{Id, Outcome, edit};

use crate::Gateway;
use crate::abilities::Abilities;
use crate::ask::round::{self, Round, Taken};
use crate::attend::Turn;
use crate::caller::Caller;
use crate::client::Client;
use crate::connect::OpenError;
use crate::find::{FindError, Handle, Target};
use crate::forward::{Path, Stop};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::subscriptions::Subscriber;
use crate::{beside, deeds, notes, rewrite};

/// One request that a server is to answer.
pub struct Call {
    /// The client's id, for the audit log only; it never goes upstream.
    pub request_id: Id,
    /// The client's parameters, without the envelope of its era.
    pub params: Box<RawValue>,
    /// Where progress goes; `None` where the client asked for none.
    pub progress: Option<mpsc::Sender<Progress>>,
    /// Where what the server logs goes; `None` where the client wants none of it.
    pub logs: Option<Logs>,
    /// Ends the call at once.
    pub cancel: CancellationToken,
    /// Overrides the server's `timeouts.call`.
    pub timeout: Option<Duration>,
    /// The `Mcp-Param-*` headers that repeat arguments, names in lower case; `None` where the client
    /// reached Toolgate without headers.
    pub param_headers: Option<Vec<(String, String)>>,
    /// How long it may wait for a person, at most; `approvals.hold` where it is longer.
    pub hold: Duration,
    /// Whom to ask about it.
    pub client: Client,
    /// Who hears of what is subscribed to; only a subscription needs one.
    pub subscriber: Option<Arc<Subscriber>>,
}

/// What clients of core tasks (2025-11-25) send with a call. Whether there is a task is the server's choice,
/// so it says nothing here, and a server of that revision would be asked what nobody judged.
const LEGACY_TASK: &str = "/task";

/// What a request that waits has around it.
pub(crate) struct Waiting {
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    pub(crate) hold: Duration,
    pub(crate) client: Client,
    pub(crate) subscriber: Option<Arc<Subscriber>>,
    /// Whether it came with an answer: a request is not asked about twice in a row.
    pub(crate) had_round: bool,
    round: Mutex<Option<Round>>,
    /// Where questions for a client of the stateless era go.
    pub(crate) turns: Option<mpsc::Sender<Turn>>,
}

impl Waiting {
    /// What a request has around it that nobody waits for.
    pub(crate) fn alone(client: Client, turns: Option<mpsc::Sender<Turn>>) -> Self {
        Self {
            cancel: CancellationToken::new(),
            progress: None,
            hold: Duration::ZERO,
            client,
            subscriber: None,
            had_round: false,
            round: Mutex::default(),
            turns,
        }
    }

    /// The answer that came along; it counts for the first question.
    pub(crate) fn round(&self) -> Option<Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Gateway {
    /// Does what the parameters name as the client sees it. The outcome is era-neutral: `downstream`
    /// adds the envelope of the client's era.
    pub async fn forward(self: &Arc<Self>, caller: &Caller, deed: Deed, call: Call) -> Outcome {
        let params = call.params.get();
        let pointer = rewrite::subject_pointer(deed, params);
        let Some(name) = edit::get(params, pointer).and_then(edit::string) else {
            let member = pointer.trim_start_matches('/').replace('/', ".");
            let text = format!("{} needs params.{member}, a string", deeds::method(deed));
            return Outcome::Error(reply::invalid_params(text));
        };
        self.forward_to(caller, deed, Target::Exposed(name), call).await
    }

    /// Does it at what is named by either kind of name; the name in the parameters is replaced.
    pub async fn forward_to(
        self: &Arc<Self>,
        caller: &Caller,
        deed: Deed,
        target: Target,
        call: Call,
    ) -> Outcome {
        let params = match edit::get(call.params.get(), LEGACY_TASK) {
            None => call.params,
            Some(_) => match edit::drop_all(call.params.get(), &[LEGACY_TASK]).and_then(edit::raw) {
                Ok(params) => params,
                Err(error) => return Outcome::Error(reply::invalid_params(error.to_string())),
            },
        };
        let params = match beside::without_claims(&params) {
            Ok(rest) => rest.unwrap_or(params),
            Err(error) => return Outcome::Error(reply::invalid_params(error.to_string())),
        };
        let Taken { params, round, offered } = match round::take(params) {
            Ok(taken) => taken,
            Err(error) => return Outcome::Error(error),
        };
        let call = Call { params, ..call };
        let round = match round {
            Some(round) if round.is_parked() => return self.resume(caller, deed, call, round).await,
            round => round,
        };
        let handle = match self.find_for(caller, deed, &target, call.params.get()).await {
            Ok(handle) => handle,
            Err(error) => return self.not_found(caller, deed, &error, &call.request_id).await,
        };
        let waiting = Waiting {
            cancel: call.cancel.clone(),
            progress: call.progress.clone(),
            hold: call.hold.min(self.config.approvals.hold),
            client: call.client.clone(),
            subscriber: call.subscriber.clone(),
            had_round: round.is_some(),
            round: Mutex::new(round),
            turns: None,
        };
        let used = match target {
            Target::Exposed(name) => name,
            // A template has many URIs, and what it is called by is none of them.
            Target::Original { .. } if handle.item.kind == DefinitionKind::Template => handle.subject.clone(),
            Target::Original { .. } => handle.item.exposed.clone(),
        };
        let facts = notes::call_facts(caller, deed, &handle, &used, &call.request_id);
        // Before the verdict, so that a freeze that comes after it ends this request.
        let frozen = self.watch.token(&handle.server.name);
        let can_be_asked = caller.abilities.told_to(&handle.server).questions() != Abilities::NONE;
        let (gateway, caller) = (Arc::clone(self), caller.clone());
        let path =
            Path { gateway, caller, deed, handle, used, call: facts, waiting, frozen, invocation: None };
        if call.client.has_rounds() && deeds::has_rounds(deed) && can_be_asked {
            return self.attend(path, call, offered).await;
        }
        match path.run(call).await {
            Ok(outcome) | Err(Stop(outcome)) => outcome,
        }
    }

    async fn find_for(
        self: &Arc<Self>,
        caller: &Caller,
        deed: Deed,
        target: &Target,
        params: &str,
    ) -> Result<Handle, FindError> {
        match deed {
            Deed::Call => self.find(caller, DefinitionKind::Tool, target).await,
            Deed::Prompt => self.find(caller, DefinitionKind::Prompt, target).await,
            Deed::Complete if rewrite::is_prompt(params) => {
                self.find(caller, DefinitionKind::Prompt, target).await
            }
            Deed::Read | Deed::Subscribe | Deed::Complete => self.find_resource(caller, target).await,
        }
    }

    /// A refusal leaves `mcp_denied` and no `mcp_called` (9a), whatever the name was.
    async fn not_found(&self, caller: &Caller, deed: Deed, error: &FindError, request_id: &Id) -> Outcome {
        match error {
            FindError::Unknown(name) if let Some(server) = self.undeclared(caller, name) => {
                let call = notes::lost_call(caller, deed, name, Some(&server), request_id);
                let declared = caller.declared.as_deref().unwrap_or_default().join(", ");
                let text = format!(
                    "server '{server}' is not among the servers that this session declared ({declared}), so \
                     nothing of it exists here. A session that needs it declares it: toolgate/servers in \
                     _meta, the header X-Toolgate-Servers, or `toolgate serve --stdio --servers {server}`."
                );
                self.note_refusal(AuditRow::denied(&call, "declaration", None, &text)).await;
                let details = ErrorDetails { server: Some(server), ..ErrorDetails::default() };
                reply::refuse(deed, ErrorCode::NotDeclared, &text, &details)
            }
            FindError::Unknown(name) => {
                let call = notes::lost_call(caller, deed, name, None, request_id);
                let reason = "there is none of this name for this caller";
                self.note_refusal(AuditRow::denied(&call, "binding", None, reason)).await;
                Outcome::Error(reply::unknown(deed, name))
            }
            FindError::Ambiguous { uri, instead } => {
                let call = notes::lost_call(caller, deed, uri, None, request_id);
                let reason = format!("several servers have this URI; say which: {}", instead.join(" or "));
                self.note_refusal(AuditRow::denied(&call, "binding", None, &reason)).await;
                Outcome::Error(reply::invalid_params(reason))
            }
            FindError::AmbiguousApp { name, servers } => {
                let call = notes::lost_call(caller, deed, name, None, request_id);
                let reason = format!(
                    "views of several servers can mean a tool by the name {name} ({}), so none is called; \
                     reach one server alone: `toolgate serve --server NAME`",
                    servers.join(", ")
                );
                self.note_refusal(AuditRow::denied(&call, "binding", None, &reason)).await;
                Outcome::Error(reply::invalid_params(reason))
            }
            FindError::Open { server, name, error } => {
                let call = notes::lost_call(caller, deed, name, Some(server), request_id);
                let details = ErrorDetails { server: Some(server.clone()), ..ErrorDetails::default() };
                self.note_refusal(AuditRow::denied(&call, "connect", None, &error.to_string())).await;
                let told = match error {
                    // It says itself what the operator does about it.
                    OpenError::Denied(_) | OpenError::Ending { .. } => error.to_string(),
                    _ => format!("{error}. The operator looks at it with `toolgate mcp status {server}`"),
                };
                reply::refuse(deed, error.code(), &told, &details)
            }
        }
    }
}
