//! `mcp add` and `mcp remove`: one file per server in the managed layer; the operator's own file is
//! never touched.
//!
//! What READMEs print for other hosts works here: options before or after the name, a command after
//! `--` or without it, a URL. A literal secret goes to secrets.env and is written as `${VAR}`. A
//! server that cannot be reached is not kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolgate_base::Secret;
use toolgate_config::managed::{self, ManagedServer};
use toolgate_config::{Config, FirstUse, Origin, looks_like_secret, secrets};
use toolgate_gateway::{Caller, Gateway, ServerState, ServerStatus};
use toolgate_store::{AuditRow, Event};

use clap::Parser;

use crate::args::{Cli, Command, Mcp, McpAdd, McpName};
use crate::context;
use crate::exit::{Code, Failure};
use crate::output;

/// Adds a server, connects to it, pins what it shows, and keeps it only if that worked.
pub(crate) async fn add(explicit: Option<&Path>, args: McpAdd) -> Result<(), Failure> {
    let args = with_late_options(args)?;
    // What there is to say is said with the server in it: a label may wait for it.
    let config = context::quiet_config(explicit)?;
    if config.servers.contains_key(&args.name) {
        return Err(Failure::usage(format!("there is a server '{}' already", args.name))
            .hint(format!("see it with `toolgate mcp get {}`, or take another name", args.name)));
    }
    let mut stored = Vec::new();
    let server = entry(&args, &mut stored)?;
    for (name, value) in &stored {
        if secrets::differs(&config.config_dir, name, value).map_err(context::config_failure)? {
            return Err(Failure::usage(format!("there is a secret {name} with another value already"))
                .hint(format!(
                    "write `-e {name}` or `${{{name}}}` to use that one; `toolgate secret set {name}` changes it for all"
                )));
        }
    }
    if args.no_probe {
        let file = keep(&config, &server, &stored)?;
        return added(&args, &file, None);
    }
    // Until the server has answered nothing is written, so whatever ends this process leaves nothing.
    let probe = probe(explicit, &args, &server, &stored).await.map_err(|failure| {
        let wrong = if server_is_remote(&args) { "its address and headers" } else { "its command" };
        failure.hint(format!("nothing was added; correct {wrong}, or add it unseen with --no-probe"))
    })?;
    let kept = keep(&config, &server, &stored);
    let found = match &kept {
        Ok(_) => probe.pin(config.pins.first_use, &args.name).await,
        Err(_) => Ok(Found::default()),
    };
    probe.gateway.shutdown().await;
    let (file, found) = (kept?, found?);
    record(&config, AuditRow::about_server(Event::McpServerInstalled, &args.name)).await?;
    added(&args, &file, Some(&found))
}

fn server_is_remote(args: &McpAdd) -> bool {
    args.url.is_some() || args.target.first().is_some_and(|word| is_url(word))
}

/// Writes secrets and entry; the file of the entry.
fn keep(config: &Config, server: &ManagedServer, stored: &[(String, Secret)]) -> Result<PathBuf, Failure> {
    for (name, value) in stored {
        secrets::set_new(&config.config_dir, name, value).map_err(context::config_failure)?;
        tracing::warn!("the value of {name} was put into secrets.env; the entry names it as ${{{name}}}");
    }
    managed::write_server(&config.data_dir, server).map_err(context::config_failure)
}

/// A gateway that is connected to a server which is not configured yet.
struct Probe {
    gateway: Arc<Gateway>,
    caller: Caller,
}

/// Connects once, as the first persona it is bound to. What it shows is not pinned yet.
async fn probe(
    explicit: Option<&Path>,
    args: &McpAdd,
    server: &ManagedServer,
    stored: &[(String, Secret)],
) -> Result<Probe, Failure> {
    let persona = args.persona.first().map_or(toolgate_config::DEFAULT_PERSONA, String::as_str);
    let mut config = context::config_with(explicit, server, stored)?;
    config.pins.first_use = FirstUse::Review;
    let mut caller = context::operator(&config, persona)?;
    caller.server_only = Some(args.name.clone());
    let probe = Probe { gateway: context::gateway(config, "cli")?, caller };
    match probe.status(true, &args.name).await {
        Some(status) if status.state == ServerState::Connected => Ok(probe),
        status => {
            probe.gateway.shutdown().await;
            Err(match status {
                Some(status) => {
                    Failure::failed(status.detail.unwrap_or_else(|| "it did not connect".to_owned()))
                }
                None => Failure::usage(format!("persona '{persona}' is not bound to '{}'", args.name)),
            })
        }
    }
}

impl Probe {
    async fn status(&self, connect: bool, name: &str) -> Option<ServerStatus> {
        let statuses = self.gateway.status(&self.caller, connect).await;
        statuses.into_iter().find(|status| status.name == name)
    }

