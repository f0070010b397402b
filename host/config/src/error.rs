//! What can be wrong with a configuration, and how it is told.
//!
//! Contract: a message says in which file, at which line and column, under which key, what is wrong
//! and what to do. It never repeats a value that may be a secret: values are shown only for keys
//! with a closed list of choices, bounded and escaped, and as they stand in the file (a template,
//! not what a variable expanded to). No line beside the error is printed.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use toolgate_base::display::escape;
use toolgate_base::lock::LockError;

/// Why there is no configuration. All of these are usage errors (exit code 2 of the CLI).
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text of a file is wrong: everything that was found, in the order of the file.
    #[error("{}", list(.0))]
    Invalid(Vec<Problem>),
    /// A file that somebody named is not there.
    #[error("{named_by} names the configuration {}, which does not exist; create it, or drop {named_by}", .path.display())]
    NotFound {
        /// The file.
        path: PathBuf,
        /// `--config` or `$TOOLGATE_CONFIG`.
        named_by: &'static str,
    },
    /// A file or directory cannot be read or written.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried: `read`, `write`, `look at`.
        doing: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A configuration, secret or data directory that somebody else could change.
    #[error(
        "{} can be changed by other users of this machine, so it is not used; make it yours alone \
         (chown it to yourself; chmod go-w it and the directory it is in)",
        .path.display()
    )]
    WritableByOthers {
        /// The file or directory.
        path: PathBuf,
    },
    /// `./toolgate.yaml` was trusted once and is now another.
    #[error(
        "{} changed after it was trusted ({what}); read the change, then run `toolgate config trust {}`, \
         or name another file with --config",
        .path.display(), .path.display()
    )]
    ChangedAfterTrust {
        /// The configuration file.
        path: PathBuf,
        /// Which of the files changed.
        what: &'static str,
    },
    /// A file is larger than anything that is meant here.
    #[error("{} has {bytes} bytes and at most {limit} are read; this is not a Toolgate configuration", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit for files of its kind.
        limit: u64,
    },
    /// A file that Toolgate wrote is damaged or of a newer format.
    #[error("{} {what}", .path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        what: String,
    },
    /// Neither a home directory nor an XDG variable says where files belong.
    #[error("no home directory: set HOME, or {variable} to an absolute path")]
    NoHome {
        /// The variable that would do.
        variable: &'static str,
    },
    /// What was to be written is not allowed.
    #[error("{0}")]
    Refused(String),
    /// Another process holds the lock of a directory.
    #[error(transparent)]
    Lock(#[from] LockError),
}

impl ConfigError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { doing, path: path.to_owned(), source }
    }
}

fn list(problems: &[Problem]) -> String {
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// From 1; 0 where no line is known.
    pub line: u64,
    /// From 1, in characters; 0 where unknown.
    pub column: u64,
    /// The path of keys, such as `servers.github.args[0]`; empty at the top.
    pub key: String,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.file.display())?;
        if self.line > 0 {
            write!(formatter, ":{}:{}", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(formatter, ": {}", self.key)?;
        }
        Ok(())
    }
}

/// One mistake in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.place, self.what)?;
        if !self.fix.is_empty() {
            write!(formatter, "; {}", self.fix)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something was understood in a way worth knowing.
    Info,
    /// Something may not do what was meant.
    Warning,
    /// A part of the managed layer could not be used; the rest was.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Something the operator should know although the configuration loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How much it matters.
    pub level: Level,
    /// Where, if at one place.
    pub place: Option<Place>,
    /// What, and what to do.
    pub text: String,
}

impl Notice {
    pub(crate) fn new(level: Level, place: Option<Place>, text: impl Into<String>) -> Self {
        Self { level, place, text: text.into() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some(place) => write!(formatter, "{}: {place}: {}", self.level, self.text),
            None => write!(formatter, "{}: {}", self.level, self.text),
        }
    }
}

/// A key or a choice as it may stand in a message: escaped, and cut after 60 characters.
pub(crate) fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    let escaped = escape(text);
    let mut shown: String = escaped.chars().take(LONGEST).collect();
    if escaped.chars().count() > LONGEST {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The one of `choices` that whoever wrote `text` may have meant, or nothing where none is near: at most one
/// slip more than a quarter of its characters, whatever the case.
pub fn nearest<'a>(text: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = text.to_lowercase();
    choices
        .into_iter()
        .map(|choice| (strsim::damerau_levenshtein(&lower, &choice.to_lowercase()), choice))
        .filter(|(distance, choice)| *distance <= 1 + choice.chars().count() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, choice)| choice)
}
