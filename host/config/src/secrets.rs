//! `secrets.env`: where the operator's secrets are kept, so that no configuration holds one.
//!
//! Contract: `<config_dir>/secrets.env`, mode 0600, written in one step under a lock; comments and
//! other lines stay as they are. Values are given out to nobody but `${VAR}`.
//!
//! Threat: a file that others can read gives every credential away, so it is refused, not used.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::lock::FileLock;

use crate::discover::{read_text, refuse_writable};
use crate::envfile;
use crate::error::{ConfigError, Place, Problem};
use crate::expand::is_variable_name;

#[cfg(test)]
mod tests;

const FILE_NAME: &str = "secrets.env";
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The file in a configuration directory ([`crate::Found::config_dir`]).
pub fn path(config_dir: &Path) -> PathBuf {
    config_dir.join(FILE_NAME)
}

/// The names that are set, sorted. No values.
pub fn names(config_dir: &Path) -> Result<Vec<String>, ConfigError> {
    Ok(read(config_dir)?.into_keys().collect())
}

/// Sets one secret.
pub fn set(config_dir: &Path, name: &str, value: &Secret) -> Result<(), ConfigError> {
    if !is_variable_name(name) {
        let what = "a secret is named like a variable: letters, digits and `_`, not beginning with a digit";
        return Err(ConfigError::Refused(what.to_owned()));
    }
    if value.expose().contains('\0') {
        return Err(ConfigError::Refused("a secret holds no NUL character".to_owned()));
    }
    change(config_dir, name, Some(&envfile::line(name, value))).map(|_| ())
}

/// Whether there is a secret of this name with another value than this.
///
/// # Errors
/// The file cannot be read.
pub fn differs(config_dir: &Path, name: &str, value: &Secret) -> Result<bool, ConfigError> {
    Ok(read(config_dir)?.get(name).is_some_and(|there| there.expose() != value.expose()))
}

/// Sets a secret that comes with something that is added, and changes none that is there: other entries
/// stand on it (SEC-015).
///
/// # Errors
/// One of this name has another value; or as [`set`].
pub fn set_new(config_dir: &Path, name: &str, value: &Secret) -> Result<(), ConfigError> {
    if differs(config_dir, name, value)? {
        return Err(ConfigError::Refused(format!(
            "there is a secret {name} with another value already, and other entries may use it; \
             `toolgate secret set {name}` changes it"
        )));
    }
    set(config_dir, name, value)
}

/// Removes one secret; whether it was there.
pub fn clear(config_dir: &Path, name: &str) -> Result<bool, ConfigError> {
    change(config_dir, name, None)
}

/// Every secret; none if there is no file.
pub(crate) fn read(config_dir: &Path) -> Result<BTreeMap<String, Secret>, ConfigError> {
    let file = path(config_dir);
    let Some(text) = read_text(&file, envfile::MAX_BYTES)? else { return Ok(BTreeMap::new()) };
    refuse_writable(&file)?;
    refuse_readable(&file)?;
    parse(&file, &text)
}

/// Reads the lines of an env file, with its own name in the error.
pub(crate) fn parse(file: &Path, text: &Secret) -> Result<BTreeMap<String, Secret>, ConfigError> {
    envfile::parse(text.expose()).map_err(|error| {
        let place = Place { file: file.to_owned(), line: error.line, column: 1, key: String::new() };
        let fix = "a line is NAME=value, with the value in quotes if it has spaces".to_owned();
        ConfigError::Invalid(vec![Problem { place, what: error.what.to_owned(), fix }])
    })
}

fn change(config_dir: &Path, name: &str, line: Option<&Secret>) -> Result<bool, ConfigError> {
    let file = path(config_dir);
    if !config_dir.is_dir() {
        create_private_dir(config_dir).map_err(|source| ConfigError::io("create", config_dir, source))?;
    }
    let _lock = FileLock::exclusive(&config_dir.join(".secrets.lock"), LOCK_WAIT)?;
    let old = read_text(&file, envfile::MAX_BYTES)?.unwrap_or_default();
    // A file that cannot be read is not overwritten.
    parse(&file, &old)?;
    let mut known = false;
    let mut lines: Vec<&str> = Vec::new();
    for old_line in old.expose().lines() {
        if envfile::name_of(old_line) == Some(name) {
            known = true;
        } else {
            lines.push(old_line);
        }
    }
    lines.extend(line.map(Secret::expose));
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    let text = Secret::new(text);
    write_private(&file, text.expose().as_bytes())
        .map_err(|source| ConfigError::io("write", &file, source))?;
    Ok(known)
}

#[cfg(unix)]
fn refuse_readable(file: &Path) -> Result<(), ConfigError> {
    use std::os::unix::fs::PermissionsExt as _;

    const GROUP_OR_OTHERS: u32 = 0o077;
    let mode =
        file.metadata().map_err(|source| ConfigError::io("look at", file, source))?.permissions().mode();
    if mode & GROUP_OR_OTHERS == 0 {
        return Ok(());
    }
    let what = "can be read by other users of this machine; run chmod 600 on it, and change the secrets in it \
                if others may have read them";
    Err(ConfigError::State { path: file.to_owned(), what: what.to_owned() })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the Unix version can fail")]
fn refuse_readable(_file: &Path) -> Result<(), ConfigError> {
    Ok(())
}
