//! The rule for names of servers (design 9a).
//!
//! A server's name becomes part of exposed names, labels, file names and URLs, so it is plain:
//! no separator of any of them, and nothing a file system treats specially (SE-09).

/// Longest name of a server in characters.
pub const MAX_SERVER_NAME: usize = 64;

/// The name and, with a `.`, `-` or `_` behind it, the prefix of what Toolgate itself serves.
const RESERVED: &str = "toolgate";

/// Names of devices on Windows, whatever extension follows.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// Why a text cannot name a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is there.
    #[error("a server needs a name")]
    Empty,
    /// The name is longer than [`MAX_SERVER_NAME`].
    #[error("the name of a server may have {MAX_SERVER_NAME} characters, and this one has {0}")]
    TooLong(usize),
    /// The first character is neither a letter nor a digit.
    #[error("the name of a server must begin with a letter or digit, not with `{}`", .0.escape_debug())]
    Start(char),
    /// A character is none of `A-Z a-z 0-9 . _ -`.
    #[error("the name of a server may hold letters, digits, `.`, `_` and `-`, not `{}`", .0.escape_debug())]
    Character(char),
    /// The name holds `__`, which separates server and tool in exposed names.
    #[error("the name of a server must not hold `__`, which separates it from its tools")]
    Separator,
    /// The name belongs to Toolgate's own servers or to the operating system.
    #[error("the name `{0}` is reserved; choose another")]
    Reserved(String),
}

/// Checks `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`, no `__`, no reserved prefix. That no two names
/// differ only in case is checked by whoever knows all of them.
pub fn check_server_name(name: &str) -> Result<(), NameError> {
    let first = name.chars().next().ok_or(NameError::Empty)?;
    let length = name.chars().count();
    if length > MAX_SERVER_NAME {
        return Err(NameError::TooLong(length));
    }
    if !first.is_ascii_alphanumeric() {
        return Err(NameError::Start(first));
    }
    let odd = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
    if let Some(character) = name.chars().find(odd) {
        return Err(NameError::Character(character));
    }
    if name.contains("__") {
        return Err(NameError::Separator);
    }
    if is_reserved(&name.to_ascii_lowercase()) {
        return Err(NameError::Reserved(name.to_owned()));
    }
    Ok(())
}

fn is_reserved(lowercase: &str) -> bool {
    let ours = lowercase
        .strip_prefix(RESERVED)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '-', '_']));
    let stem = lowercase.split('.').next().unwrap_or_default();
    let numbered = |prefix: &str| {
        stem.strip_prefix(prefix)
            .is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| b.is_ascii_digit()))
    };
    ours || DEVICES.contains(&stem) || numbered("com") || numbered("lpt")
}

#[cfg(test)]
mod tests;
