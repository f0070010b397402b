//! A server's form, and its page, as a person is to see them.

mod address;

use std::cell::Cell;

use serde_json::json;
use toolgate_base::{display, hidden, lookalike};
use toolgate_wire::{Outcome, edit};

use super::{Shown, sensitive};

/// Fields of a form at most.
const MAX_FIELDS: usize = 64;
/// Characters of a name of a field at most.
const MAX_KEY: usize = 128;
/// Characters of a message, a title or a description at most.
const MAX_TEXT: usize = 4_000;
/// What a field may be: forms are flat.
const TYPES: [&str; 5] = ["string", "number", "integer", "boolean", "array"];

/// Names that mean something of their own where a client keeps answers in objects (TSK-009).
const UNSAFE: [&str; 3] = ["__proto__", "prototype", "constructor"];

const CONTINUE: &str = "continue";
const DECLINE: &str = "decline";

/// What a form may say beside its fields; anything else could show or ask what is not looked at. What `$defs`
/// names no field can use, since each says its own type.
const OF_FORM: [&str; 7] = ["$schema", "$defs", "type", "title", "description", "properties", "required"];

/// A form with its server's name before everything that is read.
pub(super) fn form(server: &str, original: &str) -> Result<Shown, String> {
    check_form(original)?;
    let params = original;
    let hid = Cell::new(false);
    let mut edits = vec![("/message".to_owned(), message(server, params, &hid)?)];
    let properties = edit::get(params, "/requestedSchema/properties").unwrap_or("{}");
    let properties = edit::members(properties).map_err(|_| "the properties of its form are no object")?;
    if properties.len() > MAX_FIELDS {
        return Err(format!("its form has more than {MAX_FIELDS} fields"));
    }
    let mut fields = Vec::new();
    let mut secrets = Vec::new();
    let mut takes_text = false;
    for (key, property) in properties {
        let looks_like_another = lookalike::find(&key).is_some();
        if key.chars().count() > MAX_KEY || hidden::find(&key).is_some() || looks_like_another {
            return Err("a name of a field of its form cannot be shown".to_owned());
        }
        if is_unsafe(&key) {
            return Err(format!("its form has a field `{key}`, which no program takes for a name"));
        }
        let kind = kind_of(property);
        if !kind.as_deref().is_some_and(|kind| TYPES.contains(&kind)) {
            return Err(format!("field `{key}` of its form is nothing that a person can type"));
        }
        let text = |pointer| edit::get(property, pointer).and_then(edit::string);
        let (title, description) = (text("/title"), text("/description"));
        if sensitive::in_name(&key) || speaks_of_a_secret(property, sensitive::in_field)? {
            secrets.push(key.clone());
        }
        takes_text |= is_free(property, kind.as_deref());
        let place = format!("/requestedSchema/properties/{}", key.replace('~', "~0").replace('/', "~1"));
        let title = shown(title.as_deref().unwrap_or(&key), &hid);
        edits.push((format!("{place}/title"), format!("[MCP server '{server}'] {title}")));
        if let Some(description) = description {
            edits.push((format!("{place}/description"), shown(&description, &hid)));
        }
        fields.push(key);
    }
    let params = with(params, &edits)?;
    check_rest(&params)?;
    // A question may stand in the message alone, with a field that is called anything.
    let around = edit::drop_all(original, &["/requestedSchema/properties", "/_meta"]);
    let around = around.map_err(|error| error.to_string())?;
    let is_sensitive =
        !secrets.is_empty() || (takes_text && speaks_of_a_secret(&around, sensitive::in_message)?);
    let confirm = if is_sensitive { Some(confirmation(server, &secrets)?) } else { None };
    Ok(Shown {
        params: edit::raw(params).map_err(|error| error.to_string())?,
        fields,
        confirm,
        hid: hid.get(),
    })
}

/// That it is a form and nothing else: a client could take what else there is for more.
fn check_form(params: &str) -> Result<(), String> {
    let mode = edit::get(params, "/mode");
    if mode.is_some_and(|mode| edit::string(mode).as_deref() != Some("form")) {
        return Err("its mode is neither `form` nor `url`".to_owned());
    }
    if edit::get(params, "/url").is_some() {
        return Err("it is a form and names an address beside it".to_owned());
    }
    let schema = edit::get(params, "/requestedSchema").ok_or("it has no `requestedSchema`")?;
    let members = edit::members(schema).map_err(|_| "its `requestedSchema` is no object")?;
    let is_closed = |key: &str, value: &str| key == "additionalProperties" && value == "false";
    for (key, value) in &members {
        if !OF_FORM.contains(&key.as_str()) && !is_closed(key, value) {
            return Err(format!("its form says `{}`, which forms do not have", display::escape(key)));
        }
    }
    if edit::get(schema, "/type").and_then(edit::string).as_deref() != Some("object") {
        return Err("its `requestedSchema` is not of the type `object`".to_owned());
    }
    Ok(())
}

/// A page to visit. The address must be what it looks like.
pub(super) fn page(server: &str, params: &str) -> Result<Shown, String> {
    let hid = Cell::new(false);
    let url = edit::get(params, "/url").and_then(edit::string).ok_or("it names no address")?;
    let page = address::check(&url)?;
    let told = format!("{}\nThe page is at {}.", message(server, params, &hid)?, page.host);
    let mut edits = vec![("/message".to_owned(), told)];
    if page.written != url {
        edits.push(("/url".to_owned(), page.written));
    }
    let params = with(params, &edits)?;
    check_rest(&params)?;
    let params = edit::raw(params).map_err(|error| error.to_string())?;
    Ok(Shown { params, fields: Vec::new(), confirm: None, hid: hid.get() })
}

