//! The managed layer: one file for each server under `<data_dir>/servers.d` (conflict C02, FP-23).
//!
//! Contract: `<name>.yaml`, mode 0600, written in one step; every change happens under one lock of
//! the directory, reading included, so that parallel changes lose nothing. An entry has the keys of
//! `servers.<name>` and `bind`, the personas it is for. What is written was read by the same reader
//! that will load it. On load, a file that cannot be used is an error notice that names it, and the
//! others count.
//!
//! A file that Toolgate did not write, or that changed since, loads with its trust and bindings ignored
//! and stands in for nothing, until it is accepted ([`accept`]).
//!
//! Bounds: 256 KiB a file, 1,000 files.

mod written;
mod yaml;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use toolgate_base::Secret;
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::lock::FileLock;

use crate::discover::{Found, parent, read_text, refuse_writable};
use crate::error::{ConfigError, Level, Notice, Place, Problem};
use crate::expand::{VariableUse, Variables, expand_tree};
use crate::node::{self, Node, Text, Value};
use crate::read::{FORMAT, Item, Layer, Reader, read_server as read_entry};
use crate::server::Server;
use written::Written;

#[cfg(test)]
mod tests;

const DIRECTORY: &str = "servers.d";
const EXTENSION: &str = "yaml";
const MAX_BYTES: u64 = 256 * 1024;
const MAX_FILES: usize = 1_000;
const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A server of the managed layer as it stands in its file: variables are not expanded.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedServer {
    /// Its name, which is the name of its file.
    pub name: String,
    /// The keys of `servers.<name>`, and `bind`. A literal secret does not belong here.
    pub entry: Map<String, Json>,
}

impl ManagedServer {
    /// A server started as a child process, bound to the persona `default`.
    pub fn stdio(name: impl Into<String>, command: impl Into<String>, args: Vec<String>) -> Self {
        let mut server = Self { name: name.into(), entry: Map::new() };
        server.set("transport", "stdio").set("command", command.into()).set("args", args);
        server.bind(&[crate::DEFAULT_PERSONA]);
        server
    }

    /// A server reached by streamable HTTP, bound to the persona `default`.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let mut server = Self { name: name.into(), entry: Map::new() };
        server.set("transport", "streamable-http").set("url", url.into());
        server.bind(&[crate::DEFAULT_PERSONA]);
        server
    }

    /// Sets one key of the entry.
    pub fn set(&mut self, key: &str, value: impl Into<Json>) -> &mut Self {
        self.entry.insert(key.to_owned(), value.into());
        self
    }

    /// Sets the personas it is bound to.
    pub fn bind(&mut self, personas: &[&str]) -> &mut Self {
        self.set("bind", json!(personas))
    }
}

/// Writes a server, new or in place of the one with its name. Returns the file.
///
/// # Errors
/// [`ConfigError::Refused`] if the entry could not be loaded again, with the reasons.
pub fn write_server(data_dir: &Path, server: &ManagedServer) -> Result<PathBuf, ConfigError> {
    change_server(data_dir, &server.name, |_| Ok(Some(server.clone())))?;
    Ok(file_of(data_dir, &server.name))
}

/// Removes a server of this layer; whether it was there.
pub fn remove_server(data_dir: &Path, name: &str) -> Result<bool, ConfigError> {
    let mut known = false;
    change_server(data_dir, name, |old| {
        known = old.is_some();
        Ok(None)
    })?;
    Ok(known)
}

/// Reads, changes and writes one server under the lock: `None` is no file, before as after.
pub fn change_server(
    data_dir: &Path,
    name: &str,
    change: impl FnOnce(Option<ManagedServer>) -> Result<Option<ManagedServer>, ConfigError>,
) -> Result<(), ConfigError> {
    // The name becomes a file name, so it is judged before any path is made of it.
    toolgate_labels::check_server_name(name).map_err(|error| ConfigError::Refused(error.to_string()))?;
    let directory = data_dir.join(DIRECTORY);
    for dir in [data_dir, &directory] {
        create_private_dir(dir).map_err(|source| ConfigError::io("create", dir, source))?;
    }
    let _lock = FileLock::exclusive(&directory.join(".lock"), LOCK_WAIT)?;
    let file = file_of(data_dir, name);
    let new = change(read_server(data_dir, name)?)?;
    let Some(mut new) = new else {
        return match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(ConfigError::io("remove", &file, error))
            }
            _ => Written::read(data_dir)?.forget(name),
        };
    };
    if new.name != name {
        return Err(ConfigError::Refused(format!(
            "a server is not renamed by a change: {name} and {}",
            new.name
        )));
    }
    let lower = name.to_lowercase();
    if let Some(other) =
        names(data_dir)?.into_iter().find(|other| other != name && other.to_lowercase() == lower)
    {
        return Err(ConfigError::Refused(format!(
            "{name} differs from the server {other} only in case; choose another name"
        )));
    }
    new.set("format", FORMAT);
    let text = yaml::document(&new.entry);
    check(&file, &new, &text)?;
    write_private(&file, text.as_bytes()).map_err(|source| ConfigError::io("write", &file, source))?;
    Written::read(data_dir)?.record(name, text.as_bytes())
}

