//! What a guest said, turned into what the gateway reads.
//!
//! Threat: everything a guest returns is hostile. Reasons are stripped and cut, edits are counted
//! and checked for form, sizes are bounded, and a decision counts only within the authority that
//! the operator gave and the hook allows.

use crate::bindings::{adapter, types};
use crate::decision::{Change, Decision, DecisionSet, Edit, Redaction};
use crate::facts::Hook;
use crate::fault::{Fault, FaultKind, Whose};
use crate::json;
use crate::limits::MAX_EDITS;
use crate::state::Shared;
use crate::text;

/// What a caller is told where a policy gave no reason.
const NO_REASON: &str = "no reason given";

/// A policy's decision, within its authority. An `allow` that was not granted is an abstention;
/// anything else that was not granted is a denial, because it was meant to narrow.
pub(crate) fn decision(
    said: types::Decision,
    hook: Hook,
    authority: DecisionSet,
    shared: &Shared,
) -> Result<Decision, Fault> {
    let granted = match &said {
        types::Decision::Abstain => return Ok(Decision::Abstain),
        types::Decision::Allow(_) if !authority.allow => return Ok(Decision::Abstain),
        types::Decision::Allow(_) => true,
        types::Decision::Ask(_) => authority.ask,
        types::Decision::Deny(_) => authority.deny,
        types::Decision::Redact(_) => authority.redact,
    };
    if !granted {
        let word = word_of(&said);
        return Err(Fault {
            plugin: shared.name.clone(),
            whose: Whose::OperatorDenied,
            kind: FaultKind::Unauthorised,
            detail: format!("it said {word}, which its release or its grant does not include"),
        });
    }
    Ok(match said {
        types::Decision::Abstain => Decision::Abstain,
        types::Decision::Allow(reason) => Decision::Allow { reason: reason_of(&reason) },
        types::Decision::Ask(reason) => Decision::Ask { reason: reason_of(&reason) },
        types::Decision::Deny(reason) => Decision::Deny { reason: reason_of(&reason), fault: None },
        types::Decision::Redact(_) if !hook.may_redact() => {
            let detail = format!("it redacts in the hook {}, where nothing is shown", hook.word());
            return Err(shared.misbehaved(FaultKind::Unauthorised, detail));
        }
        types::Decision::Redact(types::Redaction::HiddenText) => Decision::Redact(Redaction::HiddenText),
        types::Decision::Redact(types::Redaction::Edits(list)) => {
            Decision::Redact(Redaction::Edits(edits(list, shared)?))
        }
    })
}

/// A denial that is the consequence of a fault.
pub(crate) fn denial(fault: Fault) -> Decision {
    let reason = if fault.kind == FaultKind::PutAside {
        format!("the policy {} denies all that it guards: {}", fault.plugin, fault.detail)
    } else {
        format!("the policy {} failed ({}), and a policy that fails denies", fault.plugin, fault.kind.code())
    };
    Decision::Deny { reason, fault: Some(fault) }
}

/// An adapter's change.
pub(crate) fn change(said: adapter::Change, shared: &Shared) -> Result<Change, Fault> {
    Ok(match said {
        adapter::Change::Unchanged => Change::Unchanged,
        adapter::Change::Patch(list) => Change::Patch(edits(list, shared)?),
        adapter::Change::Replace(document) => {
            check_json(&document, "its replacement", shared)?;
            Change::Replace(document)
        }
        adapter::Change::Fail(reason) => Change::Fail(reason_of(&reason)),
    })
}

/// An error value of the guest's: its case, and its text as it may be shown.
pub(crate) fn error(said: &types::Error) -> (&'static str, String) {
    let (kind, message) = match said {
        types::Error::Denied(message) => ("denied", message),
        types::Error::NotFound(message) => ("not-found", message),
        types::Error::Invalid(message) => ("invalid", message),
        types::Error::LimitExceeded(message) => ("limit-exceeded", message),
        types::Error::Unavailable(message) => ("unavailable", message),
        types::Error::Internal(message) => ("internal", message),
    };
    (kind, text::reason(message))
}

fn reason_of(said: &str) -> String {
    let reason = text::reason(said);
    if reason.is_empty() { NO_REASON.to_owned() } else { reason }
}

fn word_of(said: &types::Decision) -> &'static str {
    match said {
        types::Decision::Abstain => "abstain",
        types::Decision::Allow(_) => "allow",
        types::Decision::Ask(_) => "ask",
        types::Decision::Deny(_) => "deny",
        types::Decision::Redact(_) => "redact",
    }
}

fn edits(list: Vec<types::Edit>, shared: &Shared) -> Result<Vec<Edit>, Fault> {
    if list.len() > MAX_EDITS {
        let detail = format!("{} edits are more than the limit of {MAX_EDITS}", list.len());
        return Err(shared.misbehaved(FaultKind::BadAnswer, detail));
    }
    let bytes: usize =
        list.iter().map(|edit| edit.pointer.len() + edit.value.as_ref().map_or(0, String::len)).sum();
    check_size(bytes, shared)?;
    list.into_iter().map(|edit| checked_edit(edit, shared)).collect()
}

fn checked_edit(edit: types::Edit, shared: &Shared) -> Result<Edit, Fault> {
    if let Err(error) = json::check_pointer(&edit.pointer) {
        return Err(shared.misbehaved(FaultKind::BadAnswer, format!("in an edit: {error}")));
    }
    if let Some(value) = &edit.value {
        check_json(value, "the value of an edit", shared)?;
    }
    Ok(Edit { pointer: edit.pointer, value: edit.value })
}

fn check_json(document: &str, what: &str, shared: &Shared) -> Result<(), Fault> {
    check_size(document.len(), shared)?;
    if json::is_well_formed(document) {
        return Ok(());
    }
    Err(shared.misbehaved(FaultKind::BadAnswer, format!("{what} is no well-formed JSON")))
}

fn check_size(bytes: usize, shared: &Shared) -> Result<(), Fault> {
    let limit = shared.limits.host_bytes;
    if bytes <= limit {
        return Ok(());
    }
    Err(shared.misbehaved(
        FaultKind::Limit,
        format!("an answer of {bytes} bytes is more than the limit host-bytes of {limit}"),
    ))
}
