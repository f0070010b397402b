//! Which configuration counts (design, section 6).
//!
//! Contract, first match wins:
//! 1. the file `--config` names;
//! 2. the file `$TOOLGATE_CONFIG` names;
//! 3. `./toolgate.yaml`, but only if `toolgate config trust` recorded its digest (and that of the
//!    `.env` beside it) and neither changed since; untrusted, it is named in a notice and not used;
//! 4. `toolgate/toolgate.yaml` in the user's configuration directory (`$XDG_CONFIG_HOME`, or
//!    `~/.config`);
//! 5. none, which is fine: every default, and the persona `default`.
//!
//! A trusted `./toolgate.yaml` stands before the user's own file, because to trust it was to say that
//! it is meant in this directory; changed after that, it is an error and never skipped, so that a
//! change in a repository cannot silently swap one configuration for another.
//!
//! Threat: the working directory belongs to a stranger. What is judged here is what is loaded: the
//! text is read once and kept in [`Found`].

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toolgate_base::Secret;
use toolgate_base::files::is_writable_by_others;

use crate::envfile;
use crate::error::{ConfigError, Level, Notice};
use crate::trust::{self, State};

#[cfg(test)]
mod tests;

/// The name of a configuration file.
pub(crate) const FILE_NAME: &str = "toolgate.yaml";
/// Largest configuration that is read, in bytes.
pub(crate) const MAX_BYTES: u64 = 1024 * 1024;

/// The configuration that counts, and how it was found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The file, absolute; `None` if there is none.
    pub path: Option<PathBuf>,
    /// What led to it.
    pub found_by: FoundBy,
    /// Where `secrets.env` is: beside the file, except for `./toolgate.yaml` and without a file,
    /// where it is the user's configuration directory, so that no secret lands in a repository.
    pub config_dir: PathBuf,
    /// The places that were looked at, in order, for `config show` (FP-21).
    pub looked_at: Vec<LookedAt>,
    /// What the operator should know about the search.
    pub notices: Vec<Notice>,
    /// The text of the file; it may hold secrets.
    pub(crate) text: Option<Secret>,
    /// The text of the `.env` beside it, where there is one that counts.
    pub(crate) dotenv: Option<Secret>,
    pub(crate) home: Option<PathBuf>,
    pub(crate) default_data_dir: Option<PathBuf>,
}

/// What led to a configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoundBy {
    /// `--config`.
    Argument,
    /// `$TOOLGATE_CONFIG`.
    Environment,
    /// `./toolgate.yaml`, which was trusted.
    WorkingDirectory,
    /// The user's configuration directory.
    UserDirectory,
    /// Nothing: there is no file.
    Defaults,
}

/// One place of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedAt {
    /// The file.
    pub path: PathBuf,
    /// What was found there, in a few words.
    pub outcome: &'static str,
}

/// Finds the configuration that counts and reads it. `env` is the environment of the process.
pub fn discover(
    explicit: Option<&Path>,
    env: &dyn Fn(&str) -> Option<String>,
    cwd: &Path,
) -> Result<Found, ConfigError> {
    let user_dir = user_config_dir(env);
    let mut search = Search { user_dir, cwd, looked_at: Vec::new(), notices: Vec::new() };
    let (hit, found_by) = search.run(explicit, env)?;
    let user_dir = search.user_dir.clone();
    let config_dir = match (&hit, found_by) {
        (Some(hit), FoundBy::Argument | FoundBy::Environment | FoundBy::UserDirectory) => parent(&hit.path),
        _ => user_dir.unwrap_or_else(|| cwd.to_owned()),
    };
    let (path, text, dotenv) = match hit {
        Some(hit) => (Some(hit.path), Some(hit.text), hit.dotenv),
        None => (None, None, None),
    };
    Ok(Found {
        path,
        found_by,
        config_dir,
        looked_at: search.looked_at,
        notices: search.notices,
        text,
        dotenv,
        home: absolute(env, "HOME"),
        default_data_dir: absolute(env, "XDG_DATA_HOME")
            .or_else(|| Some(absolute(env, "HOME")?.join(".local/share")))
            .map(|dir| dir.join("toolgate")),
    })
}

/// The directory `toolgate` under `$XDG_CONFIG_HOME` or `~/.config`. A relative or empty variable is
/// none, as the XDG base directory specification says.
pub fn user_config_dir(env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    absolute(env, "XDG_CONFIG_HOME")
        .or_else(|| Some(absolute(env, "HOME")?.join(".config")))
        .map(|dir| dir.join("toolgate"))
}

struct Hit {
    path: PathBuf,
    text: Secret,
    dotenv: Option<Secret>,
}

struct Search<'a> {
    user_dir: Option<PathBuf>,
    cwd: &'a Path,
    looked_at: Vec<LookedAt>,
    notices: Vec<Notice>,
}