/// Whether a name must not become the name of a field or of an answer.
pub(crate) fn is_unsafe(name: &str) -> bool {
    UNSAFE.contains(&name)
}

/// What a person said to [`Shown::confirm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// Show the form.
    Yes,
    /// Decline it.
    No,
    /// Neither: it is cancelled.
    Nothing,
}

/// What an answer to [`Shown::confirm`] says.
pub(crate) fn confirmed(outcome: &Outcome) -> Confirmed {
    let Outcome::Result(result) = outcome else { return Confirmed::Nothing };
    let text = |pointer| edit::get(result.get(), pointer).and_then(edit::string);
    match (text("/action").as_deref(), text("/content/decision").as_deref()) {
        (Some("accept"), Some(CONTINUE)) => Confirmed::Yes,
        (Some("accept"), Some(DECLINE)) | (Some("decline"), _) => Confirmed::No,
        _ => Confirmed::Nothing,
    }
}

/// `fields` are those that look like one; none where only the server's message speaks of it.
fn confirmation(server: &str, fields: &[String]) -> Result<Box<serde_json::value::RawValue>, String> {
    let which = if fields.is_empty() { "in its message".to_owned() } else { fields.join(", ") };
    let message = format!(
        "Toolgate asks (this is not the server): MCP server '{server}' is about to ask for what looks like a \
         secret ({which}). What you type will be sent to that server. It is never filled in from environment \
         variables or stored secrets. Do you want to see its question?",
    );
    let form = json!({
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {
                    "type": "string",
                    "title": "Decision",
                    "description": "whether the question of the server is shown",
                    "enum": [CONTINUE, DECLINE],
                },
            },
            "required": ["decision"],
        },
    });
    edit::raw(form.to_string()).map_err(|error| error.to_string())
}

fn message(server: &str, params: &str, hid: &Cell<bool>) -> Result<String, String> {
    let message = edit::get(params, "/message").and_then(edit::string).ok_or("it has no message")?;
    Ok(format!("⚠️ MCP server '{server}' asks (this is NOT Toolgate):\n{}", shown(&message, hid)))
}

/// A text of the server's for a person's eyes: nothing hidden, nothing for the terminal, not endless.
fn shown(text: &str, hid: &Cell<bool>) -> String {
    if hidden::find(text).is_some() {
        hid.set(true);
    }
    let escaped = display::escape_multiline(text);
    if escaped.chars().count() <= MAX_TEXT {
        return escaped;
    }
    let cut: String = escaped.chars().take(MAX_TEXT).collect();
    format!("{cut}… (cut)")
}

fn with(params: &str, edits: &[(String, String)]) -> Result<String, String> {
    let quoted: Vec<(&str, String)> =
        edits.iter().map(|(pointer, text)| (pointer.as_str(), edit::quote(text))).collect();
    let edits: Vec<(&str, Option<&str>)> =
        quoted.iter().map(|(pointer, text)| (*pointer, Some(text.as_str()))).collect();
    edit::set_all(params, &edits).map_err(|error| error.to_string())
}

/// What stands in the rest goes back to the server as it is (a choice, a default), so it can only be
/// shown as it is or not at all.
fn check_rest(params: &str) -> Result<(), String> {
    let hides = Cell::new(false);
    let look = |text: &str| -> Option<String> {
        hides.set(hides.get() || hidden::find(text).is_some());
        None
    };
    edit::map_strings(params, &look).map_err(|error| error.to_string())?;
    if hides.get() {
        return Err(
            "it holds characters that a person does not see where they cannot be taken out".to_owned()
        );
    }
    Ok(())
}

/// Whether any text of this JSON does, wherever it stands.
fn speaks_of_a_secret(json: &str, is_one: fn(&str) -> bool) -> Result<bool, String> {
    let speaks = Cell::new(false);
    let look = |text: &str| -> Option<String> {
        speaks.set(speaks.get() || is_one(text));
        None
    };
    edit::map_strings(json, &look).map_err(|error| error.to_string())?;
    Ok(speaks.get())
}

/// What a field is: its type, or the only one beside `null` where it may be left out, as SDKs write it.
fn kind_of(property: &str) -> Option<String> {
    let kinds: Vec<String> = match (edit::get(property, "/type"), edit::get(property, "/anyOf")) {
        (Some(kind), _) if kind.starts_with('[') => {
            edit::elements(kind).ok()?.into_iter().map(edit::string).collect::<Option<_>>()?
        }
        (Some(kind), _) => return edit::string(kind),
        (None, Some(any)) => {
            let kinds = edit::elements(any).ok()?.into_iter();
            kinds.map(|one| edit::get(one, "/type").and_then(edit::string)).collect::<Option<_>>()?
        }
        (None, None) => return None,
    };
    match kinds.as_slice() {
        [one, null] | [null, one] if null == "null" => Some(one.clone()),
        _ => None,
    }
}

/// Whether a person can type into it: a choice gives away nothing that the server does not know.
fn is_free(property: &str, kind: Option<&str>) -> bool {
    let names = |place: &str| edit::get(property, place).is_some();
    // Beside a type, `anyOf` holds choices; in place of one it says the type.
    let is_choice = names("/enum") || names("/oneOf") || (names("/type") && names("/anyOf"));
    matches!(kind, Some("string" | "number" | "integer")) && !is_choice
}