/// Accepts the file of a server as it is now, whoever wrote it. The caller has proof of the operator,
/// who saw `expected`, the text of the file.
pub fn accept(data_dir: &Path, name: &str, expected: &str) -> Result<(), ConfigError> {
    toolgate_labels::check_server_name(name).map_err(|error| ConfigError::Refused(error.to_string()))?;
    let _lock = FileLock::exclusive(&data_dir.join(DIRECTORY).join(".lock"), LOCK_WAIT)?;
    let file = file_of(data_dir, name);
    let text = read_text(&file, MAX_BYTES)?
        .ok_or_else(|| ConfigError::Refused(format!("{} is not there", file.display())))?;
    if text.expose() != expected {
        return Err(ConfigError::Refused(format!("{} changed while it was being read", file.display())));
    }
    Written::read(data_dir)?.record(name, expected.as_bytes())
}

/// The text of a server's file, for the operator who accepts it.
pub fn text_of(data_dir: &Path, name: &str) -> Result<Option<Secret>, ConfigError> {
    toolgate_labels::check_server_name(name).map_err(|error| ConfigError::Refused(error.to_string()))?;
    read_text(&file_of(data_dir, name), MAX_BYTES)
}

/// The entry of one server as its file has it.
pub fn read_server(data_dir: &Path, name: &str) -> Result<Option<ManagedServer>, ConfigError> {
    let file = file_of(data_dir, name);
    let Some(text) = read_text(&file, MAX_BYTES)? else { return Ok(None) };
    match node::parse(text.expose()).map_err(|error| invalid(&file, error))?.to_json(true) {
        Json::Object(mut entry) => {
            entry.remove("format");
            Ok(Some(ManagedServer { name: name.to_owned(), entry }))
        }
        _ => Err(ConfigError::State {
            path: file,
            what: format!("is no entry of a server; run `toolgate mcp remove {name}`"),
        }),
    }
}

/// The names of the servers of this layer, sorted.
pub fn names(data_dir: &Path) -> Result<Vec<String>, ConfigError> {
    let directory = data_dir.join(DIRECTORY);
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(ConfigError::io("read", &directory, source)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let path = entry.map_err(|source| ConfigError::io("read", &directory, source))?.path();
        let is_entry = path.extension().is_some_and(|extension| extension == EXTENSION);
        if let Some(name) =
            path.file_stem().and_then(|stem| stem.to_str()).filter(|name| is_entry && !name.starts_with('.'))
        {
            names.push(name.to_owned());
        }
    }
    if names.len() > MAX_FILES {
        let what = format!("has {} servers and at most {MAX_FILES} are read; remove some", names.len());
        return Err(ConfigError::State { path: directory, what });
    }
    names.sort();
    Ok(names)
}

/// An operator's entry as it stands in the file, variables not expanded: what `mcp disable` starts
/// from, because an entry of this layer replaces the operator's whole.
pub fn operator_entry(found: &Found, name: &str) -> Result<Option<ManagedServer>, ConfigError> {
    let (Some(path), Some(text)) = (&found.path, &found.text) else { return Ok(None) };
    let top = node::parse(text.expose()).map_err(|error| invalid(path, error))?;
    let entry =
        top.to_json(true).pointer_mut("/servers").and_then(|servers| servers.get_mut(name)).map(Json::take);
    match entry {
        Some(Json::Object(entry)) => Ok(Some(ManagedServer { name: name.to_owned(), entry })),
        _ => Ok(None),
    }
}

/// What the layer gives to a configuration.
#[derive(Default)]
pub(crate) struct Loaded {
    /// Each server with the personas it is bound to.
    pub(crate) servers: Vec<(Server, Vec<String>)>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) uses: Vec<VariableUse>,
}

/// Reads every file of the layer.
pub(crate) fn load(
    data_dir: &Path,
    home: Option<&Path>,
    variables: &Variables<'_>,
) -> Result<Loaded, ConfigError> {
    let directory = data_dir.join(DIRECTORY);
    refuse_writable(&directory)?;
    let mut loaded = Loaded::default();
    let written = Written::read(data_dir)?;
    for name in names(data_dir)? {
        let file = file_of(data_dir, &name);
        match load_one(&file, &name, &written, home, variables, &mut loaded) {
            Ok(()) => {}
            Err(error) => {
                let place = Place { file, line: 0, column: 0, key: String::new() };
                // The name of a file is anybody's, and a shell may be given this.
                let removed = if toolgate_base::display::is_command_word(&name) {
                    format!("run `toolgate mcp remove {name}`")
                } else {
                    "remove it".to_owned()
                };
                let text = format!(
                    "the server {} is left out: {error}; correct the file, or {removed}",
                    crate::error::quoted(&name),
                );
                loaded.notices.push(Notice::new(Level::Error, Some(place), text));
            }
        }
    }
    Ok(loaded)
}