impl Search<'_> {
    fn run(
        &mut self,
        explicit: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(Option<Hit>, FoundBy), ConfigError> {
        if let Some(path) = explicit {
            return Ok((Some(self.named(path, "--config")?), FoundBy::Argument));
        }
        if let Some(path) = env("TOOLGATE_CONFIG").filter(|path| !path.is_empty()) {
            let hit = self.named(Path::new(&path), "$TOOLGATE_CONFIG")?;
            return Ok((Some(hit), FoundBy::Environment));
        }
        if let Some(hit) = self.working_directory()? {
            return Ok((Some(hit), FoundBy::WorkingDirectory));
        }
        if let Some(hit) = self.user_directory()? {
            return Ok((Some(hit), FoundBy::UserDirectory));
        }
        Ok((None, FoundBy::Defaults))
    }

    fn named(&mut self, path: &Path, named_by: &'static str) -> Result<Hit, ConfigError> {
        let path = self.cwd.join(path);
        let Some(text) = read_text(&path, MAX_BYTES)? else {
            return Err(ConfigError::NotFound { path, named_by });
        };
        self.looked_at.push(LookedAt { path: path.clone(), outcome: "used: it was named" });
        usable(path, text)
    }

    fn user_directory(&mut self) -> Result<Option<Hit>, ConfigError> {
        let Some(path) = self.user_dir.as_ref().map(|dir| dir.join(FILE_NAME)) else { return Ok(None) };
        let found = read_text(&path, MAX_BYTES)?;
        let outcome = if found.is_some() { "used: the user's configuration" } else { "no file" };
        self.looked_at.push(LookedAt { path: path.clone(), outcome });
        found.map(|text| usable(path, text)).transpose()
    }

    fn working_directory(&mut self) -> Result<Option<Hit>, ConfigError> {
        let path = self.cwd.join(FILE_NAME);
        if self.user_dir.as_ref().is_some_and(|dir| same_file(&dir.join(FILE_NAME), &path)) {
            return Ok(None);
        }
        if path.symlink_metadata().is_err() {
            self.looked_at.push(LookedAt { path, outcome: "no file" });
            return Ok(None);
        }
        let record = match &self.user_dir {
            Some(dir) => trust::recorded(dir, &path)?,
            None => None,
        };
        let Some(record) = record else {
            let text = format!(
                "{} is not used, because it may be somebody else's: read it (and the .env beside it), then run \
                 `toolgate config trust {}`",
                path.display(),
                path.display()
            );
            self.notices.push(Notice::new(Level::Warning, None, text));
            self.looked_at.push(LookedAt { path, outcome: "not used: it is not trusted" });
            return Ok(None);
        };
        let text = read_text(&path, MAX_BYTES)?
            .ok_or_else(|| ConfigError::ChangedAfterTrust { path: path.clone(), what: "the file is gone" })?;
        let hit = usable(path.clone(), text)?;
        match record.compare(&hit.text, hit.dotenv.as_ref()) {
            State::Trusted => {
                self.looked_at.push(LookedAt { path, outcome: "used: it was trusted" });
                Ok(Some(hit))
            }
            State::Changed(what) => Err(ConfigError::ChangedAfterTrust { path, what }),
        }
    }
}

/// A file that counts, with the `.env` beside it, both writable by their owner alone.
fn usable(path: PathBuf, text: Secret) -> Result<Hit, ConfigError> {
    refuse_writable(&path)?;
    let beside = parent(&path).join(".env");
    let dotenv = read_text(&beside, envfile::MAX_BYTES)?;
    if dotenv.is_some() {
        refuse_writable(&beside)?;
    }
    Ok(Hit { path, text, dotenv })
}

/// Refuses what somebody else could change. A path that does not exist passes.
pub(crate) fn refuse_writable(path: &Path) -> Result<(), ConfigError> {
    match is_writable_by_others(path) {
        Ok(false) => Ok(()),
        Ok(true) => Err(ConfigError::WritableByOthers { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(source) => Err(ConfigError::io("look at", path, source)),
    }
}

/// A whole file of at most `limit` bytes; `None` if there is none.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<Option<Secret>, ConfigError> {
    let bytes = match toolgate_base::files::read_bounded(path, limit) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            let bytes = std::fs::metadata(path).map_or(limit, |found| found.len());
            return Err(ConfigError::TooLarge { path: path.to_owned(), bytes, limit });
        }
        Err(source) => return Err(ConfigError::io("read", path, source)),
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        ConfigError::io("read", path, std::io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
    })?;
    Ok(Some(Secret::new(text)))
}

pub(crate) fn parent(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| PathBuf::from("/"), Path::to_owned)
}

fn absolute(env: &dyn Fn(&str) -> Option<String>, name: &str) -> Option<PathBuf> {
    env(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn same_file(left: &Path, right: &Path) -> bool {
    match (left.canonicalize(), right.canonicalize()) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}
