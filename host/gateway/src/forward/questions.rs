//! What a server asks while it works on a request, of either era, put to the client of that request.
//!
//! Order is the contract: the operator's entry, what the client can do, the verdict of the hook `elicit`,
//! the row, and only then somebody sees it (ELI-010 to ELI-016, SMP-001). A question to a person that is
//! not shown is declined, one that nobody answers in time is cancelled, and any other question that is
//! not forwarded gets an error. What a person typed is handed to the server that asked and written
//! nowhere.
//!
//! Bounds: `elicitation_timeout` for a person, `timeouts.call` for a model or directories.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::timeout;
use toolgate_base::random_hex;
use toolgate_plugins::{Document, Hook};
use toolgate_store::{AuditRow, Event};
use toolgate_upstream::Question;
use toolgate_wire::envelope::Era;
use toolgate_wire::{ErrorObject, Outcome, codes, edit};

use super::Path;
use crate::abilities::Abilities;
use crate::attend::{Open, Turn};
use crate::decide::{self, Ruling};
use crate::facts;
use crate::question::{Confirmed, ELICIT, Kind, Shown, confirmed};

/// One question as it came.
pub(crate) struct Incoming {
    pub(crate) key: String,
    pub(super) kind: Kind,
    /// Its parameters, JSON text.
    pub(super) params: String,
}

/// What the server hears.
pub(crate) enum Answer {
    Result(Box<RawValue>),
    Error(ErrorObject),
}

/// A question that is about to be shown.
struct Ready {
    key: String,
    kind: Kind,
    shown: Shown,
}

/// One message to the client, and what became of it.
struct Put {
    key: String,
    method: &'static str,
    params: Box<RawValue>,
    within: Duration,
}

enum End {
    Answered(Outcome),
    TimedOut,
    Gone,
}

/// What a question to a person ends with, where the person's own words do not go along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Decline,
    Cancel,
}

impl Path {
    /// What this server is told that can be asked for this request.
    pub(crate) fn told(&self) -> Abilities {
        let reachable = self.waiting.turns.is_some() || self.waiting.client.asker().is_some();
        let own = if reachable { self.waiting.client.abilities() } else { Abilities::NONE };
        // Views are shown, not asked: what is true of the caller is true without a way back.
        let own = own.or(self.caller.abilities.and(Abilities::VIEWS));
        own.and(Abilities::of_entry(&self.handle.server))
    }

    /// Answers one question of a legacy server, unless the server takes it back.
    pub(super) async fn answer_question(&self, question: Question, told: Abilities) {
        let withdrawn = question.withdrawn();
        let params = question.params.get().to_owned();
        let Some(kind) = Kind::of(&question.method, &params) else { return };
        let incoming = Incoming { key: format!("question_{}", random_hex(4)), kind, params };
        let mut answers = tokio::select! {
            biased;
            () = withdrawn.cancelled() => return,
            answers = self.ask_all(vec![incoming], told) => answers,
        };
        match answers.pop() {
            Some((_, Answer::Result(result))) => question.answer(Outcome::Result(result)),
            Some((_, Answer::Error(error))) => question.answer(Outcome::Error(error)),
            None => {}
        }
    }

    /// Asks what may be asked, together, and answers the rest. Every key has its answer.
    pub(crate) async fn ask_all(&self, incoming: Vec<Incoming>, told: Abilities) -> Vec<(String, Answer)> {
        let mut answers = Vec::new();
        let mut ready = Vec::new();
        for one in incoming {
            let key = one.key.clone();
            match self.made_ready(one, told).await {
                Ok(one) => ready.push(one),
                Err(answer) => answers.push((key, answer)),
            }
        }
        let (sensitive, mut ready): (Vec<Ready>, Vec<Ready>) =
            ready.into_iter().partition(|one| one.shown.confirm.is_some());
        for (one, end) in self.confirm(sensitive).await {
            match end {
                End::Answered(outcome) if confirmed(&outcome) == Confirmed::Yes => ready.push(one),
                end => answers.push((one.key.clone(), self.unconfirmed(&one, &end))),
            }
        }
        let puts = ready.iter().map(|one| self.put_of(one)).collect();
        for (one, end) in ready.iter().zip(self.put(puts).await) {
            answers.push((one.key.clone(), self.ended(one, end)));
        }
        answers
    }

    /// A question as the client of this request is to see it; `None` where it is not to see it, which is in the
    /// log then.
    pub(super) async fn shown_params(&self, one: Incoming) -> Option<Box<RawValue>> {
        self.made_ready(one, self.told()).await.ok().map(|ready| ready.shown.params)
    }

