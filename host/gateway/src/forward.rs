//! The path of one request, from the caller to the server and back (design.md section 3). Calls, reads,
//! prompts, completions and subscriptions all take it.
//!
//! Order is the contract: adapter, verdict, ask, audit row committed, and only then a byte leaves.
//! After any wait the digests are compared again and a change goes back to the verdict. A request that
//! may have run is never sent a second time.

mod document;
mod hold;
mod inputs;
mod judge;
mod messages;
mod questions;
mod result;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolgate_plugins::{Document, Facts, Moment};
use toolgate_signing::Digest;
use toolgate_store::{AuditRow, CallFacts, Deed};
use toolgate_upstream::{RequestError, RequestOptions};
use toolgate_wire::envelope::Era;
use toolgate_wire::{Outcome, edit, headers};

use crate::Gateway;
use crate::call::{Call, Waiting};
use crate::caller::Caller;
use crate::find::{self, Handle};
use crate::reply::{self, ErrorCode, ErrorDetails};
use crate::{arguments, deeds, facts, rewrite, tasks};
use messages::Messages;

pub(crate) use self::inputs::inputs;
pub(crate) use self::questions::Answer;

/// How often a request is judged, at most, when something changes each time while it waits.
const MAX_REVIEWS: usize = 4;

/// Questions of one request that may wait to be looked at.
const QUESTIONS: usize = 16;

/// A request that ended before its server answered.
pub(crate) struct Stop(pub(crate) Outcome);

/// How what would be asked for compares with what was judged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Same,
    Changed,
    Gone,
}

/// One request on its way.
pub(crate) struct Path {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) caller: Caller,
    pub(crate) deed: Deed,
    pub(crate) handle: Handle,
    /// The name or URI that the client used.
    pub(crate) used: String,
    /// The marks of its audit rows.
    pub(crate) call: CallFacts,
    pub(crate) waiting: Waiting,
    /// Ends what runs when its server is frozen.
    pub(crate) frozen: CancellationToken,
    /// What goes with a call to a server that may make a task of it (TSK-002).
    pub(crate) invocation: Option<String>,
}

impl Path {
    pub(crate) async fn run(mut self, call: Call) -> Result<Outcome, Stop> {
        self.check_offered().await?;
        self.check_headers(&call).await?;
        let document = self.document(&call.params).await?;
        if self.deed == Deed::Call && self.handle.live.connection.has_tasks() {
            self.invocation = Some(tasks::invocation());
        }
        let mut place = None;
        for _ in 0..MAX_REVIEWS {
            let by = self.judge(&call.params, &document).await?;
            // A place and a token are waits like any other: what let the call pass must still do so.
            let waited = self.take_place(&mut place).await?;
            if (self.take_token().await? || waited) && !self.still_passes(&document, by)? {
                continue;
            }
            let params = self.upstream_params(&call.params, &document)?;
            self.refuse_frozen(&document).await?;
            self.record_called(&params).await?;
            // The policies, a person and the row took their time: what was judged must still be what
            // the server shows. A change goes back to the verdict.
            let standing = self.renew();
            if self.frozen.is_cancelled() {
                self.note(AuditRow::failed(&self.call, "frozen while the row was written; nothing was sent"));
                self.refuse_frozen(&document).await?;
            }
            if standing == Standing::Same && self.deed == Deed::Subscribe {
                return self.hold(call, params).await;
            }
            if standing == Standing::Same {
                let outcome = self.send(&call, params, &document, by).await?;
                return match outcome {
                    Outcome::Result(created) if tasks::is_one(self.deed, &created) => {
                        self.into_task(&call, &created, document, by, place).await
                    }
                    outcome => Ok(self.received(outcome).await),
                };
            }
            self.note(AuditRow::failed(
                &self.call,
                "the definition changed while the call waited; nothing was sent",
            ));
            if standing == Standing::Gone {
                break;
            }
        }
        let text = "what it is about changed while the request waited, again and again or for good, so nothing \
                    was sent. List again and repeat the request.";
        Err(self.refuse(ErrorCode::Denied, text))
    }

