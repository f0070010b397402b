//! What only the stateless era (2026-07-28) has: `_meta` on every request, discovery, subscriptions.

use serde_json::json;
use serde_json::value::RawValue;
use toolgate_wire::envelope::{self, Era, MODERN, ResultKind};
use toolgate_wire::{ErrorObject, Id, ListKind, Request, codes, edit};

use toolgate_gateway::{MOST_SUBSCRIPTIONS, tasks_undeclared};

use crate::backend::{Abilities, Client, Offers};
use crate::reply;

/// Methods that the earlier era never had: without `_meta` they are this era's, written wrongly.
const ONLY_HERE: [&str; 2] = ["server/discover", "subscriptions/listen"];

/// Milliseconds for which a client may keep a list. Zero, because what a caller sees changes whenever
/// a server starts, a pin breaks or an operator edits a persona, and a stale list offers refused tools.
const LIST_TTL_MS: u64 = 0;

/// The era a request was written in, after its envelope was checked.
///
/// Errors are `-32602` for a missing or malformed envelope and `-32022` for a revision that is not
/// served, with those that are (specification 2026-07-28, per-request metadata).
pub(crate) fn era_of(request: &Request) -> Result<Era, ErrorObject> {
    match envelope::modern_meta(request.params.as_deref()) {
        Err(error) => Err(error.to_error_object()),
        Ok(Some(meta)) if meta.protocol_version == MODERN => Ok(Era::Modern),
        Ok(Some(meta)) => Err(unsupported(&meta.protocol_version)),
        Ok(None) if ONLY_HERE.contains(&request.method.as_str()) => Err(missing_envelope()),
        Ok(None) => Ok(Era::Legacy),
    }
}

/// The client behind a request whose envelope was checked.
pub(crate) fn client(params: Option<&RawValue>) -> Client {
    match envelope::modern_meta(params) {
        Ok(Some(meta)) => Client::rounds(Abilities::of(meta.client_capabilities.get())),
        _ => Client::silent(),
    }
}

/// The error for a request of this era that does not say so itself.
pub(crate) fn missing_envelope() -> ErrorObject {
    let text = "params._meta needs io.modelcontextprotocol/protocolVersion and \
                io.modelcontextprotocol/clientCapabilities on every request";
    ErrorObject::new(codes::INVALID_PARAMS, text)
}

/// The error for a revision that is not served statelessly.
pub(crate) fn unsupported(requested: &str) -> ErrorObject {
    let mut error = ErrorObject::new(
        codes::UNSUPPORTED_VERSION,
        "this protocol version is not served with per-request metadata; choose one of data.supported, or send \
         initialize for an earlier one",
    );
    error.data =
        RawValue::from_string(json!({ "supported": [MODERN], "requested": requested }).to_string()).ok();
    error
}

/// The result of `server/discover`, without the members that every result gets.
pub(crate) fn discover_result(
    offers: Offers,
    instructions: Option<String>,
) -> Result<Box<RawValue>, ErrorObject> {
    let mut capabilities = reply::capabilities(offers);
    if let Some(object) = capabilities.as_object_mut().filter(|_| offers.tasks) {
        object.insert("extensions".to_owned(), json!({ "io.modelcontextprotocol/tasks": {} }));
    }
    let mut result = json!({
        "supportedVersions": [MODERN],
        "capabilities": capabilities,
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "private",
    });
    if let (Some(text), Some(object)) = (instructions, result.as_object_mut()) {
        object.insert("instructions".to_owned(), json!(text));
    }
    reply::raw(result.to_string())
}

