//! What every installer has to get right and none should work out again: how packages are started, what a
//! server is called, how an id stands in a URL. Functions over plain values.
//!
//! A command names a package in exactly one version, so that what was reviewed is what is started.

use crate::Error;
use crate::installer::{CommandLine, Value};

/// Longest description that is worth showing, characters.
pub const MAX_DESCRIPTION: usize = 1_500;
/// The repository whose directories are packages of npm.
const REFERENCE: &str = "modelcontextprotocol/servers";
/// What servers call themselves beside their name.
const PREFIXES: [&str; 4] = ["mcp-server-", "server-", "mcp-", "mcp_"];
const SUFFIXES: [&str; 4] = ["-mcp-server", "-mcp", "_mcp", "-server"];

/// Where a package comes from, which says what starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Package {
    /// npm, by `npx`.
    Npm,
    /// `PyPI`, by `uvx`.
    PyPi,
    /// An image of a container, by `docker`.
    Image,
    /// `NuGet`, by `dnx`.
    NuGet,
}

impl Package {
    /// The program that it needs on the machine.
    pub fn runtime(self) -> &'static str {
        match self {
            Self::Npm => "npx",
            Self::PyPi => "uvx",
            Self::Image => "docker",
            Self::NuGet => "dnx",
        }
    }

    /// The command that starts a package in one version, with what follows it.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that is none, or a version that means another one tomorrow.
    ///
    /// ```
    /// use toolgate_sdk::launch::Package;
    /// let started = Package::Npm.command("@acme/notes", "1.2.3", &["--stdio"]).unwrap();
    /// assert_eq!((started.program.as_str(), started.arguments.len()), ("npx", 3));
    /// assert!(Package::Npm.command("@acme/notes", "latest", &[]).is_err());
    /// ```
    pub fn command(self, name: &str, version: &str, arguments: &[&str]) -> Result<CommandLine, Error> {
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            return Err(Error::Invalid(format!("`{name}` is no name of a package")));
        }
        if !is_exact(version) {
            return Err(Error::Invalid(format!(
                "`{name}` has to be started in exactly one version, and `{version}` is none"
            )));
        }
        let words: Vec<String> = match self {
            Self::Npm => vec!["-y".to_owned(), format!("{name}@{version}")],
            Self::PyPi => vec![format!("{name}=={version}")],
            Self::Image => {
                let between = if version.starts_with("sha256:") { '@' } else { ':' };
                ["run", "--rm", "-i"]
                    .map(str::to_owned)
                    .into_iter()
                    .chain([format!("{name}{between}{version}")])
                    .collect()
            }
            Self::NuGet => vec![format!("{name}@{version}"), "--yes".to_owned()],
        };
        let rest = arguments.iter().map(|word| (*word).to_owned());
        Ok(CommandLine {
            program: self.runtime().to_owned(),
            arguments: words.into_iter().chain(rest).map(Value::Literal).collect(),
            environment: Vec::new(),
        })
    }
}

/// The package of npm that a directory of the reference servers is, from the path of a repository as
/// `modelcontextprotocol/servers/src/filesystem`.
///
/// # Errors
/// [`Error::NotFound`] for every other repository: nobody says how it is started.
pub fn reference_package(repository: &str) -> Result<String, Error> {
    let path = repository.trim_start_matches("https://github.com/");
    let directory = path.strip_prefix(REFERENCE).and_then(|rest| rest.strip_prefix("/src/"));
    match directory.map(|directory| directory.trim_end_matches('/')) {
        Some(name) if is_plain(name) => Ok(format!("@modelcontextprotocol/server-{name}")),
        _ => Err(Error::NotFound(format!(
            "how `{repository}` is started is not known; only {REFERENCE}/src/NAME is. Name its package instead, as npm:NAME or pypi:NAME"
        ))),
    }
}

