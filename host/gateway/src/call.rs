//! The path of one `tools/call`, from the caller to the server and back (design.md section 3).
//!
//! Order is the contract: adapter, verdict, ask, audit row committed, and only then a byte leaves.
//! After any wait the digests are compared again and a change goes back to the verdict. A call that
//! may have run is never sent a second time.

mod arguments;
mod result;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_plugins::{Document, Facts};
use toolgate_signing::Digest;
use toolgate_store::{AuditRow, CallFacts};
use toolgate_upstream::{Progress, RequestError, RequestOptions};
use toolgate_wire::envelope::Era;
use toolgate_wire::{Id, Outcome, edit, headers};

use crate::Gateway;
use crate::ask::round::{self, Round};
use crate::ask::{By, Question, Settled};
use crate::caller::Caller;
use crate::catalog::{FindError, Target, ToolHandle};
use crate::client::Client;
use crate::decide::{Ruling, Verdict};
use crate::facts;
use crate::notes;
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::views;

/// One `tools/call`.
pub struct Call {
    /// The client's id, for the audit log only; it never goes upstream.
    pub request_id: Id,
    /// The client's parameters, without the envelope of its era.
    pub params: Box<RawValue>,
    /// Where progress goes; `None` where the client asked for none.
    pub progress: Option<mpsc::Sender<Progress>>,
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
}

/// Members of `tools/call` that continue a task.
const NOT_OFFERED: [&str; 1] = ["task"];

/// What a call that waits has around it.
pub(crate) struct Waiting {
    pub(crate) cancel: CancellationToken,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    pub(crate) hold: Duration,
    pub(crate) client: Client,
    /// Whether it came with an answer: a call is not asked about twice in a row.
    pub(crate) had_round: bool,
    round: Mutex<Option<Round>>,
}

impl Waiting {
    /// The answer that came along; it counts for the first question.
    pub(crate) fn round(&self) -> Option<Round> {
        self.round.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// How often a call is judged, at most, when something changes each time while it waits.
const MAX_REVIEWS: usize = 4;

impl Gateway {
    /// Calls the tool that `params.name` names as the client sees it. The outcome is era-neutral:
    /// `downstream` adds the envelope of the client's era.
    pub async fn call_tool(self: &Arc<Self>, caller: &Caller, call: Call) -> Outcome {
        match edit::get(call.params.get(), "/name").and_then(edit::string) {
            Some(name) => self.call_target(caller, Target::Exposed(name), call).await,
            None => Outcome::Error(reply::invalid_params("tools/call needs params.name, a string")),
        }
    }

    /// Calls a tool by either kind of name; `params.name` is replaced.
    pub async fn call_target(self: &Arc<Self>, caller: &Caller, target: Target, call: Call) -> Outcome {
        // These continue something that Toolgate does not offer, and no policy would see them.
        for member in NOT_OFFERED {
            if edit::get(call.params.get(), &format!("/{member}")).is_some() {
                let text =
                    format!("params.{member} is not offered by this version of Toolgate; call without it");
                return Outcome::Error(reply::invalid_params(text));
            }
        }
        let handle = match self.find_tool(caller, &target).await {
            Ok(handle) => handle,
            Err(error) => return self.not_found(caller, &error, &call.request_id).await,
        };
        let (params, round) = match round::take(call.params) {
            Ok(taken) => taken,
            Err(error) => return Outcome::Error(error),
        };
        let call = Call { params, ..call };
        let waiting = Waiting {
            cancel: call.cancel.clone(),
            progress: call.progress.clone(),
            hold: call.hold.min(self.config.approvals.hold),
            client: call.client.clone(),
            had_round: round.is_some(),
            round: Mutex::new(round),
        };
        let facts = notes::call_facts(caller, &handle, &call.request_id);
        // Before the verdict, so that a freeze that comes after it ends this call.
        let frozen = self.watch.token(&handle.server.name);
        let path = Path { gateway: self, caller, handle, call: facts, waiting, frozen };
        match path.run(call).await {
            Ok(outcome) | Err(Stop(outcome)) => outcome,
        }
    }

    /// A refusal leaves `mcp_denied` and no `mcp_called` (9a), whatever the name was.
    async fn not_found(&self, caller: &Caller, error: &FindError, request_id: &Id) -> Outcome {
        match error {
            FindError::Unknown(name) => {
                let call = notes::lost_call(caller, name, None, request_id);
                let reason = "no such tool for this caller";
                self.note_refusal(AuditRow::denied(&call, "binding", None, reason)).await;
                Outcome::Error(reply::unknown_tool(name))
            }
            FindError::Open { server, name, error } => {
                let call = notes::lost_call(caller, name, Some(server), request_id);
                let details = ErrorDetails { server: Some(server.clone()), ..ErrorDetails::default() };
                self.note_refusal(AuditRow::denied(&call, "connect", None, &error.to_string())).await;
                reply::refusal(error.code(), &error.to_string(), &details)
            }
        }
    }
}

/// A call that ended before its server answered.
struct Stop(Outcome);

/// How what would be called compares with what was judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Same,
    Changed,
    Gone,
}

struct Path<'a> {
    gateway: &'a Arc<Gateway>,
    caller: &'a Caller,
    handle: ToolHandle,
    call: CallFacts,
    waiting: Waiting,
    /// Ends what runs when its server is frozen.
    frozen: CancellationToken,
}