/// The members that only this era's lists have, as JSON text to be appended to an object.
pub(crate) fn list_members() -> String {
    format!(r#","ttlMs":{LIST_TTL_MS},"cacheScope":"private""#)
}

/// A finished read with the members that this era requires of it and a server of the earlier one does not
/// know. How long it may be kept is the server's word; for whom is not, because what one caller may read
/// another may not.
pub(crate) fn read_result(result: Box<RawValue>) -> Result<Box<RawValue>, ErrorObject> {
    if envelope::result_kind(result.get()) != ResultKind::Complete {
        return Ok(result);
    }
    let kept = edit::get(result.get(), "/ttlMs").filter(|ttl| ttl.parse::<u64>().is_ok());
    let ttl = kept.map_or_else(|| LIST_TTL_MS.to_string(), str::to_owned);
    let members = [("/ttlMs", Some(ttl.as_str())), ("/cacheScope", Some(r#""private""#))];
    match edit::set_all(result.get(), &members) {
        Ok(text) => reply::raw(text),
        Err(error) => Err(reply::internal(&format!("cannot mark a read: {error}"))),
    }
}

/// What a client asked to be told of, as far as it is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    lists: Vec<ListKind>,
    /// The resources, each once; none where the client asked for no such thing.
    pub(crate) uris: Vec<String>,
    names_resources: bool,
    /// Tasks by the ids that the client knows, each once (extension `io.modelcontextprotocol/tasks`).
    pub(crate) tasks: Vec<String>,
    names_tasks: bool,
}

impl Filter {
    /// Whether the client wants to hear that this listing changed.
    pub(crate) fn wants(&self, kind: ListKind) -> bool {
        self.lists.contains(&kind)
    }

    /// Leaves out the listings that the caller's servers do not have.
    pub(crate) fn narrow(&mut self, offers: Offers) {
        self.lists.retain(|kind| offers.lists(*kind));
    }
}

/// The members of a filter that name listings.
const LISTS: [(&str, ListKind); 3] = [
    ("toolsListChanged", ListKind::Tools),
    ("promptsListChanged", ListKind::Prompts),
    ("resourcesListChanged", ListKind::Resources),
];

/// Reads the filter of `subscriptions/listen`. Kinds that are not served are left out, which the
/// acknowledgement tells the client.
pub(crate) fn filter(params: Option<&RawValue>) -> Result<Filter, ErrorObject> {
    let invalid = |text: &str| Err(ErrorObject::new(codes::INVALID_PARAMS, text));
    let Some(wanted) = params.and_then(|raw| edit::get(raw.get(), "/notifications")) else {
        return invalid("subscriptions/listen needs a params.notifications object");
    };
    if !wanted.trim_start().starts_with('{') {
        return invalid("params.notifications is not an object");
    }
    let mut filter = Filter::default();
    for (member, kind) in LISTS {
        match edit::get(wanted, &format!("/{member}")).map(str::trim) {
            Some("true") => filter.lists.push(kind),
            Some("false") | None => {}
            Some(_) => return invalid(&format!("params.notifications.{member} is not a boolean")),
        }
    }
    if let Some(uris) = names(wanted, "resourceSubscriptions")? {
        filter.names_resources = true;
        filter.uris = uris;
    }
    if let Some(tasks) = names(wanted, "taskIds")? {
        if !client(params).abilities().has(Abilities::TASKS) {
            return Err(tasks_undeclared());
        }
        filter.names_tasks = true;
        filter.tasks = tasks;
    }
    Ok(filter)
}

/// A list of texts in a filter, each once; none where the client has no such member.
fn names(wanted: &str, member: &str) -> Result<Option<Vec<String>>, ErrorObject> {
    let invalid = |text: &str| {
        Err(ErrorObject::new(codes::INVALID_PARAMS, format!("params.notifications.{member} {text}")))
    };
    let list = edit::get(wanted, &format!("/{member}")).filter(|list| list.trim() != "null");
    let Some(list) = list else { return Ok(None) };
    let elements = edit::elements(list).ok();
    let all: Option<Vec<String>> =
        elements.and_then(|elements| elements.into_iter().map(edit::string).collect());
    let Some(all) = all else { return invalid("is not an array of strings") };
    let mut each: Vec<String> = Vec::new();
    for name in all {
        if !each.contains(&name) {
            each.push(name);
        }
        if each.len() > MOST_SUBSCRIPTIONS {
            return invalid(&format!("names more than {MOST_SUBSCRIPTIONS}"));
        }
    }
    Ok(Some(each))
}

/// The first message of a subscription: what is accepted, and why the rest is not.
pub(crate) fn acknowledged(
    id: &Id,
    filter: &Filter,
    refused: &serde_json::Map<String, serde_json::Value>,
) -> String {
    let accepted = LISTS.iter().filter(|(_, kind)| filter.wants(*kind));
    let mut accepted: Vec<String> = accepted.map(|(member, _)| format!(r#""{member}":true"#)).collect();
    if filter.names_resources {
        accepted.push(format!(r#""resourceSubscriptions":{}"#, json!(filter.uris)));
    }
    if filter.names_tasks {
        accepted.push(format!(r#""taskIds":{}"#, json!(filter.tasks)));
    }
    let accepted = accepted.join(",");
    let mut meta = subscription_meta(id);
    if !refused.is_empty()
        && let Ok(edited) = edit::set(&meta, "/toolgate~1refused", &json!(refused).to_string())
    {
        meta = edited;
    }
    let params = format!(r#"{{"notifications":{{{accepted}}},"_meta":{meta}}}"#);
    reply::notification("notifications/subscriptions/acknowledged", Some(&params))
}

/// Tells a subscription that a listing changed.
pub(crate) fn list_changed(id: &Id, kind: ListKind) -> String {
    let params = format!(r#"{{"_meta":{}}}"#, subscription_meta(id));
    reply::notification(kind.changed(), Some(&params))
}

/// Tells a subscription that a resource changed.
pub(crate) fn resource_updated(id: &Id, uri: &str) -> String {
    let params = format!(r#"{{"uri":{},"_meta":{}}}"#, json!(uri), subscription_meta(id));
    reply::notification("notifications/resources/updated", Some(&params))
}

/// Tells a subscription how a task stands; `state` is the task with its result, error or questions.
pub(crate) fn task_changed(id: &Id, state: &RawValue) -> String {
    let meta = subscription_meta(id);
    let params = edit::set(state.get(), "/_meta", &meta).unwrap_or_else(|_| state.get().to_owned());
    reply::notification("notifications/tasks", Some(&params))
}

/// The result that ends a subscription from this side.
pub(crate) fn listen_result(id: &Id) -> Result<Box<RawValue>, ErrorObject> {
    reply::raw(format!(r#"{{"_meta":{}}}"#, subscription_meta(id)))
}

/// The id keeps its type: a client matches it against the id it chose.
fn subscription_meta(id: &Id) -> String {
    format!(r#"{{"io.modelcontextprotocol/subscriptionId":{}}}"#, reply::id_text(id))
}

#[cfg(test)]
mod tests;
