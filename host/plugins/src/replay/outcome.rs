//! Answers as JSON: the form of the `.expected.json` files, made for a person who reads a diff.

use serde_json::{Value, json};

use crate::decision::{Change, Decision, Edit, Redaction};
use crate::fault::{AdapterFault, Fault};
use crate::installer::{self, Candidate, Launch, Page, Plan};

pub(super) fn decision(decision: Decision) -> Result<Value, Fault> {
    Ok(match decision {
        Decision::Abstain => json!({ "decision": "abstain" }),
        Decision::Allow { reason } => json!({ "decision": "allow", "reason": reason }),
        Decision::Ask { reason } => json!({ "decision": "ask", "reason": reason }),
        Decision::Deny { fault: Some(fault), .. } => return Err(fault),
        Decision::Deny { reason, .. } => json!({ "decision": "deny", "reason": reason }),
        Decision::Redact(Redaction::Edits(list)) => json!({ "decision": "redact", "edits": edits(&list) }),
        Decision::Redact(Redaction::HiddenText) => json!({ "decision": "redact", "filter": "hidden-text" }),
    })
}

/// None where an adapter gave no change for its one tool, which the host counts as a fault before.
pub(super) fn change(answer: Result<Option<Change>, AdapterFault>) -> Result<Value, Fault> {
    Ok(match answer.map_err(|fault| fault.0)? {
        None | Some(Change::Unchanged) => json!({ "change": "unchanged" }),
        Some(Change::Patch(list)) => json!({ "change": "patch", "edits": edits(&list) }),
        Some(Change::Replace(text)) => json!({ "change": "replace", "document": value_of(&text) }),
        Some(Change::Fail(reason)) => json!({ "change": "fail", "reason": reason }),
    })
}

pub(super) fn page(page: &Page) -> Value {
    let candidates: Vec<Value> = page.candidates.iter().map(candidate).collect();
    json!({ "candidates": candidates, "cursor": page.cursor })
}

pub(super) fn found(found: Option<&Candidate>) -> Value {
    json!({ "found": found.map(candidate) })
}

pub(super) fn plan(plan: &Plan) -> Value {
    let launch = match &plan.launch {
        Launch::Stdio(command) => json!({ "stdio": {
            "program": command.program,
            "arguments": command.arguments.iter().map(value).collect::<Vec<_>>(),
            "environment": bindings(&command.environment),
        } }),
        Launch::Http(endpoint) => json!({ "http": {
            "transport": endpoint.transport,
            "url": endpoint.url,
            "headers": bindings(&endpoint.headers),
        } }),
    };
    let artifact = |artifact: &installer::Artifact| {
        let installer::Artifact { url, digest, size, path } = artifact;
        json!({ "url": url, "digest": digest, "size": size, "path": path })
    };
    json!({ "plan": {
        "id": plan.id,
        "version": plan.version,
        "suggested_name": plan.suggested_name,
        "runtime": plan.runtime,
        "artifacts": plan.artifacts.iter().map(artifact).collect::<Vec<_>>(),
        "launch": launch,
        "warnings": plan.warnings,
    } })
}

pub(super) fn error(kind: &str, message: &str) -> Value {
    json!({ "error": kind, "message": message })
}

pub(super) fn fault(fault: &Fault) -> Value {
    json!({ "fault": fault.kind.code(), "whose": fault.whose.to_string(), "detail": fault.detail })
}

fn candidate(candidate: &Candidate) -> Value {
    let Candidate { id, version, description, status } = candidate;
    json!({ "id": id, "version": version, "description": description, "status": status })
}

fn bindings(list: &[installer::Binding]) -> Vec<Value> {
    list.iter()
        .map(|binding| {
            json!({
                "name": binding.name,
                "value": value(&binding.value),
                "description": binding.description,
                "required": binding.required,
            })
        })
        .collect()
}

fn value(value: &installer::Value) -> Value {
    match value {
        installer::Value::Literal(text) => json!({ "literal": text }),
        installer::Value::Secret(name) => json!({ "secret": name }),
        installer::Value::Setting(name) => json!({ "setting": name }),
    }
}

fn edits(list: &[Edit]) -> Vec<Value> {
    list.iter()
        .map(|edit| match &edit.value {
            Some(text) => json!({ "pointer": edit.pointer, "value": value_of(text) }),
            None => json!({ "pointer": edit.pointer, "remove": true }),
        })
        .collect()
}

/// A JSON text as a value where that loses nothing; else the text itself, so that a changed digit
/// of a number that no double holds is a difference.
fn value_of(text: &str) -> Value {
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.to_string().as_str() == text => value,
        _ => json!({ "json": text }),
    }
}
