//! Puts the layers together: defaults, the operator's file, the managed layer, the variables.
//!
//! Contract: mistakes in the operator's file are errors, all of them at once; mistakes in the managed
//! layer are notices, because a file that Toolgate wrote must not keep the gateway from starting.
//! The managed layer wins by name, and each such case is told.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::discover::{Found, FoundBy, parent, refuse_writable};
use crate::duplicates;
use crate::error::{ConfigError, Level, Notice, Place, Problem, nearest, quoted};
use crate::expand::{VariableUse, Variables, expand_tree, warnings};
use crate::managed::{self, Loaded, ManagedServer, invalid};
use crate::model::{Audit, Config, DEFAULT_PERSONA};
use crate::node;
use crate::persona::Persona;
use crate::plugins_layer::PluginsLayer;
use crate::read::{Binding, Reader, Top, read_top};
use crate::secrets;
use crate::server::{Origin, Server};
use crate::sink::SinkTarget;

#[cfg(test)]
mod tests;

/// Loads what [`crate::discover`] found. `env` is the environment of the process.
pub fn load(found: &Found, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    load_with(found, env, None)
}

/// The same as if `new` stood in the managed layer, where nothing is written. `env` may know what would
/// be stored in secrets.env.
pub fn load_with(
    found: &Found,
    env: &dyn Fn(&str) -> Option<String>,
    new: Option<&ManagedServer>,
) -> Result<Config, ConfigError> {
    load_layers(found, env, new, true)
}

/// Loads the operator's file alone: `--locked` ignores what the CLI accepted since it was reviewed.
pub fn load_locked(found: &Found, env: &dyn Fn(&str) -> Option<String>) -> Result<Config, ConfigError> {
    load_layers(found, env, None, false)
}

fn load_layers(
    found: &Found,
    env: &dyn Fn(&str) -> Option<String>,
    new: Option<&ManagedServer>,
    layers: bool,
) -> Result<Config, ConfigError> {
    let variables =
        Variables { process: env, secrets: secrets::read(&found.config_dir)?, dotenv: read_dotenv(found)? };
    let mut uses = Vec::new();
    let (top, mut notices) = read_operator(found, &variables, &mut uses)?;
    notices.splice(0..0, found.notices.iter().cloned());
    let data_dir = match (&top.data_dir, &found.default_data_dir) {
        (Some(dir), _) | (None, Some(dir)) => dir.clone(),
        (None, None) => return Err(ConfigError::NoHome { variable: "XDG_DATA_HOME" }),
    };
    refuse_writable(&data_dir)?;
    refuse_own_files(found, &top.audit, &data_dir)?;
    let is_managed = layers && top.managed.unwrap_or(true);
    let mut layer = if is_managed {
        managed::load(&data_dir, found.home.as_deref(), &variables)?
    } else {
        Loaded::default()
    };
    if let Some(new) = new {
        managed::preview(&data_dir, new, found.home.as_deref(), &variables, &mut layer)?;
    }
    uses.extend(layer.uses);
    if top.missing_is_error {
        refuse_missing(&uses)?;
    }
    notices.extend(layer.notices);
    notices.extend(warnings(&uses));
    let operator_plugins = top.plugins;
    let mut plugins = operator_plugins.clone();
    plugins.managed &= is_managed;
    if plugins.managed {
        PluginsLayer::of(&data_dir).add_to(&mut plugins, &mut notices, &variables)?;
    }
    let mut servers = top.servers;
    let own: Vec<String> = servers.keys().cloned().collect();
    servers.extend(top.skills.servers.into_iter().map(|server| (server.name.clone(), server)));
    let mut merged = merge(servers, &own, top.personas, &top.bindings, layer.servers, &mut notices);
    for persona in merged.personas.values_mut() {
        persona.bind_lanes(&top.skills.skills);
    }
    duplicates::leave_out(&merged.servers, &mut merged.personas, &mut notices);
    Ok(Config {
        path: found.path.clone(),
        data_dir,
        config_dir: found.config_dir.clone(),
        managed: is_managed,
        servers: merged.servers,
        personas: merged.personas,
        skills: top.skills.skills,
        plugins,
        operator_plugins,
        serve: top.serve,
        permissions: top.permissions,
        approvals: top.approvals,
        pins: top.pins,
        audit: top.audit,
        warnings: notices,
        variables: uses,
        process: None,
    })
}

