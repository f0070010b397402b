//! YAML (and JSON, which is YAML) as a tree that remembers where each value stood.
//!
//! Contract: [`parse`] is strict. One document; no duplicate key; only `true` and `false` are
//! booleans (a bare `on` is text); no unknown tag; no infinity; 64 levels; aliases are bounded by
//! the parser's budget. Numbers keep the text they were written with, because `1.10` as the value
//! of a variable is not `1.1`.
//!
//! Threat: the parser's own messages can show the lines around an error, and such a line may hold a
//! secret. Snippets are off, and every message is made here from the kind of error alone.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use serde_saphyr::{Error, Spanned};
use toolgate_base::Secret;

use crate::error::quoted;

#[cfg(test)]
mod tests;

/// Deepest nesting of lists and maps.
const MAX_DEPTH: usize = 64;

/// A value and the place it starts.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// The number, and its text in the file.
    Number(Number, String),
    Text(Text),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A text, after expansion.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) value: String,
    /// As it stands in the file, where a variable was expanded in it.
    pub(crate) template: Option<String>,
    /// Variables in it that have no value, or an empty one.
    pub(crate) missing: Vec<String>,
    /// What the variables in it held, but for those that say where things are.
    pub(crate) held: Vec<Secret>,
}

impl Node {
    /// What the variables of every text in it held.
    pub(crate) fn held(&self) -> Vec<Secret> {
        match &self.value {
            Value::Text(text) => text.held.clone(),
            Value::List(items) => items.iter().flat_map(Self::held).collect(),
            Value::Map(entries) => entries.iter().flat_map(|(_, node)| node.held()).collect(),
            Value::Null | Value::Bool(_) | Value::Number(..) => Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Why a text is no YAML, without a word of the text itself beyond a duplicate key.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) what: String,
    pub(crate) fix: &'static str,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// Parses one document. An empty one is `Null`.
pub(crate) fn parse(source: &str) -> Result<Node, SyntaxError> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: MAX_DEPTH },
    };
    let raw: Spanned<Raw> =
        serde_saphyr::from_str_with_options(source, options).map_err(|error| explain(&error))?;
    Ok(place(raw, source))
}

impl Node {
    /// What kind of value this is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(..) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// The value as JSON, with variables expanded or as templates.
    pub(crate) fn to_json(&self, expanded: bool) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(flag) => (*flag).into(),
            Value::Number(number, _) => serde_json::Value::Number(number.clone()),
            Value::Text(text) => match &text.template {
                Some(template) if !expanded => template.clone().into(),
                _ => text.value.clone().into(),
            },
            Value::List(items) => items.iter().map(|item| item.to_json(expanded)).collect(),
            Value::Map(entries) => entries
                .iter()
                .map(|(key, value)| (key.text.clone(), value.to_json(expanded)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }
}

/// What serde sees: places come with [`Spanned`], the text of numbers from the place afterwards.
enum Raw {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<Raw>>),
    Map(Vec<(Spanned<String>, Spanned<Raw>)>),
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_none<E>(self) -> Result<Raw, E> {
        Ok(Raw::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        Raw::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Raw, E> {
        Ok(Raw::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Raw, E> {
        Ok(Raw::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Raw, E> {
        Number::from_f64(value).map(Raw::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Raw, E> {
        Ok(Raw::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Raw, E> {
        Ok(Raw::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Raw, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Raw::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut entries: Vec<(Spanned<String>, Spanned<Raw>)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<Raw>>()? {
            // The parser compares keys itself; this holds where two spellings become one text.
            if entries.iter().any(|(known, _)| known.value == key.value) {
                return Err(A::Error::custom("a key is here twice"));
            }
            entries.push((key, value));
        }
        Ok(Raw::Map(entries))
    }
}

fn place(raw: Spanned<Raw>, source: &str) -> Node {
    let at = raw.referenced;
    let span = raw.defined.span();
    let written = || -> Option<String> {
        let start = usize::try_from(span.byte_offset()?).ok()?;
        let length = usize::try_from(span.byte_len()?).ok()?;
        let text = source.get(start..start.checked_add(length)?)?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let value = match raw.value {
        Raw::Null => Value::Null,
        Raw::Bool(flag) => Value::Bool(flag),
        Raw::Number(number) => {
            let text = written().unwrap_or_else(|| number.to_string());
            Value::Number(number, text)
        }
        Raw::Text(value) => Value::Text(Text { value, ..Text::default() }),
        Raw::List(items) => Value::List(items.into_iter().map(|item| place(item, source)).collect()),
        Raw::Map(entries) => Value::Map(
            entries
                .into_iter()
                .map(|(key, value)| {
                    let (line, column) = (key.referenced.line(), key.referenced.column());
                    (Key { text: key.value, line, column }, place(value, source))
                })
                .collect(),
        ),
    };
    Node { value, line: at.line(), column: at.column() }
}

fn explain(error: &Error) -> SyntaxError {
    let error = error.without_snippet();
    if let Error::AliasError { error, .. } = error {
        return explain(error);
    }
    let (line, column) = error.location().map_or((0, 0), |at| (at.line(), at.column()));
    let (what, fix) = match error {
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("the key {} is here twice", quoted(key)), "keep one of the two")
        }
        Error::DuplicateMappingKey { .. } => ("a key is here twice".to_owned(), "keep one of the two"),
        Error::UnknownAnchor { .. } => (
            "an alias (`*name`) without its anchor (`&name`)".to_owned(),
            "write text that starts with * in quotes",
        ),
        Error::NonFiniteFloat { .. } => {
            ("a number without an end".to_owned(), "write it in quotes if it is text")
        }
        Error::MultipleDocuments { .. } => {
            ("a second document (`---`)".to_owned(), "keep one document in a file")
        }
        Error::NullIntoString { .. } => {
            ("a key that is nothing".to_owned(), "give the key a name, or quote it")
        }
        Error::UnsupportedTag { .. } => {
            ("a YAML tag (`!name`)".to_owned(), "tags have no meaning here; remove it")
        }
        Error::Budget { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => (
            "the file is nested too deep or repeats itself too often".to_owned(),
            "no more than 64 levels are read",
        ),
        Error::Eof { .. } => {
            ("the file ends in the middle of a value".to_owned(), "close what was opened above")
        }
        _ => (
            "this is not YAML".to_owned(),
            "look for a wrong indentation, an unclosed quote or bracket, or text that must be quoted",
        ),
    };
    SyntaxError { what, fix, line, column }
}
