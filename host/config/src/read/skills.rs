//! `skills`, and the server files of a skill's directory.
//!
//! Threat: a skill is somebody else's directory. Each of its files is strict like the configuration,
//! must lie in the directory itself (a link that leaves it is refused), and one that cannot be read is
//! an error and never skipped.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::commandline::resolve;
use crate::discover::{read_text, refuse_writable};
use crate::error::{Place, Problem};
use crate::expand::expand_tree;
use crate::node::{self, Node};
use crate::server::Server;
use crate::skill::{Runtime, Skill};

use super::fields::Fields;
use super::{Item, Layer, Reader, keys, read_server};

/// Servers that one skill may need (row CFG-020).
const MOST_SERVERS: usize = 64;
/// Largest server file of a skill, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// What `skills` says.
#[derive(Default)]
pub(crate) struct Skills {
    /// By name.
    pub(crate) skills: BTreeMap<String, Skill>,
    /// The servers that their files define.
    pub(crate) servers: Vec<Server>,
}

/// A server that a file of a skill defined, kept to hold a second one of its name against it.
struct Defined {
    file: PathBuf,
    body: serde_json::Value,
}

/// Reads every skill; `servers` are those of the configuration itself.
pub(crate) fn read_skills(reader: &mut Reader<'_>, item: Item, servers: &BTreeMap<String, Server>) -> Skills {
    let mut found = Skills::default();
    let mut defined = BTreeMap::new();
    for (name, body) in reader.entries(item) {
        if !super::persona::is_persona_name(name.name()) {
            let fix = "use 1 to 64 letters, digits, `.`, `_` or `-`, and begin with a letter or digit";
            reader.wrong(&name, "no name for a skill", fix);
            continue;
        }
        let whole = Item { node: body.node.clone(), key: body.key.clone() };
        let Some(mut fields) = reader.fields(body, &keys::SKILL) else { continue };
        let mut skill = read_plain(reader, &mut fields, servers);
        if let Some(item) = fields.take("directory") {
            read_directory(reader, &item, servers, &mut defined, &mut found.servers, &mut skill);
        }
        if skill.servers.len() > MOST_SERVERS {
            reader.wrong(
                &whole,
                format!("a skill has at most {MOST_SERVERS} servers"),
                "make it several skills",
            );
        }
        skill.servers.sort();
        skill.servers.dedup();
        found.skills.insert(name.name().to_owned(), skill);
    }
    found
}

fn read_plain(reader: &mut Reader<'_>, fields: &mut Fields, servers: &BTreeMap<String, Server>) -> Skill {
    let mut skill = Skill::default();
    if let Some(item) = fields.take("runtime") {
        let choices =
            [("any", Runtime::Any), ("main", Runtime::Main), ("background_job", Runtime::BackgroundJob)];
        skill.runtime = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("servers") {
        for entry in reader.list(item) {
            let Some(server) = reader.filled(&entry) else { continue };
            if servers.contains_key(&server.value) {
                skill.servers.push(server.value);
            } else {
                let known: Vec<&str> = servers.keys().map(String::as_str).collect();
                let fix = super::did_you_mean(&server.value, &known);
                reader.wrong(&entry, "no server of this name stands under `servers`", fix);
            }
        }
    }
    skill
}

/// Every `mcp/*.json` of the directory (row SCP-006), in the order of their names.
fn read_directory(
    reader: &mut Reader<'_>,
    item: &Item,
    servers: &BTreeMap<String, Server>,
    defined: &mut BTreeMap<String, Defined>,
    into: &mut Vec<Server>,
    skill: &mut Skill,
) {
    let Some(text) = reader.filled(item) else { return };
    let directory = resolve(&text.value, &reader.base, reader.home.as_deref()).join("mcp");
    let files = match files_of(&directory) {
        Ok(files) => files,
        Err(error) => {
            let fix = "a skill's directory has its servers as mcp/NAME.json";
            reader.wrong(item, format!("{} cannot be read: {error}", directory.display()), fix);
            return;
        }
    };
    for file in files {
        let Some((server, body)) = read_file(reader, item, &directory, &file) else { continue };
        let name = server.name.clone();
        let other = defined.get(&name).map(|other| (other.file.clone(), other.body == body));
        match other {
            Some((_, true)) => {}
            Some((other, false)) => {
                let what = format!(
                    "the server {name} is defined in {} and, differently, in {}",
                    other.display(),
                    file.display()
                );
                reader.wrong(item, what, "make both the same, or rename one; neither is taken");
                continue;
            }
            None if servers.contains_key(&name) => {
                let what = format!("{} defines the server {name}, and `servers` does too", file.display());
                reader.wrong(item, what, "rename one, or name it under the skill's `servers`");
                continue;
            }
            None => {
                defined.insert(name.clone(), Defined { file, body });
                into.push(server);
            }
        }
        skill.servers.push(name);
    }
}

fn files_of(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// One file: the body of a server, named by its `name` or by the file.
fn read_file(
    reader: &mut Reader<'_>,
    item: &Item,
    directory: &Path,
    file: &Path,
) -> Option<(Server, serde_json::Value)> {
    let text = match checked_text(directory, file) {
        Ok(text) => text,
        Err(what) => {
            reader.wrong(
                item,
                format!("{}: {what}", file.display()),
                "a skill with a file that cannot be used is no skill",
            );
            return None;
        }
    };
    let mut tree = match node::parse(text.expose()) {
        Ok(tree) => tree,
        Err(error) => {
            let place =
                Place { file: file.to_owned(), line: error.line, column: error.column, key: String::new() };
            reader.problems.push(Problem { place, what: error.what, fix: error.fix.to_owned() });
            return None;
        }
    };
    let mut inner = Reader::new(file, directory, reader.home.clone(), reader.variables);
    let mut problems = Vec::new();
    expand_tree(&mut tree, "", file, reader.variables, &mut reader.uses, &mut |place, what| {
        problems.push(Problem { place, what: what.to_owned(), fix: String::new() });
    });
    let name = take_name(&mut tree).unwrap_or_else(|| {
        file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    });
    let body = tree.to_json(true);
    let (line, column) = (tree.line, tree.column);
    let key =
        Node { value: node::Value::Text(node::Text { value: name, ..node::Text::default() }), line, column };
    let read = read_server(
        &mut inner,
        &Item { node: key, key: String::new() },
        Item { node: tree, key: String::new() },
        &Layer::Operator,
    );
    reader.problems.append(&mut problems);
    reader.problems.append(&mut inner.problems);
    reader.notices.append(&mut inner.notices);
    read.map(|(server, _)| (server, body))
}

/// The text of a file that lies in the directory and that nobody else can write.
fn checked_text(directory: &Path, file: &Path) -> Result<toolgate_base::Secret, String> {
    let real = |path: &Path| path.canonicalize().map_err(|error| error.to_string());
    if !real(file)?.starts_with(real(directory)?) {
        return Err("this link leaves the directory of the skill".to_owned());
    }
    refuse_writable(file).map_err(|error| error.to_string())?;
    read_text(file, MAX_BYTES)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "the file is gone".to_owned())
}

/// Takes the member `name` out of a server file.
fn take_name(tree: &mut Node) -> Option<String> {
    let node::Value::Map(entries) = &mut tree.value else { return None };
    let at = entries.iter().position(|(key, _)| key.text == "name")?;
    match entries.remove(at).1.value {
        node::Value::Text(text) => Some(text.value),
        _ => None,
    }
}