    /// What an intermediary reads in headers must be what the server will read in the body (-32020).
    async fn check_headers(&self, call: &Call) -> Result<(), Stop> {
        let (Some(given), Deed::Call) = (&call.param_headers, self.deed) else { return Ok(()) };
        let schema = edit::get(self.handle.item.definition.text(), "/inputSchema").unwrap_or("{}");
        let arguments = edit::get(call.params.get(), "/arguments").unwrap_or("{}");
        let get = |name: &str| given.iter().find(|(have, _)| have == name).map(|(_, value)| value.clone());
        let Err(mismatch) = headers::check_params(schema, arguments, &get) else { return Ok(()) };
        let reason = mismatch.to_string();
        self.gateway.note_refusal(AuditRow::denied(&self.call, "headers", None, &reason)).await;
        Err(Stop(Outcome::Error(mismatch.to_error_object())))
    }

    /// A capability that the server did not declare is refused here, in words of ours (NEG-005..007).
    async fn check_offered(&self) -> Result<(), Stop> {
        let capability = deeds::capability(self.deed);
        if self.handle.live.connection.declares(&format!("/{}", capability.replace('.', "/"))) {
            return Ok(());
        }
        let server = &self.handle.server.name;
        let text = format!(
            "server '{server}' does not offer {}: it did not declare the capability `{capability}`",
            deeds::method(self.deed)
        );
        self.gateway.note_refusal(AuditRow::denied(&self.call, "capability", None, &text)).await;
        Err(Stop(Outcome::Error(reply::not_offered(&text))))
    }

    /// For an author's recording, where one is made.
    fn record(&self, moment: Moment, document: &Document) {
        if self.gateway.recorder.is_on() {
            let facts = self.facts(Some(document.clone()));
            self.gateway.recorder.keep(&self.handle.server, moment, &facts);
        }
    }

    pub(crate) fn facts(&self, document: Option<Document>) -> Arc<Facts> {
        let about =
            facts::About { action: deeds::action(self.deed), subject: &self.handle.subject, document };
        let Handle { server, surface, item, .. } = &self.handle;
        facts::shared(facts::of_item(&self.gateway, &self.caller, server, surface, item, about))
    }

    /// Step 7: whether what was judged is still what would be called. If not, the handle is
    /// renewed, so that the next verdict is about what the server shows now.
    fn renew(&mut self) -> Standing {
        let surface = self.handle.live.surface.load_full();
        let old = &self.handle.item;
        let now = match self.deed {
            Deed::Read | Deed::Subscribe => Some(find::resource(&surface, &self.handle.subject)),
            _ => surface.item(old.kind, &old.name).map(|item| (String::new(), Arc::clone(item), true)),
        };
        let Some((_, item, listed)) = now else { return Standing::Gone };
        if item.bytes == old.bytes && item.pin == old.pin && listed == self.handle.listed {
            return Standing::Same;
        }
        self.handle.item = item;
        self.handle.surface = surface;
        self.handle.listed = listed;
        Standing::Changed
    }

    /// The client's parameters with the server's own name spliced in, and of a call the adapted
    /// arguments.
    fn upstream_params(&self, params: &RawValue, document: &Document) -> Result<Box<RawValue>, Stop> {
        let name = edit::quote(&self.handle.subject);
        let mut edits = vec![(rewrite::subject_pointer(self.deed, params.get()), Some(name.as_str()))];
        if self.deed == Deed::Call {
            edits.push(("/arguments", Some(document.text())));
        }
        edit::set_all(params.get(), &edits)
            .map(|params| match &self.invocation {
                Some(invocation) => tasks::with_invocation(&params, invocation).unwrap_or(params),
                None => params,
            })
            .and_then(edit::raw)
            .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
    }

