//! A modern server that needs something first: its result `input_required` becomes questions, and the
//! answers go with the same request, sent again with the server's own state.
//!
//! That is the one way in which a request is sent more than once: the server itself said that it did not
//! do it yet, and asked for it again (spec 2026-07-28, multi-round-trip requests). Each sending has its
//! row, and is compared with the verdict anew, because a person took their time in between.
//!
//! Bounds: [`MAX_ROUNDS`] rounds of one request, [`MAX_INPUTS`] questions of one round.

use std::time::Duration;

use serde_json::value::RawValue;
use toolgate_plugins::Document;
use toolgate_store::AuditRow;
use toolgate_wire::envelope::{self, ResultKind};
use toolgate_wire::{Outcome, edit};

use super::questions::{Answer, Incoming};
use super::{Path, Standing, Stop};
use crate::ask::By;
use crate::call::Call;
use crate::deeds;
use crate::question::{Kind, is_unsafe};
use crate::reply::ErrorCode;

/// How often one request is sent, at most, because its server asks again.
const MAX_ROUNDS: usize = 16;
/// Questions of one round at most.
const MAX_INPUTS: usize = 16;
/// Pause before a round that asks nothing and only wants its state back.
const BREATH: Duration = Duration::from_millis(100);

impl Path {
    /// Sends the request, and again with answers as long as its server asks for them.
    pub(super) async fn send(
        &mut self,
        call: &Call,
        params: Box<RawValue>,
        document: &Document,
        by: By,
    ) -> Result<Outcome, Stop> {
        let mut outcome = self.send_once(call, params.clone()).await?;
        for _ in 0..MAX_ROUNDS {
            let asked = match &outcome {
                Outcome::Result(result) if deeds::has_rounds(self.deed) && asks(result) => result,
                _ => return Ok(outcome),
            };
            let next = self.with_inputs(asked, &params).await?;
            self.check_again(document, by).await?;
            self.record_called(&next).await?;
            outcome = self.send_once(call, next).await?;
        }
        self.note(AuditRow::failed(&self.call, "it asked again and again"));
        let text = format!(
            "server '{}' asked more than {MAX_ROUNDS} times before it answered; it may have done some of it",
            self.handle.server.name
        );
        Err(self.refuse(ErrorCode::BadServer, &text))
    }

    /// The request with the answers to what its server asked.
    async fn with_inputs(&self, asked: &RawValue, params: &RawValue) -> Result<Box<RawValue>, Stop> {
        let state = edit::get(asked.get(), "/requestState");
        let requests = edit::get(asked.get(), "/inputRequests").unwrap_or("{}");
        let incoming = inputs(requests, state.is_some()).map_err(|fault| self.bad_inputs(&fault))?;
        let answers = async {
            if incoming.is_empty() {
                tokio::time::sleep(BREATH).await;
            }
            self.ask_all(incoming, self.told()).await
        };
        // Nobody goes on asking for a call that was given up or frozen; what is next says so.
        let answers = tokio::select! {
            biased;
            () = self.waiting.cancel.cancelled() => Vec::new(),
            () = self.frozen.cancelled() => Vec::new(),
            answers = answers => answers,
        };
        let mut members = Vec::new();
        for (key, answer) in answers {
            match answer {
                Answer::Result(result) => members.push(format!("{}:{}", edit::quote(&key), result.get())),
                Answer::Error(error) => {
                    self.note(AuditRow::failed(&self.call, &error.message));
                    let text = format!(
                        "server '{}' asked something that was not answered: {}. The call did not go on.",
                        self.handle.server.name, error.message
                    );
                    return Err(self.refuse(ErrorCode::Denied, &text));
                }
            }
        }
        let responses = format!("{{{}}}", members.join(","));
        let mut edits = vec![("/inputResponses", Some(responses.as_str()))];
        edits.extend(state.map(|state| ("/requestState", Some(state))));
        edit::set_all(params.get(), &edits)
            .and_then(edit::raw)
            .map_err(|error| self.refuse(ErrorCode::Internal, &error.to_string()))
    }

    /// A person took their time: what was judged must still be so.
    async fn check_again(&mut self, document: &Document, by: By) -> Result<(), Stop> {
        self.refuse_frozen(document).await?;
        if self.waiting.cancel.is_cancelled() {
            self.note(AuditRow::cancelled(&self.call));
            return Err(
                self.refuse(ErrorCode::Cancelled, "it was given up while its server's question was open")
            );
        }
        if self.still_passes(document, by)? && self.renew() == Standing::Same {
            return Ok(());
        }
        let reason = "what let the call pass changed while its server's question was open";
        self.note(AuditRow::failed(&self.call, reason));
        Err(self
            .refuse(ErrorCode::Denied, &format!("{reason}, so the answer was not sent. Repeat the call.")))
    }

    fn bad_inputs(&self, fault: &str) -> Stop {
        self.note(AuditRow::failed(&self.call, fault));
        let text = format!("server '{}' {fault}; the call may have run", self.handle.server.name);
        self.refuse(ErrorCode::BadServer, &text)
    }
}

fn asks(result: &RawValue) -> bool {
    envelope::result_kind(result.get()) == ResultKind::InputRequired
}

/// The questions of one round; `Err` says what is wrong with them.
pub(crate) fn inputs(requests: &str, may_be_none: bool) -> Result<Vec<Incoming>, String> {
    let members = edit::members(requests).map_err(|_| "asks for input that is no object".to_owned())?;
    if members.is_empty() && !may_be_none {
        return Err("asks for input and names none".to_owned());
    }
    if members.len() > MAX_INPUTS {
        return Err(format!("asks more than {MAX_INPUTS} questions at once"));
    }
    let mut incoming = Vec::new();
    for (key, request) in members {
        if is_unsafe(&key) {
            return Err(format!("names an input `{key}`, which no program takes for a name"));
        }
        let params = edit::get(request, "/params").unwrap_or("{}").to_owned();
        let method = edit::get(request, "/method").and_then(edit::string).unwrap_or_default();
        let kind = Kind::of(&method, &params).ok_or("asks for an input of a kind that nobody knows")?;
        incoming.push(Incoming { key, kind, params });
    }
    Ok(incoming)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_needs_questions_of_a_known_kind_or_a_state() {
        assert!(inputs("{}", true).is_ok_and(|all| all.is_empty()));
        assert!(inputs("{}", false).is_err());
        assert!(inputs("[]", true).is_err());
        let one = |method: &str| format!(r#"{{"q":{{"method":"{method}","params":{{"message":"m"}}}}}}"#);
        let found = inputs(&one("elicitation/create"), false).unwrap();
        assert_eq!((found[0].key.as_str(), found[0].kind), ("q", Kind::Form));
        assert!(inputs(&one("tools/call"), false).is_err());
        let named = r#"{"__proto__":{"method":"roots/list"}}"#;
        assert!(inputs(named, true).is_err(), "TSK-009");
        let many: Vec<String> = (0..17).map(|n| format!(r#""q{n}":{{"method":"roots/list"}}"#)).collect();
        assert!(inputs(&format!("{{{}}}", many.join(",")), false).is_err());
    }
}
