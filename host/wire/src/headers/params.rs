//! `x-mcp-header`: which arguments a tool wants repeated as headers.

use super::{MAX_SCHEMA_DEPTH, encode_value};
use crate::{edit, json};

/// Largest integer a double holds without loss; larger ones may not be repeated.
const SAFE: i64 = (1 << 53) - 1;

/// One annotated parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParamHeader {
    /// The header's full name, as the schema spells its last part: `Mcp-Param-Region`.
    pub header: String,
    /// RFC 6901 pointer of the argument inside `arguments`.
    pub pointer: String,
    /// What the schema says it is.
    pub kind: ParamKind,
}

/// Types that may be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    /// A string.
    String,
    /// An integer within what a double holds.
    Integer,
    /// `true` or `false`.
    Boolean,
}

/// An annotation that breaks the rules. The server is at fault; over HTTP its tool must be dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaHeaderError {
    /// The schema is not the JSON it was taken for.
    #[error("the input schema is no JSON object")]
    NotAnObject,
    /// The annotation is no string, is empty, or is no header token (RFC 9110, 5.6.2).
    #[error("x-mcp-header at {0:?} is no header name")]
    BadName(String),
    /// Two annotations name the same header.
    #[error("x-mcp-header {0:?} is used twice in one schema")]
    Duplicate(String),
    /// The annotated parameter is no string, integer or boolean.
    #[error("x-mcp-header at {0:?} annotates a parameter that is no string, integer or boolean")]
    BadType(String),
    /// The annotation stands where no chain of `properties` leads.
    #[error("x-mcp-header at {0:?} is not reached through properties alone")]
    Unreachable(String),
    /// The schema is nested deeper than the door admits.
    #[error("the input schema is nested deeper than 64 levels")]
    TooDeep,
}

/// The annotated parameters of an input schema. An error means that the tool must not be offered over HTTP.
pub fn annotations(input_schema: &str) -> Result<Vec<ParamHeader>, SchemaHeaderError> {
    // Nearly no schema has one, and looking for the word is much cheaper than a walk. An escape could spell it
    // otherwise, so a schema with escapes is always walked.
    if !input_schema.contains("x-mcp-header") && !input_schema.contains("\\u") {
        return Ok(Vec::new());
    }
    if !input_schema.starts_with('{') {
        return Err(SchemaHeaderError::NotAnObject);
    }
    let mut found = Vec::new();
    walk(input_schema, Some(""), "", 0, &mut found)?;
    let mut names: Vec<_> = found.iter().map(|it| it.header.to_ascii_lowercase()).collect();
    names.sort_unstable();
    for pair in names.windows(2) {
        if let [first, second] = pair
            && first == second
        {
            return Err(SchemaHeaderError::Duplicate(first.clone()));
        }
    }
    Ok(found)
}

/// The `Mcp-Param-*` headers of a call, encoded. An argument that is absent, `null`, or not of the annotated type has
/// no header: the server judges the body by its schema.
pub fn param_headers(
    input_schema: &str,
    arguments: &str,
) -> Result<Vec<(String, String)>, SchemaHeaderError> {
    let mut headers = Vec::new();
    for param in annotations(input_schema)? {
        if let Some(value) = edit::get(arguments, &param.pointer).and_then(|raw| param.kind.text(raw)) {
            headers.push((param.header, encode_value(&value)));
        }
    }
    Ok(headers)
}

impl ParamKind {
    /// The text that stands for an argument in a header, before encoding.
    pub(super) fn text(self, raw: &str) -> Option<String> {
        match self {
            Self::String => edit::string(raw),
            Self::Boolean => matches!(raw, "true" | "false").then(|| raw.to_owned()),
            Self::Integer => integer(raw).map(|number| number.to_string()),
        }
    }
}

/// An integer in any spelling JSON has for it (`42`, `42.0`, `4.2e1`), within what a double holds.
pub(super) fn integer(raw: &str) -> Option<i64> {
    if let Ok(number) = raw.parse::<i64>() {
        return (-SAFE..=SAFE).contains(&number).then_some(number);
    }
    let number =
        raw.parse::<f64>().ok().filter(|_| raw.starts_with(|c: char| c == '-' || c.is_ascii_digit()))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "checked: whole and within 2^53"
    )]
    (number.fract() == 0.0 && number.abs() <= SAFE as f64).then_some(number as i64)
}

/// Walks a schema, or what stands where one may stand: a list of them, `true`, a name. `argument` is the pointer of
/// the argument it describes, `None` where no chain of `properties` leads here; `place` is its own pointer.
fn walk(
    text: &str,
    argument: Option<&str>,
    place: &str,
    depth: usize,
    found: &mut Vec<ParamHeader>,
) -> Result<(), SchemaHeaderError> {
    if depth > MAX_SCHEMA_DEPTH {
        return Err(SchemaHeaderError::TooDeep);
    }
    if text.starts_with('[') {
        for (position, element) in edit::elements(text).unwrap_or_default().into_iter().enumerate() {
            walk(element, None, &format!("{place}/{position}"), depth + 1, found)?;
        }
        return Ok(());
    }
    if !text.starts_with('{') {
        return Ok(());
    }
    for (key, value) in &edit::members(text).map_err(|_| SchemaHeaderError::NotAnObject)? {
        let at = format!("{place}/{}", token(key));
        match key.as_str() {
            "x-mcp-header" => found.push(annotation(text, value, argument, place)?),
            "properties" => named(value, argument, &at, depth, found)?,
            // Keys of these are names a server chose, not keywords.
            "$defs" | "definitions" | "patternProperties" | "dependentSchemas" | "dependencies" => {
                named(value, None, &at, depth, found)?;
            }
            // Data, not schemas: it may hold any key.
            "default" | "const" | "enum" | "examples" | "required" | "dependentRequired" => {}
            _ => walk(value, None, &at, depth + 1, found)?,
        }
    }
    Ok(())
}

/// Walks a map from names to schemas; `argument` is the pointer of the object whose members the names are.
fn named(
    map: &str,
    argument: Option<&str>,
    place: &str,
    depth: usize,
    found: &mut Vec<ParamHeader>,
) -> Result<(), SchemaHeaderError> {
    for (name, value) in edit::members(map).unwrap_or_default() {
        let argument = argument.map(|argument| format!("{argument}/{}", token(&name)));
        walk(value, argument.as_deref(), &format!("{place}/{}", token(&name)), depth + 1, found)?;
    }
    Ok(())
}

fn annotation(
    schema: &str,
    value: &str,
    argument: Option<&str>,
    place: &str,
) -> Result<ParamHeader, SchemaHeaderError> {
    let name = edit::string(value).filter(|name| is_token(name));
    let name = name.ok_or_else(|| SchemaHeaderError::BadName(place.to_owned()))?;
    let pointer = argument.filter(|argument| !argument.is_empty());
    let pointer = pointer.ok_or_else(|| SchemaHeaderError::Unreachable(place.to_owned()))?;
    let kind = match edit::get(schema, "/type").and_then(json::string).as_deref() {
        Some("string") => ParamKind::String,
        Some("integer") => ParamKind::Integer,
        Some("boolean") => ParamKind::Boolean,
        _ => return Err(SchemaHeaderError::BadType(place.to_owned())),
    };
    Ok(ParamHeader { header: format!("Mcp-Param-{name}"), pointer: pointer.to_owned(), kind })
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

fn token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