    /// Everything that must be so before a question is shown. `Err` is the answer where it is not.
    async fn made_ready(&self, one: Incoming, told: Abilities) -> Result<Ready, Answer> {
        let Incoming { key, kind, params } = one;
        if kind.is_for_a_person() && self.handle.server.questions.auto_decline {
            return Err(self.refused(kind, &params, "server_configured", "its entry declines", None).await);
        }
        if !told.has(kind.needs(&params)) {
            let forwarded = Abilities::of_entry(&self.handle.server).has(kind.needs(&params));
            let (reason, text) = if forwarded {
                ("headless", "the client of this call declared no such capability, or cannot be reached")
            } else {
                ("not_forwarded", "the server's entry in toolgate.yaml does not forward it")
            };
            return Err(self.refused(kind, &params, reason, text, None).await);
        }
        let shown = match kind.shown(&self.handle.server.name, &params) {
            Ok(shown) => shown,
            Err(fault) => return Err(self.refused(kind, &params, "malformed", &fault, None).await),
        };
        let document = Document::new(params.as_str());
        if shown.hid {
            self.gateway.note_hidden_question(&self.call, &document);
        }
        let verdict = self.question_verdict(kind, document);
        let passes = match verdict.ruling {
            Ruling::Allow => true,
            // A question to a person is that question.
            Ruling::Ask => kind.is_for_a_person(),
            Ruling::Deny => false,
        };
        if !passes {
            let by = verdict.by.as_deref();
            return Err(self.refused(kind, &params, "policy", &verdict.reason, by).await);
        }
        let event =
            if kind.is_for_a_person() { Event::McpElicitationRequested } else { Event::McpQuestionForwarded };
        let row = AuditRow::question(event, &self.call, kind.method(), &shown.fields);
        if let Err(error) = self.gateway.store.append(row).await {
            tracing::error!(%error, "the audit log refused a row, so a question was not shown");
            return Err(not_forwarded(kind, "the audit log could not be written"));
        }
        Ok(Ready { key, kind, shown: self.for_client(kind, shown) })
    }

    fn question_verdict(&self, kind: Kind, document: Document) -> decide::Verdict {
        let about =
            facts::About { action: "elicit", subject: &self.handle.subject, document: Some(document) };
        let (gateway, caller, handle) = (&self.gateway, &self.caller, &self.handle);
        let facts =
            facts::of_question(gateway, caller, &handle.server, &handle.surface, &handle.item, about, kind);
        let binding = gateway.binding(caller, &handle.server.name);
        let plugins = gateway.plugins();
        let verdict = decide::decide(&plugins.plugins, &binding, Hook::Elicit, &facts::shared(facts));
        gateway.note_monitored(&self.call, Hook::Elicit, &verdict);
        verdict
    }

    /// A page has an id in the legacy era alone.
    fn for_client(&self, kind: Kind, shown: Shown) -> Shown {
        if kind != Kind::Page {
            return shown;
        }
        let (text, id) = (shown.params.get(), "/elicitationId");
        let changed = match (self.caller.era, edit::get(text, id)) {
            (Era::Modern, Some(_)) => edit::drop_all(text, &[id]),
            (Era::Legacy, None) => edit::set(text, id, &edit::quote(&random_hex(16))),
            _ => return shown,
        };
        match changed.and_then(edit::raw) {
            Ok(params) => Shown { params, ..shown },
            Err(_) => shown,
        }
    }

    async fn confirm(&self, sensitive: Vec<Ready>) -> Vec<(Ready, End)> {
        let within = self.handle.server.questions.timeout;
        let puts = sensitive.iter().filter_map(|one| {
            let params = one.shown.confirm.clone()?;
            Some(Put { key: format!("toolgate_confirm_{}", one.key), method: ELICIT, params, within })
        });
        let ends = self.put(puts.collect()).await;
        sensitive.into_iter().zip(ends).collect()
    }

    fn put_of(&self, one: &Ready) -> Put {
        let server = &self.handle.server;
        let within = if one.kind.is_for_a_person() { server.questions.timeout } else { server.timeouts.call };
        Put { key: one.key.clone(), method: one.kind.method(), params: one.shown.params.clone(), within }
    }

    /// Puts all to the client at once and waits for each, as long as it may take.
    async fn put(&self, puts: Vec<Put>) -> Vec<End> {
        if let Some(turns) = &self.waiting.turns {
            let within = puts.iter().map(|put| put.within).max().unwrap_or_default();
            let mut open = Vec::new();
            let mut waits = Vec::new();
            for Put { key, method, params, within } in puts {
                let (reply, answer) = oneshot::channel();
                open.push(Open { key, method, params, reply });
                waits.push(async move {
                    match timeout(within, answer).await {
                        Ok(Ok(outcome)) => End::Answered(outcome),
                        Ok(Err(_)) => End::Gone,
                        Err(_) => End::TimedOut,
                    }
                });
            }
            // Where nobody takes the turn, the replies are dropped with it.
            if !open.is_empty() {
                let _ = turns.send(Turn { open, within }).await;
            }
            return join_all(waits).await;
        }
        let asker = self.waiting.client.asker();
        join_all(puts.into_iter().map(|put| async move {
            let Some(asker) = asker else { return End::Gone };
            match timeout(put.within, asker.ask(put.method, put.params)).await {
                Ok(Ok(outcome)) => End::Answered(outcome),
                Ok(Err(_)) => End::Gone,
                Err(_) => End::TimedOut,
            }
        }))
        .await
    }

