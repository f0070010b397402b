//! One recorded document: what the host knew and what it asked, as a file.
//!
//! Contract: the definition and the document keep their bytes, so that number text and order are
//! what the plugin saw. The format is closed and has a number. Bounds: 16 MiB a file, as for a
//! message; whoever reads the file holds that.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::hook_of;
use crate::facts::{Document, Facts, Hook, PinState, SurfaceKind};

/// The version of the format.
const FORMAT: u32 = 1;

/// When a plugin is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A hook of a policy.
    Policy(Hook),
    /// An adapter, about the definition of a tool.
    Tools,
    /// An adapter, about arguments before the verdict.
    Arguments,
    /// An adapter, about a result before the policies.
    Content,
    /// An installer: words.
    Search {
        /// The words.
        query: String,
        /// Where the page begins.
        cursor: Option<String>,
    },
    /// An installer: one server.
    Lookup {
        /// Its exact id.
        id: String,
    },
    /// An installer: the plan for one server.
    Resolve {
        /// Its exact id.
        id: String,
        /// A version or range.
        requirement: Option<String>,
    },
}

impl Moment {
    /// The word for it in files and messages, as `call` or `arguments`.
    pub fn word(&self) -> &'static str {
        match self {
            Moment::Policy(hook) => hook.word(),
            Moment::Tools => "tools",
            Moment::Arguments => "arguments",
            Moment::Content => "content",
            Moment::Search { .. } => "search",
            Moment::Lookup { .. } => "lookup",
            Moment::Resolve { .. } => "resolve",
        }
    }
}

/// One document with its name.
#[derive(Clone, Debug)]
pub struct Recorded {
    name: String,
    moment: Moment,
    facts: Arc<Facts>,
}

/// Why a file is no document.
#[derive(Debug, thiserror::Error)]
#[error("the document {name} cannot be used: {what}")]
pub struct RecordError {
    /// The document's name.
    pub name: String,
    /// What is wrong with it, with line and column where it is about syntax.
    pub what: String,
}

impl Recorded {
    /// What was asked at a moment about these facts.
    pub fn new(name: impl Into<String>, moment: Moment, facts: Arc<Facts>) -> Self {
        Self { name: name.into(), moment, facts }
    }

    /// Reads a file.
    pub fn parse(name: &str, text: &str) -> Result<Self, RecordError> {
        let wrong = |what: String| RecordError { name: name.to_owned(), what };
        let written: Written = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if written.format != FORMAT {
            return Err(wrong(format!("it has format {}; this version reads {FORMAT}", written.format)));
        }
        let moment = moment(&written).map_err(wrong)?;
        let asked = written.request.unwrap_or_default();
        let document = |raw: Option<Box<RawValue>>| raw.map(|raw| Document::new(raw.get()));
        let facts = asked.facts(document(written.definition), document(written.document));
        Ok(Self { name: name.to_owned(), moment, facts: Arc::new(facts) })
    }

    /// The name, which is that of its file without `.json`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// When it was asked.
    pub fn moment(&self) -> &Moment {
        &self.moment
    }

    /// What the plugin may learn.
    pub fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The text of its file. Definition and document stand on one line each, as they were.
    ///
    /// # Errors
    /// [`RecordError`] where the definition or the document is no JSON, which none from the host is.
    pub fn to_text(&self) -> Result<String, RecordError> {
        let wrong =
            |error: serde_json::Error| RecordError { name: self.name.clone(), what: error.to_string() };
        let raw = |document: &Option<Document>| {
            document.as_ref().map(|document| RawValue::from_string(document.text().to_owned())).transpose()
        };
        let (request, input) = match &self.moment {
            Moment::Search { query, cursor } => {
                (None, Some(Input { query: Some(query.clone()), cursor: cursor.clone(), ..Input::default() }))
            }
            Moment::Lookup { id } => (None, Some(Input { id: Some(id.clone()), ..Input::default() })),
            Moment::Resolve { id, requirement } => {
                let requirement = requirement.clone();
                (None, Some(Input { id: Some(id.clone()), requirement, ..Input::default() }))
            }
            _ => (Some(Asked::of(&self.facts)), None),
        };
        let written = Written {
            format: FORMAT,
            hook: self.moment.word().to_owned(),
            request,
            input,
            definition: raw(&self.facts.definition).map_err(wrong)?,
            document: raw(&self.facts.document).map_err(wrong)?,
        };
        Ok(serde_json::to_string_pretty(&written).map_err(wrong)? + "\n")
    }
}

