//! The answer that a client of the stateless era sends along when it repeats its call.
//!
//! Contract: a `requestState` is Toolgate's, or the call is refused; `inputResponses` without one are
//! offered, should the server ask (see [`crate::attend`]), and answer no question of Toolgate's own. Either
//! is taken out of the parameters before anything else looks at those: no policy has seen it, and a server
//! must not get what was not judged.

use serde_json::value::RawValue;
use toolgate_wire::{ErrorObject, edit};

use super::{client, seal};
use crate::reply;

/// The key of the one question in a round.
pub(super) const KEY: &str = "toolgate_approval";

/// What came along with a repeated call.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) state: String,
    /// What came along as `inputResponses`, JSON text.
    pub(crate) responses: Option<String>,
    pub(super) said: client::Said,
}

impl Round {
    /// Whether it is for a call that is parked, and not for an ask.
    pub(crate) fn is_parked(&self) -> bool {
        seal::is_parked(&self.state)
    }
}

/// What a request came with.
pub(crate) struct Taken {
    /// Its parameters without what is taken out.
    pub(crate) params: Box<RawValue>,
    /// The answer to a question of Toolgate's, or to those of a parked call.
    pub(crate) round: Option<Round>,
    /// Answers to what nobody asked yet, JSON text.
    pub(crate) offered: Option<String>,
}

/// Takes the round out of the parameters, where there is one.
pub(crate) fn take(params: Box<RawValue>) -> Result<Taken, ErrorObject> {
    let text = params.get();
    let (state, responses) = (edit::get(text, "/requestState"), edit::get(text, "/inputResponses"));
    if state.is_none() && responses.is_none() {
        return Ok(Taken { params, round: None, offered: None });
    }
    let present: Vec<&str> = ["/requestState", "/inputResponses"]
        .into_iter()
        .filter(|pointer| edit::get(text, pointer).is_some())
        .collect();
    let rest = edit::drop_all(text, &present)
        .and_then(edit::raw)
        .map_err(|error| reply::invalid_params(error.to_string()))?;
    let Some(state) = state else {
        return Ok(Taken { params: rest, round: None, offered: responses.map(str::to_owned) });
    };
    let Some(state) = edit::string(state).filter(|state| seal::is_ours(state)) else {
        return Err(reply::invalid_params(
            "params.requestState answers a question of Toolgate's, and this is none of its; call without it",
        ));
    };
    let answer = responses.and_then(|responses| edit::get(responses, &format!("/{KEY}")));
    let round = Round {
        responses: responses.map(str::to_owned),
        state,
        said: answer.map_or(client::Said::Nothing, client::said),
    };
    Ok(Taken { params: rest, round: Some(round), offered: None })
}