    /// Pins what the server shows, unless the operator wants to review it or it was pinned before.
    async fn pin(&self, first_use: FirstUse, name: &str) -> Result<Found, Failure> {
        if first_use == FirstUse::Pin {
            self.gateway
                .accept_if_new(&self.caller, name, &format!("uid {} (mcp add)", crate::sys::user()))
                .await
                .map_err(Failure::failed)?;
        }
        let status = self.status(false, name).await;
        let tools = status.map(|status| status.tools).unwrap_or_default();
        let approved = tools.iter().filter(|tool| tool.pin == "matches").count();
        Ok(Found { tools: tools.len(), approved })
    }
}

async fn record(config: &Config, row: AuditRow) -> Result<(), Failure> {
    context::store(config, "cli")?.append(row).await.map(|_| ()).map_err(context::store_failure)
}

/// What the first connection found.
#[derive(Default)]
struct Found {
    tools: usize,
    approved: usize,
}

fn added(args: &McpAdd, file: &Path, found: Option<&Found>) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({
            "server": args.name,
            "file": file,
            "tools": found.map(|found| found.tools),
            "approved": found.map(|found| found.approved),
        }));
    }
    let personas = match args.persona.as_slice() {
        [] => format!("persona {}", toolgate_config::DEFAULT_PERSONA),
        [one] => format!("persona {one}"),
        several => format!("personas {}", several.join(", ")),
    };
    let tools = output::count(found.map_or(0, |found| found.tools), "tool");
    match found {
        Some(found) if found.tools == found.approved => {
            output::line(&format!("added {} for {personas}: {tools}, pinned as they are now", args.name))?;
        }
        // Pins of an earlier server of this name, or `pins.first_use: review`.
        Some(found) => {
            let blocked = found.tools - found.approved;
            output::line(&format!(
                "added {} for {personas}: {tools}, {blocked} of them blocked because they are not the approved ones",
                args.name
            ))?;
            output::line(&format!(
                "next: toolgate mcp diff {0}, then toolgate mcp pin {0} --accept",
                args.name
            ))?;
        }
        None => output::line(&format!(
            "added {} for {personas}, unseen; its tools are pinned at the first connection",
            args.name
        ))?,
    }
    output::line(&format!("next: toolgate mcp tools {}", args.name))
}

/// The managed entry; literal secrets are moved to `stored`.
fn entry(args: &McpAdd, stored: &mut Vec<(String, Secret)>) -> Result<ManagedServer, Failure> {
    let (url, command) = target(args)?;
    let mut server = match (url, command) {
        (Some(url), _) => {
            let mut server = ManagedServer::http(&args.name, url);
            if args.transport.as_deref() == Some("sse") {
                server.set("transport", "sse");
            }
            let headers = headers(args, stored)?;
            if !headers.is_empty() {
                server.set("headers", headers);
            }
            server
        }
        (None, Some((command, arguments))) => {
            let here = names_files_here(&arguments);
            let arguments = hidden_arguments(&args.name, arguments, stored);
            let mut server = ManagedServer::stdio(&args.name, command, arguments);
            if let Some(here) = here {
                server.set("cwd", here);
            }
            let env = variables(args, stored)?;
            if !env.is_empty() {
                server.set("env", env);
            }
            server
        }
        (None, None) => return Err(Failure::usage("give a command after `--`, or a URL")),
    };
    let personas: Vec<&str> = args.persona.iter().map(String::as_str).collect();
    server.bind(&personas);
    Ok(server)
}

/// READMEs print `NAME URL --header …`: what follows a URL are options, not arguments of a command.
fn with_late_options(mut args: McpAdd) -> Result<McpAdd, Failure> {
    let Some(url) = args.target.first().filter(|word| is_url(word)).cloned() else { return Ok(args) };
    let late = args.target.split_off(1);
    if late.is_empty() {
        return Ok(args);
    }
    let words = ["toolgate", "mcp", "add", args.name.as_str(), "--url", url.as_str()];
    let again = words.into_iter().map(str::to_owned).chain(late);
    let parsed = Cli::try_parse_from(again).map_err(|error| Failure::usage(error.to_string().trim_end()))?;
    let Command::Mcp(Mcp::Add(late)) = parsed.command else { return Ok(args) };
    if !late.target.is_empty() {
        return Err(Failure::usage("a remote server has exactly one URL and no arguments"));
    }
    args.headers.extend(late.headers);
    args.env.extend(late.env);
    args.transport = late.transport.or(args.transport);
    args.no_probe |= late.no_probe;
    args.json |= late.json;
    if late.persona != [toolgate_config::DEFAULT_PERSONA] {
        args.persona = late.persona;
    }
    Ok(args)
}

fn is_url(word: &str) -> bool {
    word.starts_with("http://") || word.starts_with("https://")
}

/// A URL, or a command with its arguments.
type Target = (Option<String>, Option<(String, Vec<String>)>);

