//! Labels and the patterns that cover them.
//!
//! ```text
//! label   = domain "." action [ ":" scope ]
//! pattern = domain "." action [ ":" ( scope | "*" | server "/*" ) ]
//! domain, action = a lowercase letter, then lowercase letters, digits, "-", "_"
//! scope   = name | server "/" tool      any characters but "*" and controls; no empty part
//! ```
//!
//! The server ends at the first `/`; a tool's name may hold more of them. Comparison is by
//! bytes: nothing is folded, trimmed or normalised, because a lossy comparison lets one tool
//! inherit what another was granted (SE-14).
//!
//! Threat: a grant that covers more than it says. So the scope always counts (FT-06), a wildcard
//! stands only for a whole scope or a whole tool, a name covers neither its prefixes nor its
//! extensions (CAP-021), and text that does not parse is an error, never skipped (FT-12).

use std::fmt;
use std::str::FromStr;

/// Longest label or pattern in bytes.
pub const MAX_LABEL: usize = 8 * 1024;

/// The domain in which a scope without a tool names a server and stands for all its tools.
const SERVER_DOMAIN: &str = "mcp";

/// Why a text is no label or no pattern. The text itself is not repeated when it is hostile in
/// length or characters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// There is no dot between domain and action, or more than one.
    #[error("`{0}` is no capability label: write `domain.action` or `domain.action:scope`")]
    Shape(String),
    /// Domain or action has other characters than lowercase letters, digits, `-` and `_`.
    #[error(
        "`{0}` cannot be a domain or an action: begin with a lowercase letter and use lowercase letters, digits, `-` and `_`"
    )]
    Word(String),
    /// The scope, the server or the tool is empty.
    #[error("the scope of a capability label, and each side of its `/`, must not be empty")]
    EmptyScope,
    /// A `*` stands where it is not a whole scope or a whole tool.
    #[error(
        "`*` may only be a whole scope (`mcp.call:*`) or a whole tool (`mcp.call:server/*`), and only in a list of capabilities"
    )]
    Wildcard,
    /// The scope holds a control character.
    #[error("the scope of a capability label holds the control character U+{0:04X}")]
    Control(u32),
    /// The text is longer than [`MAX_LABEL`].
    #[error("a capability label may be {MAX_LABEL} bytes long, and this one has {0}")]
    TooLong(usize),
}

/// What somebody is about to do, as `domain.action:scope`. Holds no wildcard.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    text: String,
    parts: Parts,
}

/// Where the parts of a label end, in bytes of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Parts {
    domain_end: usize,
    action_end: usize,
}

impl Label {
    /// Reads a label. A `*` in it is an error: what is being done is never a pattern.
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let parts = split(text)?;
        let label = Self { text: text.to_owned(), parts };
        match label.scope() {
            Some(scope) if scope.contains('*') => Err(LabelError::Wildcard),
            Some(scope) => check_scope(scope).map(|()| label),
            None => Ok(label),
        }
    }

    /// Puts a label together. `scope` is a name, or `server/tool`; empty means no scope.
    pub fn new(domain: &str, action: &str, scope: &str) -> Result<Self, LabelError> {
        // A dot or a colon inside a word would shift the borders of the parts.
        check_word(domain)?;
        check_word(action)?;
        if scope.is_empty() {
            Self::parse(&format!("{domain}.{action}"))
        } else {
            Self::parse(&format!("{domain}.{action}:{scope}"))
        }
    }

    /// The label for one thing of one server, as `mcp.call:github/create_issue`. The server's name
    /// must hold no `/`, or another server could be named by it.
    pub fn for_server(action: &str, server: &str, tool: &str) -> Result<Self, LabelError> {
        if server.contains('/') {
            return Err(LabelError::Shape(format!("{SERVER_DOMAIN}.{action}")));
        }
        Self::new(SERVER_DOMAIN, action, &format!("{server}/{tool}"))
    }

    /// The text of the label.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part before the dot.
    pub fn domain(&self) -> &str {
        self.text.get(..self.parts.domain_end).unwrap_or_default()
    }

    /// The part between dot and colon.
    pub fn action(&self) -> &str {
        self.text.get(self.parts.domain_end + 1..self.parts.action_end).unwrap_or_default()
    }

    /// The part after the colon.
    pub fn scope(&self) -> Option<&str> {
        self.text.get(self.parts.action_end + 1..)
    }
}

/// One entry of a persona's lists: a label, or a set of labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern {
    text: String,
    parts: Parts,
}