/// Adds a server to what was loaded, read as its file would be if it were written now.
pub(crate) fn preview(
    data_dir: &Path,
    server: &ManagedServer,
    home: Option<&Path>,
    variables: &Variables<'_>,
    loaded: &mut Loaded,
) -> Result<(), ConfigError> {
    toolgate_labels::check_server_name(&server.name)
        .map_err(|error| ConfigError::Refused(error.to_string()))?;
    let (file, mut server) = (file_of(data_dir, &server.name), server.clone());
    server.set("format", FORMAT);
    let text = yaml::document(&server.entry);
    check(&file, &server, &text)?;
    take_in(&file, &server.name, &text, home, variables, loaded)
}

fn load_one(
    file: &Path,
    name: &str,
    written: &Written,
    home: Option<&Path>,
    variables: &Variables<'_>,
    loaded: &mut Loaded,
) -> Result<(), ConfigError> {
    refuse_writable(file)?;
    let text = read_text(file, MAX_BYTES)?
        .ok_or_else(|| ConfigError::Refused("the file went away while it was read".to_owned()))?;
    take_in(file, name, text.expose(), home, variables, loaded)?;
    if !written.is_by_us(name, text.expose().as_bytes())
        && let Some((server, bind)) = loaded.servers.last_mut()
    {
        server.accepted = false;
        // What narrows stays: a hash that must match, and that it can leave its sandbox.
        server.trust.auto_approve_tools.clear();
        bind.clear();
    }
    Ok(())
}

fn take_in(
    file: &Path,
    name: &str,
    text: &str,
    home: Option<&Path>,
    variables: &Variables<'_>,
    loaded: &mut Loaded,
) -> Result<(), ConfigError> {
    let mut uses = Vec::new();
    let (server, bind, notices) = read_file(file, name, text, home, variables, &mut uses)?;
    let lower = name.to_lowercase();
    if let Some((other, _)) = loaded.servers.iter().find(|(other, _)| other.name.to_lowercase() == lower) {
        return Err(ConfigError::Refused(format!("its name differs from `{}` only in case", other.name)));
    }
    loaded.notices.extend(notices);
    loaded.uses.extend(uses);
    loaded.servers.push((server, bind));
    Ok(())
}

fn read_file(
    file: &Path,
    name: &str,
    text: &str,
    home: Option<&Path>,
    variables: &Variables<'_>,
    uses: &mut Vec<VariableUse>,
) -> Result<(Server, Vec<String>, Vec<Notice>), ConfigError> {
    let mut body = node::parse(text).map_err(|error| invalid(file, error))?;
    let mut reader = Reader::new(file, &parent(file), home.map(Path::to_owned), variables);
    let mut wrong = Vec::new();
    expand_tree(&mut body, "", file, variables, uses, &mut |place, what| {
        wrong.push(Problem { place, what: what.to_owned(), fix: String::new() });
    });
    reader.problems.append(&mut wrong);
    let key = Value::Text(Text { value: name.to_owned(), ..Text::default() });
    let name = Item { node: Node { value: key, line: 0, column: 0 }, key: String::new() };
    let layer = Layer::Managed(file.to_owned());
    let read = read_entry(&mut reader, &name, Item { node: body, key: String::new() }, &layer);
    match read {
        Some((server, bind)) if reader.problems.is_empty() => Ok((server, bind, reader.notices)),
        _ => Err(ConfigError::Invalid(reader.problems)),
    }
}

/// Reads what is about to be written, as [`load`] will, but without any variable.
fn check(file: &Path, server: &ManagedServer, text: &str) -> Result<(), ConfigError> {
    let variables = Variables {
        process: &|_| None,
        secrets: std::collections::BTreeMap::new(),
        dotenv: std::collections::BTreeMap::new(),
    };
    let again = node::parse(text).map(|node| node.to_json(true));
    if !again.is_ok_and(|again| again == Json::Object(server.entry.clone())) {
        let what = format!("the entry of {} cannot be written as YAML and read back the same", server.name);
        return Err(ConfigError::Refused(what));
    }
    match read_file(file, &server.name, text, None, &variables, &mut Vec::new()) {
        Ok(_) => Ok(()),
        Err(ConfigError::Invalid(problems)) => {
            let reasons: Vec<String> = problems
                .iter()
                .map(|problem| {
                    let fix =
                        if problem.fix.is_empty() { String::new() } else { format!("; {}", problem.fix) };
                    format!("{}: {}{fix}", problem.place.key, problem.what)
                        .trim_start_matches(": ")
                        .to_owned()
                })
                .collect();
            Err(ConfigError::Refused(format!(
                "the server {} is not written: {}",
                server.name,
                reasons.join("\n")
            )))
        }
        Err(other) => Err(other),
    }
}

fn file_of(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join(DIRECTORY).join(format!("{name}.{EXTENSION}"))
}

pub(crate) fn invalid(file: &Path, error: node::SyntaxError) -> ConfigError {
    let place = Place { file: file.to_owned(), line: error.line, column: error.column, key: String::new() };
    ConfigError::Invalid(vec![Problem { place, what: error.what, fix: error.fix.to_owned() }])
}