fn read_dotenv(found: &Found) -> Result<BTreeMap<String, toolgate_base::Secret>, ConfigError> {
    match (&found.path, &found.dotenv) {
        (Some(path), Some(text)) => secrets::parse(&parent(path).join(".env"), text),
        _ => Ok(BTreeMap::new()),
    }
}

fn read_operator(
    found: &Found,
    variables: &Variables<'_>,
    uses: &mut Vec<VariableUse>,
) -> Result<(Top, Vec<Notice>), ConfigError> {
    let (Some(path), Some(text)) = (&found.path, &found.text) else {
        return Ok((Top::default(), Vec::new()));
    };
    let mut tree = node::parse(text.expose()).map_err(|error| invalid(path, error))?;
    let mut problems = Vec::new();
    expand_tree(&mut tree, "", path, variables, uses, &mut |place, what| {
        problems.push(Problem { place, what: what.to_owned(), fix: String::new() });
    });
    let mut reader = Reader::new(path, &parent(path), found.home.clone(), variables);
    let top = read_top(&mut reader, tree);
    problems.append(&mut reader.problems);
    let is_strangers = found.found_by == FoundBy::WorkingDirectory;
    if is_strangers && !top.skills.servers.is_empty() {
        problems.push(skills_of_a_stranger(path));
    }
    if problems.is_empty() {
        let notices = std::mem::take(&mut reader.notices);
        uses.append(&mut reader.uses);
        return Ok((top, notices));
    }
    problems.sort_by_key(|problem| (problem.place.line, problem.place.column));
    Err(ConfigError::Invalid(problems))
}

/// Trust in `./toolgate.yaml` is its digest; the files of a skill are not in it and name commands too.
fn skills_of_a_stranger(path: &Path) -> Problem {
    Problem {
        place: Place { file: path.to_owned(), line: 0, column: 0, key: "skills".to_owned() },
        what: "`config trust` covers this file and .env, and not the files in a skill's `directory`"
            .to_owned(),
        fix: "write these servers under `servers` here, and name them in the skill's `servers`".to_owned(),
    }
}

/// A sink appends to its file, so it must not be one of Toolgate's own: a file of the data directory, this
/// configuration or what stands beside it for Toolgate.
fn refuse_own_files(found: &Found, audit: &Audit, data_dir: &Path) -> Result<(), ConfigError> {
    let Some(path) = &found.path else { return Ok(()) };
    let real = |path: &Path| -> PathBuf {
        let of_parent = || Some(parent(path).canonicalize().ok()?.join(path.file_name()?));
        path.canonicalize().ok().or_else(of_parent).unwrap_or_else(|| path.to_owned())
    };
    let beside = [".env", "toolgate.lock"].map(|name| real(&parent(path).join(name)));
    let own = [real(path), real(&secrets::path(&found.config_dir))];
    let data_dir = real(data_dir);
    let problems: Vec<Problem> = audit
        .sinks
        .iter()
        .filter_map(|sink| match &sink.target {
            SinkTarget::Jsonl { path, .. } => Some((sink, real(path))),
            _ => None,
        })
        .filter(|(_, file)| file.starts_with(&data_dir) || own.iter().chain(&beside).any(|own| own == file))
        .map(|(sink, file)| Problem {
            place: Place {
                file: path.clone(),
                line: 0,
                column: 0,
                key: format!("audit.sinks.{}", sink.name),
            },
            what: format!("{} is Toolgate's own, and a sink would write into it", file.display()),
            fix: "name a file outside of data_dir, for the rows alone".to_owned(),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(problems)) }
}