/// What the scope of a pattern stands for.
enum Reach<'a> {
    /// A label without a scope.
    Nothing,
    /// Any scope.
    Everything,
    /// Any tool of this server.
    ToolsOf(&'a str),
    /// This scope.
    Exactly(&'a str),
}

impl Pattern {
    /// Reads a pattern. An error here is an error of the configuration, never an entry to skip (FT-12).
    pub fn parse(text: &str) -> Result<Self, LabelError> {
        let parts = split(text)?;
        let pattern = Self { text: text.to_owned(), parts };
        match pattern.reach() {
            Reach::Nothing | Reach::Everything => Ok(pattern),
            Reach::ToolsOf(name) | Reach::Exactly(name) if name.contains('*') => Err(LabelError::Wildcard),
            Reach::ToolsOf(name) | Reach::Exactly(name) => check_scope(name).map(|()| pattern),
        }
    }

    /// Whether `label` is among what this pattern stands for.
    ///
    /// Domain and action must be equal. Then: no scope covers only a label without one; `*` covers
    /// any scope (CAP-020); `server/*` covers every tool of that server; a name covers exactly that
    /// name (CAP-021), and in the domain `mcp` also every tool of the server of that name.
    pub fn covers(&self, label: &Label) -> bool {
        let same_deed = self.text.get(..self.parts.action_end) == label.text.get(..label.parts.action_end);
        same_deed
            && match (self.reach(), label.scope()) {
                (Reach::Nothing, None) | (Reach::Everything, Some(_)) => true,
                (Reach::ToolsOf(server), Some(scope)) => is_tool_of(server, scope),
                (Reach::Exactly(name), Some(scope)) => {
                    scope == name || label.domain() == SERVER_DOMAIN && is_tool_of(name, scope)
                }
                _ => false,
            }
    }

    /// The server that it is about, as it is written; `None` where it is about all, or about no server.
    pub fn server(&self) -> Option<&str> {
        if self.text.get(..self.parts.domain_end) != Some(SERVER_DOMAIN) {
            return None;
        }
        match self.reach() {
            Reach::Nothing | Reach::Everything => None,
            Reach::ToolsOf(server) => Some(server),
            Reach::Exactly(scope) => Some(scope.split_once('/').map_or(scope, |(server, _)| server)),
        }
    }

    /// The text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn reach(&self) -> Reach<'_> {
        match self.text.get(self.parts.action_end + 1..) {
            None => Reach::Nothing,
            Some("*") => Reach::Everything,
            Some(scope) => match scope.strip_suffix("/*") {
                // Only the first slash ends a server, so `a/b/*` is no whole tool.
                Some(server) if !server.contains('/') => Reach::ToolsOf(server),
                _ => Reach::Exactly(scope),
            },
        }
    }
}

fn is_tool_of(server: &str, scope: &str) -> bool {
    scope.split_once('/').is_some_and(|(owner, _)| owner == server)
}

/// Finds the parts of `domain.action[:scope]` and checks the two words.
fn split(text: &str) -> Result<Parts, LabelError> {
    if text.len() > MAX_LABEL {
        return Err(LabelError::TooLong(text.len()));
    }
    let action_end = text.find(':').unwrap_or(text.len());
    let deed = text.get(..action_end).unwrap_or_default();
    let (domain, action) = deed.split_once('.').ok_or_else(|| LabelError::Shape(quoted(deed)))?;
    if action.contains('.') {
        return Err(LabelError::Shape(quoted(deed)));
    }
    check_word(domain)?;
    check_word(action)?;
    Ok(Parts { domain_end: domain.len(), action_end })
}

fn check_word(word: &str) -> Result<(), LabelError> {
    let mut bytes = word.bytes();
    let starts_well = bytes.next().is_some_and(|first| first.is_ascii_lowercase());
    if starts_well && bytes.all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_')) {
        Ok(())
    } else {
        Err(LabelError::Word(quoted(word)))
    }
}

/// A scope without a wildcard: no control characters, no empty side of its first slash.
fn check_scope(scope: &str) -> Result<(), LabelError> {
    if let Some(control) = scope.chars().find(|c| c.is_control()) {
        return Err(LabelError::Control(u32::from(control)));
    }
    let (first, rest) = scope.split_once('/').unwrap_or((scope, "-"));
    if first.is_empty() || rest.is_empty() {
        return Err(LabelError::EmptyScope);
    }
    Ok(())
}

/// A piece of the text for a message: short, and without characters a terminal would obey.
fn quoted(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

macro_rules! as_text {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.text)
            }
        }

        impl FromStr for $type {
            type Err = LabelError;

            fn from_str(text: &str) -> Result<Self, LabelError> {
                Self::parse(text)
            }
        }
    };
}

as_text!(Label);
as_text!(Pattern);

#[cfg(test)]
mod tests;
