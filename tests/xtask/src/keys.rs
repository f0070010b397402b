//! The keys that may sign first-party plugins.
//!
//! [`ADMITTED`] holds public keys, `ed25519:<base64>`, one a line, `#` before a comment; the binary
//! embeds it. Keys below the line [`MARK`] are development keys: admitted so that anyone can change
//! a plugin and pass the tests, and refused by `check --release`. No secret key is ever inside the
//! tree, but for a development key, which lies in the ignored `plugins/target` and is worth nothing
//! elsewhere.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use toolgate_signing::{PublicKey, SigningKey};

use crate::Outcome;
use crate::project::Project;

/// The file of admitted public keys.
pub(crate) const ADMITTED: &str = "registry/first-party/keys.txt";

/// Everything below this line is for development only.
const MARK: &str = "# development keys, never for a release";

/// The admitted keys, parsed by the rules of admission; a line that is no key is an error.
pub(crate) fn admitted(project: &Project) -> Outcome<Vec<PublicKey>> {
    key_lines(&text(project)?)
        .map(|line| PublicKey::parse(line).map_err(|fault| format!("{ADMITTED}: `{line}`: {fault}").into()))
        .collect()
}

/// The development keys among them, as they are written.
pub(crate) fn for_development(project: &Project) -> Outcome<Vec<String>> {
    Ok(parts(&text(project)?).1.map_or(Vec::new(), |below| key_lines(below).map(str::to_owned).collect()))
}

/// Admits a key, where it is not there yet.
pub(crate) fn admit(project: &Project, key: &PublicKey, development: bool) -> Outcome<()> {
    let old = text(project)?;
    let path = project.path(ADMITTED);
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    Ok(fs::write(path, with_key(&old, &key.to_string(), development))?)
}

/// The key of a seed file, which must lie outside of the tree.
pub(crate) fn from_seed_file(project: &Project, file: &Path) -> Outcome<SigningKey> {
    let file = file.canonicalize().map_err(|fault| format!("the seed file: {fault}"))?;
    if project.relative(&file) != file {
        return Err("the seed file lies inside the project, where it would be committed one day".into());
    }
    let seed = fs::read_to_string(&file).map_err(|fault| format!("the seed file: {fault}"))?;
    Ok(SigningKey::from_hex(&seed)?)
}

/// The development key of this checkout, made on first use.
pub(crate) fn development(project: &Project) -> Outcome<SigningKey> {
    let file = project.path("plugins/target/development.seed");
    if !file.exists() {
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory)?;
        }
        let mut seed = [0; 32];
        fs::File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut seed))
            .map_err(|fault| format!("cannot make a development key from /dev/urandom: {fault}"))?;
        fs::write(&file, hex::encode(seed))?;
    }
    Ok(SigningKey::from_hex(&fs::read_to_string(&file)?)?)
}

/// The file's text; nothing where it is absent.
fn text(project: &Project) -> Outcome<String> {
    match fs::read_to_string(project.path(ADMITTED)) {
        Ok(text) => Ok(text),
        Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(fault) => Err(format!("{ADMITTED}: {fault}").into()),
    }
}

/// What stands above the mark, and below it where there is one.
fn parts(text: &str) -> (&str, Option<&str>) {
    text.split_once(MARK).map_or((text, None), |(above, below)| (above, Some(below)))
}

fn key_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// The text with a key more, on its side of the mark.
fn with_key(text: &str, key: &str, development: bool) -> String {
    let (above, below) = parts(text);
    let side = if development { below.unwrap_or_default() } else { above };
    if key_lines(side).any(|line| line == key) {
        return text.to_owned();
    }
    let below = below.map(str::trim_start);
    match (development, below) {
        (false, None) => format!("{above}{key}\n"),
        (false, Some(below)) => format!("{above}{key}\n{MARK}\n{below}"),
        (true, below) => format!("{above}{MARK}\n{}{key}\n", below.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests;