fn target(args: &McpAdd) -> Result<Target, Failure> {
    let words: Vec<String> = args.target.iter().skip_while(|word| *word == "--").cloned().collect();
    let remote = match args.transport.as_deref() {
        None => args.url.is_some() || words.first().is_some_and(|word| is_url(word)),
        Some("stdio") => false,
        Some("http" | "streamable-http" | "streamable_http" | "sse") => true,
        Some(other) => {
            return Err(Failure::usage(format!(
                "transport '{other}' is none of stdio, streamable-http (http), sse"
            )));
        }
    };
    if !remote {
        if !args.headers.is_empty() {
            return Err(Failure::usage("--header belongs to a remote server; this one is a command"));
        }
        let mut words = words.into_iter();
        let command = words.next().map(|command| absolute(&command)).transpose()?;
        // What was typed is meant literally; `${…}` in an entry would name a variable.
        let literal = |word: String| word.replace('$', "$$");
        return Ok((None, command.map(|command| (literal(command), words.map(literal).collect()))));
    }
    if !args.env.is_empty() {
        return Err(Failure::usage("--env belongs to a command; this server is remote"));
    }
    match (args.url.clone().or_else(|| words.first().cloned()), words.len()) {
        (Some(url), 0 | 1) if is_url(&url) => Ok((Some(url), None)),
        (url, _) => Err(Failure::usage(format!(
            "a remote server has exactly one http:// or https:// URL, not '{}'",
            url.unwrap_or_default()
        ))),
    }
}

/// An argument that looks like a secret becomes a variable as well: `servers.d/` holds none.
fn hidden_arguments(name: &str, arguments: Vec<String>, stored: &mut Vec<(String, Secret)>) -> Vec<String> {
    let prefix = name.to_ascii_uppercase().replace(['-', '.'], "_");
    let hide = |(index, argument): (usize, String)| {
        let (key, value) = argument.split_once('=').unwrap_or(("", argument.as_str()));
        if !looks_like_secret(key, value) {
            return argument;
        }
        let variable = format!("{prefix}_ARGUMENT_{}", index + 1);
        stored.push((variable.clone(), Secret::new(value)));
        if key.is_empty() { format!("${{{variable}}}") } else { format!("{key}=${{{variable}}}") }
    };
    arguments.into_iter().enumerate().map(hide).collect()
}

/// The working directory, where an argument names a file in it: servers start elsewhere.
fn names_files_here(arguments: &[String]) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let named = |word: &String| !word.starts_with(['-', '/']) && here.join(word).exists();
    arguments.iter().any(named).then(|| here.display().to_string())
}

/// A command given by a relative path is meant from here, and is started from elsewhere.
fn absolute(command: &str) -> Result<String, Failure> {
    if !command.contains('/') || command.starts_with('/') {
        return Ok(command.to_owned());
    }
    let here = std::env::current_dir().map_err(Failure::failed)?;
    let path = here.join(command).canonicalize();
    path.map(|path| path.display().to_string())
        .map_err(|error| Failure::failed(format!("the command {command} is not here: {error}")))
}

fn variables(args: &McpAdd, stored: &mut Vec<(String, Secret)>) -> Result<Map<String, Value>, Failure> {
    let mut env = Map::new();
    for given in &args.env {
        let value = match given.split_once('=') {
            Some((name, value)) => (name, reference(name, name, value, stored)),
            None => (given.as_str(), format!("${{{given}}}")),
        };
        if value.0.is_empty() {
            return Err(Failure::usage(format!("--env '{given}' has no name; write KEY=VALUE")));
        }
        env.insert(value.0.to_owned(), json!(value.1));
    }
    Ok(env)
}

fn headers(args: &McpAdd, stored: &mut Vec<(String, Secret)>) -> Result<Map<String, Value>, Failure> {
    let mut headers = Map::new();
    for given in &args.headers {
        let (name, value) = given
            .split_once(':')
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::usage("--header must be \"Name: value\""))?;
        let variable = format!("{}_{}", args.name, name).to_ascii_uppercase().replace(['-', '.'], "_");
        headers.insert(name.to_owned(), json!(reference(name, &variable, value, stored)));
    }
    Ok(headers)
}

/// The value as the entry holds it: a literal that looks like a secret becomes a variable.
fn reference(name: &str, variable: &str, value: &str, stored: &mut Vec<(String, Secret)>) -> String {
    if looks_like_secret(name, value) {
        stored.push((variable.to_owned(), Secret::new(value)));
        return format!("${{{variable}}}");
    }
    value.to_owned()
}

/// Removes a server of the managed layer. Its pins stay, so that adding it again is no first use.
pub(crate) async fn remove(explicit: Option<&Path>, args: &McpName) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    match config.servers.get(&args.name).map(|server| &server.origin) {
        None => return Err(super::list::no_server(&config, &args.name)),
        Some(Origin::Operator) => {
            let file = config.path.as_ref().map_or_else(String::new, |path| path.display().to_string());
            return Err(Failure::new(
                Code::Usage,
                format!("'{}' stands in {file}, which Toolgate does not change", args.name),
            )
            .hint("take it out there, or set enabled: false"));
        }
        Some(Origin::Managed(_)) => {}
    }
    managed::remove_server(&config.data_dir, &args.name).map_err(context::config_failure)?;
    record(&config, AuditRow::about_server(Event::McpServerRemoved, &args.name)).await?;
    if args.json {
        return output::json(&json!({ "removed": args.name }));
    }
    output::line(&format!("removed {}", args.name))
}