/// An id as one segment of a path: `io.github.acme/notes` has a slash that separates nothing.
///
/// ```
/// assert_eq!(toolgate_sdk::launch::segment("io.github.acme/notes"), "io.github.acme%2Fnotes");
/// ```
pub fn segment(id: &str) -> String {
    let mut written = String::with_capacity(id.len());
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            written.push(char::from(byte));
        } else {
            written.push('%');
            for half in [byte >> 4, byte & 15] {
                written.push(char::from_digit(u32::from(half), 16).unwrap_or_default().to_ascii_uppercase());
            }
        }
    }
    written
}

/// A name for a server from its id or its package: the last part, without what says only that it is a server.
pub fn server_name(id: &str) -> String {
    let last = id.rsplit('/').next().unwrap_or(id);
    let kept: String =
        last.chars().filter(|letter| letter.is_ascii_alphanumeric() || "._-".contains(*letter)).collect();
    let begins = |text: &str| text.starts_with(|first: char| first.is_ascii_alphanumeric());
    let mut name = kept.trim_start_matches(['.', '_', '-']);
    if let Some(rest) =
        PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).filter(|rest| begins(rest))
    {
        name = rest;
    }
    if let Some(rest) =
        SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)).filter(|rest| begins(rest))
    {
        name = rest;
    }
    // Two underscores part the server from the tool in the names that clients see.
    let mut name = name.to_owned();
    while name.contains("__") {
        name = name.replace("__", "_");
    }
    name.truncate(64);
    if name.is_empty() { "server".to_owned() } else { name }
}

/// The name, or the name with a number, so that it is none of these.
pub fn named_apart(name: &str, taken: &[&str]) -> String {
    let is_taken = |name: &str| taken.iter().any(|other| other.eq_ignore_ascii_case(name));
    if !is_taken(name) {
        return name.to_owned();
    }
    let numbered = |number: usize| format!("{name}-{number}");
    (2..=taken.len() + 2).map(numbered).find(|name| !is_taken(name)).unwrap_or_default()
}

/// What to say about an id that a source does not have, with the two ways on.
pub fn not_found(id: &str, source: &str) -> Error {
    Error::NotFound(format!(
        "`{id}` is not in {source}; search it by a word, or name the package itself, as npm:NAME or pypi:NAME"
    ))
}

/// A description as it is worth showing: one line, at most [`MAX_DESCRIPTION`] characters.
pub fn description(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_DESCRIPTION {
        return line;
    }
    line.chars().take(MAX_DESCRIPTION - 1).chain(['…']).collect()
}

/// Which of several entries of one server is the newest: the one that its source marks so, else the one with
/// the highest version; a version that is none counts least.
pub fn newest<'a>(entries: impl IntoIterator<Item = (&'a str, bool)>) -> Option<&'a str> {
    let key = |(version, marked): &(&str, bool)| (*marked, order(version));
    entries.into_iter().max_by(|left, right| key(left).cmp(&key(right))).map(|(version, _)| version)
}

/// What versions are compared by: their numbers, then that a release comes after what was before it, then the
/// parts of that, numbers below words (semver 2.0.0, section 11).
type Order = (Vec<u64>, bool, Vec<(bool, u64, String)>);

fn order(version: &str) -> Order {
    let plain = version.split('+').next().unwrap_or_default();
    let (numbers, before) = plain.split_once('-').map_or((plain, None), |(first, rest)| (first, Some(rest)));
    let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
    let parts = before.into_iter().flat_map(|before| before.split('.')).map(|part| match part.parse() {
        Ok(number) => (false, number, String::new()),
        Err(_) => (true, 0, part.to_owned()),
    });
    (numbers.unwrap_or_default(), before.is_none(), parts.collect())
}

/// A version that is the same one tomorrow: it begins with a digit, or is a digest.
fn is_exact(version: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_:".contains(&byte);
    let named = version.starts_with(|first: char| first.is_ascii_digit()) || version.starts_with("sha256:");
    named && version.bytes().all(plain) && !version.split('.').any(|part| matches!(part, "x" | "X" | ""))
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

#[cfg(test)]
mod tests;