impl Path<'_> {
    async fn run(mut self, call: Call) -> Result<Outcome, Stop> {
        self.check_headers(&call).await?;
        let arguments = self.adapted_arguments(&call.params).await?;
        for _ in 0..MAX_REVIEWS {
            let by = self.judge(&arguments).await?;
            // A token is a wait like any other: what let the call pass must still do so.
            if self.take_token().await? && !self.still_passes(&arguments, by)? {
                continue;
            }
            let params = self.upstream_params(&call.params, &arguments)?;
            self.refuse_frozen(&arguments).await?;
            self.record_called(&params).await?;
            // The policies, a person and the row took their time: what was judged must still be what
            // the server shows. A change goes back to the verdict.
            let standing = self.renew();
            if self.frozen.is_cancelled() {
                self.note(AuditRow::failed(&self.call, "frozen while the row was written; nothing was sent"));
                self.refuse_frozen(&arguments).await?;
            }
            if standing == Standing::Same {
                let outcome = self.send(call, params).await?;
                return Ok(self.received(outcome).await);
            }
            self.note(AuditRow::failed(
                &self.call,
                "the definition changed while the call waited; nothing was sent",
            ));
            if standing == Standing::Gone {
                break;
            }
        }
        let text = "the tool changed while the call waited, again and again or for good, so nothing was sent. \
                    List the tools again and repeat the call.";
        Err(self.refuse(ErrorCode::Denied, text))
    }

    /// A freeze that came after the verdict: judged anew the call is denied, with the operator's reason.
    async fn refuse_frozen(&self, arguments: &Document) -> Result<(), Stop> {
        if !self.frozen.is_cancelled() {
            return Ok(());
        }
        let facts = self.facts(Some(arguments.clone()));
        Err(self.denied(&self.verdict(&facts)).await)
    }

    /// What an intermediary reads in headers must be what the server will read in the body (-32020).
    async fn check_headers(&self, call: &Call) -> Result<(), Stop> {
        let Some(given) = &call.param_headers else { return Ok(()) };
        let schema = edit::get(self.handle.tool.definition.text(), "/inputSchema").unwrap_or("{}");
        let arguments = edit::get(call.params.get(), "/arguments").unwrap_or("{}");
        let get = |name: &str| given.iter().find(|(have, _)| have == name).map(|(_, value)| value.clone());
        let Err(mismatch) = headers::check_params(schema, arguments, &get) else { return Ok(()) };
        let reason = mismatch.to_string();
        self.gateway.note_refusal(AuditRow::denied(&self.call, "headers", None, &reason)).await;
        Err(Stop(Outcome::Error(mismatch.to_error_object())))
    }

    fn facts(&self, document: Option<Document>) -> Arc<Facts> {
        facts::shared(facts::of_tool(
            self.gateway,
            self.caller,
            &self.handle.server,
            &self.handle.surface,
            &self.handle.tool,
            document,
        ))
    }

    /// Steps 5 and 6: the verdict, and the ask where a person has to answer. An answer that came while
    /// the call waited is followed by another verdict, which may have become another.
    async fn judge(&self, arguments: &Document) -> Result<By, Stop> {
        let facts = self.facts(Some(arguments.clone()));
        for _ in 0..=MAX_REVIEWS {
            let verdict = self.verdict(&facts);
            match verdict.ruling {
                Ruling::Allow => return Ok(By::Policies),
                Ruling::Deny => return Err(self.denied(&verdict).await),
                Ruling::Ask => {}
            }
            let question = self.question(&facts, &verdict);
            match self.gateway.settle(&question, &self.waiting).await.map_err(Stop)? {
                Settled::Passed(by) => return Ok(by),
                Settled::Answered => {}
            }
        }
        Err(self.refuse(ErrorCode::Denied, "the grant was used up by the same call on another connection"))
    }

    fn verdict(&self, facts: &Arc<Facts>) -> Verdict {
        let binding = self.gateway.binding(self.caller, &self.handle.server.name);
        let in_force = self.gateway.plugins();
        views::judge_call(&in_force.views, &in_force.plugins, &binding, facts)
    }

    fn question<'b>(&'b self, facts: &'b Arc<Facts>, verdict: &'b Verdict) -> Question<'b> {
        Question { caller: self.caller, handle: &self.handle, facts, verdict, call: &self.call }
    }

    /// After a wait: whether what let the call pass still does. A grant for once is spent already.
    fn still_passes(&self, arguments: &Document, by: By) -> Result<bool, Stop> {
        let facts = self.facts(Some(arguments.clone()));
        let verdict = self.verdict(&facts);
        match (verdict.ruling, by) {
            (Ruling::Allow, _) | (Ruling::Ask, By::Once) => Ok(true),
            (Ruling::Ask, By::Wider) => {
                self.gateway.has_grant(&self.question(&facts, &verdict)).map_err(Stop)
            }
            (Ruling::Ask, By::Policies) | (Ruling::Deny, _) => Ok(false),
        }
    }

    /// Step 7: a token of the persona's bucket for this server. Whether the call had to wait for it.
    async fn take_token(&self) -> Result<bool, Stop> {
        let deadline = self.handle.server.timeouts.max_total;
        let waiting = self.gateway.rates.take(&self.handle.server, &self.caller.persona);
        tokio::select! {
            biased;
            waited = waiting => Ok(waited),
            () = self.waiting.cancel.cancelled() => {
                self.note(AuditRow::cancelled(&self.call));
                Err(self.refuse(ErrorCode::Cancelled, "the call was given up while it waited for its turn"))
            }
            () = self.frozen.cancelled() => Ok(true),
            () = tokio::time::sleep(deadline) => {
                let text = "no turn came within timeouts.max_total; nothing was sent";
                self.gateway.note_refusal(AuditRow::denied(&self.call, "rate_limit", None, text)).await;
                Err(self.refuse(ErrorCode::RateLimited, text))
            }
        }
    }

    async fn denied(&self, verdict: &Verdict) -> Stop {
        self.gateway.note_denial(&self.call, verdict).await;
        let text = format!("Denied by Toolgate: {}", verdict.reason);
        let details = ErrorDetails { by: verdict.by.clone(), ..self.details() };
        Stop(reply::refusal(ErrorCode::Denied, &text, &details))
    }

    /// Step 7: whether what was judged is still what would be called. If not, the handle is
    /// renewed, so that the next verdict is about what the server shows now.
    fn renew(&mut self) -> Standing {
        let surface = self.handle.live.surface.load_full();
        match surface.tool(&self.handle.tool.name) {
            Some(now) if now.digest == self.handle.tool.digest && now.pin == self.handle.tool.pin => {
                Standing::Same
            }
            Some(now) => {
                self.handle.tool = Arc::clone(now);
                self.handle.surface = surface;
                Standing::Changed
            }
            None => Standing::Gone,
        }
    }

    /// The client's parameters with the server's own tool name and the adapted arguments spliced in.
    fn upstream_params(&self, params: &RawValue, arguments: &Document) -> Result<Box<RawValue>, Stop> {
        let name = json!(self.handle.tool.name).to_string();
        let edits = [("/name", Some(name.as_str())), ("/arguments", Some(arguments.text()))];
        edit::set_all(params.get(), &edits)
            .and_then(edit::raw)
            .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
    }

    /// Step 8: committed before a byte leaves (AUD-013).
    async fn record_called(&self, params: &RawValue) -> Result<(), Stop> {
        let sent = Digest::of(params.get().as_bytes());
        match self.gateway.store.append(AuditRow::called(&self.call, &sent)).await {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "the audit log refused a row, so the call was not sent");
                let text = "the audit log could not be written, so nothing was sent to the server. \
                            The operator finds the reason in Toolgate's log.";
                Err(self.refuse(ErrorCode::Audit, text))
            }
        }
    }

    /// Step 9, on the connection that the tool was found on: another one would be another session.
    async fn send(&self, call: Call, params: Box<RawValue>) -> Result<Outcome, Stop> {
        let timeouts = &self.handle.server.timeouts;
        let options = RequestOptions {
            timeout: Some(call.timeout.unwrap_or(timeouts.call)),
            max_total: Some(timeouts.max_total),
            progress: call.progress,
            // A child: a freeze ends this request and not what else its client runs.
            cancel: call.cancel.child_token(),
            mcp_param_headers: self.param_headers(&params),
        };
        let cancel = options.cancel.clone();
        let connection = &self.handle.live.connection;
        let asked = connection.request("tools/call", Some(params), options);
        tokio::pin!(asked);
        let answered = tokio::select! {
            biased;
            answered = &mut asked => answered,
            () = self.frozen.cancelled() => {
                cancel.cancel();
                asked.await
            }
        };
        answered.map_err(|error| self.failed(&error))
    }

    /// `Mcp-Param-*` for a modern server, from the schema it gave itself. An annotation that is not
    /// allowed gives no headers: the listing has left that tool out already.
    fn param_headers(&self, params: &RawValue) -> Vec<(String, String)> {
        let schema = edit::get(self.handle.tool.definition.text(), "/inputSchema");
        let arguments = edit::get(params.get(), "/arguments");
        match (self.handle.live.connection.era(), schema, arguments) {
            (Era::Modern, Some(schema), Some(arguments)) => {
                headers::param_headers(schema, arguments).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn failed(&self, error: &RequestError) -> Stop {
        let (row, code) = match error {
            RequestError::Cancelled { .. } => (AuditRow::cancelled(&self.call), ErrorCode::Cancelled),
            other => {
                let code = match other {
                    RequestError::TimedOut { .. } => ErrorCode::TimedOut,
                    RequestError::MayHaveRun { .. } => ErrorCode::MayHaveRun,
                    RequestError::Refused { status: 401 | 403, .. } => ErrorCode::Authentication,
                    RequestError::NotSent { .. } | RequestError::Refused { .. } => {
                        ErrorCode::ServerUnavailable
                    }
                    RequestError::RateLimited { .. } => ErrorCode::RateLimited,
                    _ => ErrorCode::BadServer,
                };
                let told = self.handle.server.without_secrets(&other.to_string());
                (AuditRow::failed(&self.call, &told), code)
            }
        };
        self.note(row);
        self.refuse(code, &self.handle.server.without_secrets(&error.to_string()))
    }

    /// Not awaited: the call has its outcome, and a failed write refuses the next call.
    fn note(&self, row: AuditRow) {
        self.gateway.store.append_detached(row);
    }

    fn details(&self) -> ErrorDetails {
        ErrorDetails { server: Some(self.handle.server.name.clone()), ..ErrorDetails::default() }
    }

    fn refuse(&self, code: ErrorCode, text: &str) -> Stop {
        Stop(reply::refusal(code, text, &self.details()))
    }
}