    /// Step 8: committed before a byte leaves (AUD-013).
    async fn record_called(&self, params: &RawValue) -> Result<(), Stop> {
        let sent = Digest::of(params.get().as_bytes());
        let row = AuditRow::called(&self.call, &sent);
        let row = match &self.invocation {
            Some(invocation) => row.with("invocation", invocation.as_str()),
            None => row,
        };
        let keep = self.gateway.config().audit.arguments;
        let row = arguments::kept(row, keep, &self.handle.server, edit::get(params.get(), "/arguments"));
        match self.gateway.store.append(row).await {
            Ok(_) => Ok(()),
            Err(error) => {
                tracing::error!(%error, "the audit log refused a row, so nothing was sent");
                let text = "the audit log could not be written, so nothing was sent to the server. \
                            The operator finds the reason in Toolgate's log.";
                Err(self.refuse(ErrorCode::Audit, text))
            }
        }
    }

    /// Step 9, on the connection that the definition was found on: another one would be another session.
    /// What a legacy server asks meanwhile is answered beside it.
    async fn send_once(&self, call: &Call, params: Box<RawValue>) -> Result<Outcome, Stop> {
        let timeouts = &self.handle.server.timeouts;
        let (ask, mut asked) = mpsc::channel(QUESTIONS);
        let told = self.told();
        let logs = call.logs.clone().filter(|_| self.handle.server.questions.logging);
        let (mut said, progress, logs) = Messages::of(call.progress.clone(), logs);
        let options = RequestOptions {
            timeout: Some(call.timeout.unwrap_or(timeouts.call)),
            max_total: Some(timeouts.max_total),
            progress,
            questions: Some(ask),
            logs,
            capabilities: edit::raw(told.to_json()).ok(),
            // A child: a freeze ends this request and not what else its client runs.
            cancel: call.cancel.child_token(),
            mcp_param_headers: self.param_headers(&params),
        };
        let cancel = options.cancel.clone();
        let connection = &self.handle.live.connection;
        let request = connection.request(deeds::method(self.deed), Some(params), options);
        tokio::pin!(request);
        let mut answering = FuturesUnordered::new();
        let answered = loop {
            tokio::select! {
                biased;
                answered = &mut request => break answered,
                said_now = said.next() => said.pass(self, said_now),
                () = self.frozen.cancelled(), if !cancel.is_cancelled() => cancel.cancel(),
                Some(question) = asked.recv() => answering.push(self.answer_question(question, told)),
                Some(()) = answering.next(), if !answering.is_empty() => {}
            }
        };
        // What it said before it answered comes before the answer.
        while let Some(said_before) = said.waiting() {
            said.pass(self, said_before);
        }
        answered.map_err(|error| self.failed(&error))
    }

    /// `Mcp-Param-*` for a modern server, from the schema it gave itself. An annotation that is not
    /// allowed gives no headers: the listing has left that tool out already.
    fn param_headers(&self, params: &RawValue) -> Vec<(String, String)> {
        let schema = edit::get(self.handle.item.definition.text(), "/inputSchema");
        let arguments = edit::get(params.get(), "/arguments");
        match (self.handle.live.connection.era(), schema, arguments) {
            (Era::Modern, Some(schema), Some(arguments)) => {
                headers::param_headers(schema, arguments).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    fn failed(&self, error: &RequestError) -> Stop {
        if matches!(error, RequestError::Cancelled { .. }) && self.ended_by_freeze() {
            return self.cut_off(error.may_have_run());
        }
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
                    RequestError::NotHonored { .. } => ErrorCode::NotHonored,
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
    pub(crate) fn note(&self, row: AuditRow) {
        self.gateway.store.append_detached(row);
    }

    pub(crate) fn details(&self) -> ErrorDetails {
        ErrorDetails { server: Some(self.handle.server.name.clone()), ..ErrorDetails::default() }
    }

    pub(crate) fn refuse(&self, code: ErrorCode, text: &str) -> Stop {
        Stop(reply::refuse(self.deed, code, text, &self.details()))
    }
}