    /// The answer to a question whose form was not shown, because the person did not want to see it.
    fn unconfirmed(&self, one: &Ready, end: &End) -> Answer {
        match end {
            End::Answered(outcome) => {
                let action =
                    if confirmed(outcome) == Confirmed::No { Action::Decline } else { Action::Cancel };
                self.said(one, action.as_str());
                action.into()
            }
            End::TimedOut | End::Gone => self.unanswered(one, end),
        }
    }

    /// The answer to a question that was put to the client.
    fn ended(&self, one: &Ready, end: End) -> Answer {
        match end {
            End::Answered(Outcome::Result(result)) if one.kind.is_for_a_person() => {
                let action = edit::get(result.get(), "/action").and_then(edit::string);
                let (word, answer) = match action.as_deref() {
                    Some("accept") => ("accept", Answer::Result(result)),
                    Some("decline") => ("decline", Action::Decline.into()),
                    _ => ("cancel", Action::Cancel.into()),
                };
                self.said(one, word);
                answer
            }
            End::Answered(Outcome::Error(_)) if one.kind.is_for_a_person() => {
                self.said(one, "cancel");
                Action::Cancel.into()
            }
            End::Answered(outcome) => {
                self.said(one, if matches!(outcome, Outcome::Result(_)) { "answer" } else { "error" });
                match outcome {
                    Outcome::Result(result) => Answer::Result(result),
                    Outcome::Error(error) => Answer::Error(error),
                }
            }
            end => self.unanswered(one, &end),
        }
    }

    fn unanswered(&self, one: &Ready, end: &End) -> Answer {
        let timed_out = matches!(end, End::TimedOut);
        let reason = if timed_out { "timed_out" } else { "client_gone" };
        if one.kind.is_for_a_person() {
            let event =
                if timed_out { Event::McpElicitationTimedOut } else { Event::McpElicitationAutoDeclined };
            self.note(self.row(event, one).with("action", Action::Cancel.as_str()).with("reason", reason));
            return Action::Cancel.into();
        }
        self.note(self.row(Event::McpQuestionRefused, one).with("reason", reason));
        let code = if timed_out { codes::TIMED_OUT } else { codes::CANCELLED };
        Answer::Error(ErrorObject::new(code, "the client of this call gave no answer"))
    }

    fn said(&self, one: &Ready, action: &str) {
        let event = if one.kind.is_for_a_person() {
            Event::McpElicitationAnswered
        } else {
            Event::McpQuestionAnswered
        };
        self.note(self.row(event, one).with("action", action));
    }

    fn row(&self, event: Event, one: &Ready) -> AuditRow {
        AuditRow::question(event, &self.call, one.kind.method(), &one.shown.fields)
    }

    /// A question that nobody sees. Awaited: the refusal is in the log before the server hears of it.
    async fn refused(&self, kind: Kind, params: &str, reason: &str, text: &str, by: Option<&str>) -> Answer {
        let event = if kind.is_for_a_person() {
            Event::McpElicitationAutoDeclined
        } else {
            Event::McpQuestionRefused
        };
        let fields = edit::get(params, "/requestedSchema/properties").and_then(|all| edit::members(all).ok());
        let fields: Vec<String> =
            fields.into_iter().flatten().map(|(key, _)| key).take(super::QUESTIONS).collect();
        let row = AuditRow::question(event, &self.call, kind.method(), &fields).with("reason", reason);
        let row = row.with("detail", text);
        self.gateway
            .note_refusal(match by {
                Some(by) => row.with("by", by),
                None => row,
            })
            .await;
        not_forwarded(kind, text)
    }
}

impl Action {
    fn as_str(self) -> &'static str {
        match self {
            Self::Decline => "decline",
            Self::Cancel => "cancel",
        }
    }
}

impl From<Action> for Answer {
    fn from(action: Action) -> Self {
        match edit::raw(format!(r#"{{"action":"{}"}}"#, action.as_str())) {
            Ok(result) => Self::Result(result),
            Err(error) => Self::Error(ErrorObject::new(codes::INTERNAL_ERROR, error.to_string())),
        }
    }
}

/// What a server hears of a question that is not forwarded.
fn not_forwarded(kind: Kind, text: &str) -> Answer {
    if kind.is_for_a_person() {
        return Action::Decline.into();
    }
    Answer::Error(ErrorObject::new(codes::METHOD_NOT_FOUND, format!("{} is refused: {text}", kind.method())))
}