/// `on_missing_env: error`.
fn refuse_missing(uses: &[VariableUse]) -> Result<(), ConfigError> {
    let problems: Vec<Problem> = uses
        .iter()
        .filter(|used| used.source.is_none())
        .map(|used| Problem {
            place: used.place.clone(),
            what: format!("the variable {} is not set, and on_missing_env is error", used.name),
            fix: format!(
                "set it, store it with `toolgate secret set {0}`, or write ${{{0}:-text}}",
                used.name
            ),
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(ConfigError::Invalid(problems)) }
}

struct Merged {
    servers: BTreeMap<String, Server>,
    personas: BTreeMap<String, Persona>,
}

fn merge(
    mut servers: BTreeMap<String, Server>,
    own: &[String],
    personas: Option<BTreeMap<String, Persona>>,
    bindings: &[Binding],
    layer: Vec<(Server, Vec<String>)>,
    notices: &mut Vec<Notice>,
) -> Merged {
    let says_personas = personas.is_some();
    let mut personas = personas.unwrap_or_default();
    personas.entry(DEFAULT_PERSONA.to_owned()).or_insert_with(|| Persona::named(DEFAULT_PERSONA));
    for (server, bind) in layer {
        let name = server.name.clone();
        let place = managed_place(&server);
        if let Some(other) = case_twin(&servers, &name) {
            let text = format!(
                "the server {name} is left out: its name differs from {other} in toolgate.yaml only in case"
            );
            notices.push(Notice::new(Level::Error, place, text));
            continue;
        }
        if !server.accepted {
            let stands = if servers.contains_key(&name) {
                "and toolgate.yaml has a server of this name, which counts"
            } else {
                "so it is bound to nobody"
            };
            let text = format!(
                "this file was not written by Toolgate, or changed since, {stands}; read it, then accept it \
                 with `toolgate mcp pin {name} --accept`, or remove it with `toolgate mcp remove {name}`"
            );
            notices.push(Notice::new(Level::Warning, place.clone(), text));
            servers.entry(name).or_insert(server);
            continue;
        }
        for persona in bind {
            if let Some(found) = personas.get_mut(&persona) {
                found.servers.push(name.clone());
            } else {
                let text =
                    format!("no persona {} is configured, so {name} is not bound to it", quoted(&persona));
                notices.push(Notice::new(Level::Warning, place.clone(), text));
            }
        }
        if servers.insert(name.clone(), server).is_some() {
            let text = format!("this file stands in for the server {name} of toolgate.yaml");
            notices.push(Notice::new(Level::Info, place, text));
        }
    }
    if !says_personas && let Some(persona) = personas.get_mut(DEFAULT_PERSONA) {
        // Not those that only skills brought: nobody enabled a skill.
        let managed = servers.values().filter(|server| server.origin != Origin::Operator);
        let managed = managed.filter(|server| server.accepted).map(|server| server.name.clone());
        persona.servers = own.iter().cloned().chain(managed).collect();
    }
    report_unknown(bindings, &servers, notices);
    for persona in personas.values_mut() {
        persona.servers.retain(|name| servers.get(name).is_some_and(|server| server.accepted));
        persona.servers.sort();
        persona.servers.dedup();
    }
    Merged { servers, personas }
}

/// A persona may name a server that is not there (any more); it is told and grants nothing.
fn report_unknown(bindings: &[Binding], servers: &BTreeMap<String, Server>, notices: &mut Vec<Notice>) {
    for binding in bindings.iter().filter(|binding| !servers.contains_key(&binding.server)) {
        let hint = nearest(&binding.server, servers.keys().map(String::as_str))
            .map(|name| format!("; did you mean `{name}`?"))
            .unwrap_or_default();
        // A label is compared by its bytes, so one with a blank too many is about no server at all.
        let text = match &binding.label {
            None => format!("persona {} names a server that is not configured{hint}", binding.persona),
            Some(label) => format!(
                "the label {} of persona {} covers nothing: there is no server {}{hint}",
                quoted(label),
                binding.persona,
                quoted(&binding.server)
            ),
        };
        notices.push(Notice::new(Level::Warning, Some(binding.place.clone()), text));
    }
}

fn case_twin(servers: &BTreeMap<String, Server>, name: &str) -> Option<String> {
    let lower = name.to_lowercase();
    servers.keys().find(|known| *known != name && known.to_lowercase() == lower).cloned()
}

fn managed_place(server: &Server) -> Option<Place> {
    let file: PathBuf = match &server.origin {
        Origin::Managed(path) => Path::to_owned(path),
        Origin::Operator => return None,
    };
    Some(Place { file, line: 0, column: 0, key: String::new() })
}