/// A file as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    format: u32,
    hook: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    request: Option<Asked>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Input>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    definition: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    document: Option<Box<RawValue>>,
}

/// What an installer is asked.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    requirement: Option<String>,
}

fn moment(written: &Written) -> Result<Moment, String> {
    if let Some(hook) = hook_of(&written.hook) {
        return Ok(Moment::Policy(hook));
    }
    let input = || written.input.as_ref().ok_or_else(|| format!("`{}` needs an `input`", written.hook));
    let id = || input()?.id.clone().ok_or_else(|| format!("`{}` needs `input.id`", written.hook));
    Ok(match written.hook.as_str() {
        "tools" => Moment::Tools,
        "arguments" => Moment::Arguments,
        "content" => Moment::Content,
        "search" => Moment::Search {
            query: input()?.query.clone().ok_or("`search` needs `input.query`")?,
            cursor: input()?.cursor.clone(),
        },
        "lookup" => Moment::Lookup { id: id()? },
        "resolve" => Moment::Resolve { id: id()?, requirement: input()?.requirement.clone() },
        other => {
            return Err(format!(
                "`{other}` is no hook; use one of {}, tools, arguments, content, search, lookup, resolve",
                Hook::ALL.map(Hook::word).join(", ")
            ));
        }
    })
}

/// The facts but for the documents. What is not written has the value of a plain tool call.
#[allow(clippy::struct_excessive_bools)] // the facts are what they are
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Asked {
    persona: String,
    lane: String,
    session: String,
    server: String,
    server_identity: String,
    kind: Kind,
    name: String,
    label: String,
    has_capabilities: bool,
    matched_allow: Option<String>,
    matched_approval: Option<String>,
    auto_approved: bool,
    host_escape: bool,
    digest: Option<String>,
    pin: Pin,
    surface_pin: Pin,
    read_only_hint: Option<bool>,
    destructive_hint: Option<bool>,
}

impl Default for Asked {
    fn default() -> Self {
        let facts = Facts { kind: SurfaceKind::Tool, ..Facts::default() };
        Self {
            persona: "default".to_owned(),
            lane: "main".to_owned(),
            session: "recorded".to_owned(),
            ..Self::of(&facts)
        }
    }
}

/// Writes the words of an enum of the facts, and the way there and back.
macro_rules! words {
    ($name:ident, $of:ident: $($case:ident),+) => {
        #[derive(Clone, Copy, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum $name { $($case),+ }

        impl From<$of> for $name {
            fn from(value: $of) -> Self {
                match value { $($of::$case => Self::$case),+ }
            }
        }

        impl From<$name> for $of {
            fn from(value: $name) -> Self {
                match value { $($name::$case => Self::$case),+ }
            }
        }
    };
}

words!(Kind, SurfaceKind: Server, Instructions, Tool, Prompt, Resource, Template, Question);
words!(Pin, PinState: Unpinned, Matches, Differs, Unknown, Unreadable);

impl Asked {
    fn of(facts: &Facts) -> Self {
        Self {
            persona: facts.persona.clone(),
            lane: facts.lane.clone(),
            session: facts.session.clone(),
            server: facts.server.clone(),
            server_identity: facts.server_identity.clone(),
            kind: facts.kind.into(),
            name: facts.name.clone(),
            label: facts.label.clone(),
            has_capabilities: facts.has_capabilities,
            matched_allow: facts.matched_allow.clone(),
            matched_approval: facts.matched_approval.clone(),
            auto_approved: facts.auto_approved,
            host_escape: facts.host_escape,
            digest: facts.digest.clone(),
            pin: facts.pin.into(),
            surface_pin: facts.surface_pin.into(),
            read_only_hint: facts.read_only_hint,
            destructive_hint: facts.destructive_hint,
        }
    }

    fn facts(self, definition: Option<Document>, document: Option<Document>) -> Facts {
        // New facts of the host's have their default in documents that were recorded before them.
        #[allow(clippy::needless_update)]
        Facts {
            persona: self.persona,
            lane: self.lane,
            session: self.session,
            server: self.server,
            server_identity: self.server_identity,
            kind: self.kind.into(),
            name: self.name,
            label: self.label,
            has_capabilities: self.has_capabilities,
            matched_allow: self.matched_allow,
            matched_approval: self.matched_approval,
            auto_approved: self.auto_approved,
            host_escape: self.host_escape,
            digest: self.digest,
            pin: self.pin.into(),
            surface_pin: self.surface_pin.into(),
            read_only_hint: self.read_only_hint,
            destructive_hint: self.destructive_hint,
            definition,
            document,
            ..Facts::default()
        }
    }
}
