//! `mcp list`, `mcp get`, `mcp status` and `mcp tools`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_config::{Config, Origin, Transport, nearest};
use toolgate_downstream::local::Want;
use toolgate_gateway::indexes::standings;
use toolgate_gateway::{Caller, ServerState, ServerStatus, Target};
use toolgate_store::OperatorProof;
use toolgate_wire::ListKind;

use super::{blocked, surface};
use crate::args::{McpList, McpName, McpStatus, Who};
use crate::commands::audit;
use crate::commands::serve::client;
use crate::exit::Failure;
use crate::json::{at, text};
use crate::{context, operator, output};

/// Lists the configured servers without connecting, or shows one tool.
pub(crate) async fn list(explicit: Option<&Path>, args: McpList) -> Result<(), Failure> {
    if let Some(selector) = &args.selector {
        return one_tool(explicit, &args, selector).await;
    }
    let loaded = context::loaded(explicit)?;
    let statuses = blocked::unconnected(&loaded, &args.who).await;
    let config = &loaded.config;
    if args.json {
        let masked = toolgate_config::masked(config);
        let mut servers = at(&masked, "servers").clone();
        for (name, entry) in servers.as_object_mut().into_iter().flatten() {
            stand(entry, &statuses, name);
        }
        return output::json(&servers);
    }
    if config.servers.is_empty() {
        return output::line("no servers yet; add one with `toolgate mcp add NAME -- COMMAND`");
    }
    let rows: Vec<Vec<String>> = config
        .servers
        .values()
        .map(|server| {
            let target = match &server.transport {
                Transport::Stdio { args, .. } => {
                    format!("{} ({} arguments)", server.shown_command().unwrap_or_default(), args.len())
                }
                Transport::StreamableHttp { .. } | Transport::Sse { .. } => {
                    server.shown_url().unwrap_or_default()
                }
            };
            let origin = match &server.origin {
                Origin::Operator => "toolgate.yaml",
                Origin::Managed(_) => "mcp add",
            };
            let enabled = if server.enabled { "yes" } else { "no" };
            vec![
                server.name.clone(),
                server.transport.name().to_owned(),
                enabled.to_owned(),
                origin.to_owned(),
                blocked::cell(&statuses, &server.name),
                target,
            ]
        })
        .collect();
    output::table(&["NAME", "TRANSPORT", "ENABLED", "FROM", "BLOCKED", "TARGET"], &rows)?;
    statuses.iter().try_for_each(|status| blocked::print_of(status, None, ""))
}

async fn one_tool(explicit: Option<&Path>, args: &McpList, selector: &str) -> Result<(), Failure> {
    let (gateway, mut caller) = super::open(explicit, &args.who)?;
    crate::context::check_locked(&gateway, None).await?;
    let target = super::target(&gateway, selector);
    // No other server is started, waited for or listed for it (DSP-020).
    if let Target::Original { server, .. } = &target {
        caller.server_only = Some(server.clone());
    }
    let wait = args.timeout.map_or(Duration::from_mins(1), Duration::from_millis);
    let listing = async {
        let statuses = blocked::connected(&gateway, &caller).await;
        (statuses, surface::all(&gateway, &caller, ListKind::Tools).await)
    };
    let listed = tokio::time::timeout(wait, listing).await;
    gateway.shutdown().await;
    let (statuses, tools) =
        listed.map_err(|_| Failure::failed(format!("no answer within {} ms", wait.as_millis())))?;
    let tools = tools?;
    let exposed = match &target {
        Target::Exposed(name) => name.clone(),
        Target::Original { server, tool } => {
            toolgate_labels::exposed_name(server, tool, gateway.config().serve.max_tool_name)
        }
    };
    let found = tools.iter().find_map(|raw| {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        (text(&value, "name") == exposed).then_some(value)
    });
    let blocked = match &target {
        Target::Original { server, tool } => blocked::refusal(&statuses, server, tool),
        Target::Exposed(_) => None,
    };
    let tool = found.ok_or_else(|| {
        if let Some(blocked) = blocked {
            return blocked;
        }
        Failure::failed(format!("persona '{}' has no tool {selector}", args.who.persona))
            .hint("see `toolgate mcp tools`")
    })?;
    let shown = if args.schema { at(&tool, "inputSchema") } else { &tool };
    if args.json {
        return output::json(shown);
    }
    output::line(&serde_json::to_string_pretty(shown).map_err(Failure::failed)?)
}

/// Shows one entry, secrets masked, and how the server stands.
pub(crate) async fn get(explicit: Option<&Path>, args: &McpName) -> Result<(), Failure> {
    let loaded = context::loaded(explicit)?;
    let masked = toolgate_config::masked(&loaded.config);
    let entry =
        at(&masked, "servers").get(&args.name).ok_or_else(|| no_server(&loaded.config, &args.name))?;
    let statuses = blocked::unconnected(&loaded, &args.who).await;
    if args.json {
        let mut entry = entry.clone();
        stand(&mut entry, &statuses, &args.name);
        return output::json(&entry);
    }
    output::line(&serde_json::to_string_pretty(entry).map_err(Failure::failed)?)?;
    let mut own = statuses.iter().filter(|status| status.name == args.name);
    own.try_for_each(|status| blocked::print_of(status, None, ""))
}

/// Adds to an entry how the server stands, where that is known.
fn stand(entry: &mut Value, statuses: &[ServerStatus], name: &str) {
    let status = statuses.iter().find(|status| status.name == name);
    if let (Some(entry), Some(status)) = (entry.as_object_mut(), status) {
        let now = json!({ "state": status.state, "pinned": status.pinned, "blocked": status.blocked });
        entry.insert("now".to_owned(), now);
    }
}

/// A name that no server has, with the one that may have been meant.
pub(crate) fn no_server(config: &Config, name: &str) -> Failure {
    let failure = Failure::failed(format!("there is no server '{name}'"));
    match nearest(name, config.servers.keys().map(String::as_str)) {
        Some(near) => failure.hint(format!("did you mean '{near}'? `toolgate mcp list` shows all")),
        None if config.servers.is_empty() => failure.hint("add one with `toolgate mcp add NAME -- COMMAND`"),
        None => failure.hint("see `toolgate mcp list`"),
    }
}

/// A server that this persona does not see, or that nobody does.
pub(crate) fn unbound(config: &Config, name: &str, persona: &str) -> Failure {
    match config.servers.get(name) {
        None => no_server(config, name),
        Some(server) if !server.enabled => {
            Failure::failed(format!("server '{name}' is switched off")).hint("set `enabled: true` in its entry")
        }
        Some(_) => Failure::failed(format!("persona '{persona}' is not bound to server '{name}'")).hint(format!(
            "say --persona NAME for one that is, or add it under personas.{persona}.servers in toolgate.yaml"
        )),
    }
}

/// Shows the state of every server as the gateway that runs sees it; where none runs, connects to each.
pub(crate) async fn status(explicit: Option<&Path>, args: McpStatus) -> Result<(), Failure> {
    let loaded = context::loaded(explicit)?;
    let want = Want::Status { persona: args.who.persona.clone(), lane: args.who.lane.as_str().to_owned() };
    let running = match client::ask(&loaded, want).await {
        Ok(answer) => answer.map(statuses_of).transpose()?,
        Err(failure) => {
            let hint = failure.hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            tracing::warn!("{}{hint}; this is what servers show here instead", failure.message);
            None
        }
    };
    let config = Arc::new(loaded.config);
    let mut statuses = match running {
        Some(statuses) => statuses,
        None => connected(&config, &args.who).await?,
    };
    if let Some(name) = &args.name {
        statuses.retain(|status| status.name == *name);
        if statuses.is_empty() {
            return Err(unbound(&config, name, &args.who.persona));
        }
    }
    if args.json {
        let sinks = audit::sinks::troubles(&config);
        return output::json(
            &json!({ "servers": statuses, "indexes": standings(&config), "audit_sinks": sinks }),
        );
    }
    if statuses.is_empty() {
        return output::line(&format!("persona {} has no servers", args.who.persona));
    }
    statuses.iter().try_for_each(print_status)?;
    for standing in standings(&config).iter().filter(|standing| !standing.is_good()) {
        tracing::warn!("index {}: {}", standing.index, standing.detail);
    }
    for trouble in audit::sinks::troubles(&config) {
        tracing::warn!("{trouble}");
    }
    if operator::proof(&config)? == OperatorProof::None {
        tracing::warn!("{}", operator::UNPROVEN);
    }
    Ok(())
}

/// Starts a server again in the gateway that runs.
pub(crate) async fn reconnect(explicit: Option<&Path>, args: McpName) -> Result<(), Failure> {
    let loaded = context::loaded(explicit)?;
    if !loaded.config.servers.contains_key(&args.name) {
        return Err(no_server(&loaded.config, &args.name));
    }
    let want = Want::Reconnect {
        persona: args.who.persona.clone(),
        lane: args.who.lane.as_str().to_owned(),
        server: args.name.clone(),
    };
    let Some(answer) = client::ask(&loaded, want).await? else {
        return Err(Failure::failed("no gateway runs for this data directory, so nothing is connected")
            .hint(
                "a server starts with the first client that needs it; `toolgate mcp status` tries it now",
            ));
    };
    let statuses = statuses_of(answer)?;
    let status = statuses.iter().find(|status| status.name == args.name);
    let status = status.ok_or_else(|| unbound(&loaded.config, &args.name, &args.who.persona))?;
    if args.json {
        return output::json(status);
    }
    print_status(status)
}

pub(super) fn statuses_of(answer: Value) -> Result<Vec<ServerStatus>, Failure> {
    serde_json::from_value(answer)
        .map_err(|error| Failure::failed(format!("the gateway's answer cannot be read: {error}")))
}

/// The state of servers that are connected for this command alone.
async fn connected(config: &Arc<Config>, who: &Who) -> Result<Vec<ServerStatus>, Failure> {
    let caller = Caller { lane: who.lane, ..context::operator(config, &who.persona)? };
    let gateway = context::gateway(Config::clone(config), "cli")?;
    context::check_locked(&gateway, None).await?;
    let statuses = gateway.status(&caller, true).await;
    gateway.shutdown().await;
    Ok(statuses)
}

fn print_status(status: &ServerStatus) -> Result<(), Failure> {
    let state = match status.state {
        ServerState::Connected => "connected",
        ServerState::Starting => "starting",
        ServerState::Disabled => "disabled",
        ServerState::Failed => "failed",
    };
    let version = status.protocol_version.as_deref().unwrap_or("");
    let line = format!("{}: {state} {} {version}", status.name, status.era.as_deref().unwrap_or(""));
    output::one_line(line.trim_end())?;
    if let Some(detail) = &status.detail {
        output::one_line(&format!("  reason: {detail}"))?;
    } else if let Some(last) = &status.last_error {
        output::one_line(&format!("  last error, at {}, over since: {}", last.at, last.reason))?;
    }
    if let Some(tasks) = status.tasks.filter(|tasks| !tasks.is_none()) {
        output::one_line(&format!(
            "  tasks: {} active, {} queued, {} lost, {} with something that nobody took (see `toolgate mcp tasks \
             --server {}`)",
            tasks.active, tasks.queued, tasks.lost, tasks.delivery_pending, status.name
        ))?;
    }
    if !status.capabilities.is_empty() {
        output::one_line(&format!("  capabilities: {}", status.capabilities.join(", ")))?;
    }
    output::one_line(&format!("  pinned: {}", status.pinned))?;
    for tool in &status.tools {
        output::one_line(&format!("  {} ({}), pin {}", tool.name, tool.exposed, tool.pin))?;
    }
    for (items, what) in
        [(&status.prompts, "prompt"), (&status.resources, "resource"), (&status.templates, "template")]
    {
        for item in items {
            output::one_line(&format!("  {what} {}, pin {}", item.name, item.pin))?;
        }
    }
    if let Some(instructions) = &status.instructions {
        output::one_line(&format!("  instructions, pin {}", instructions.pin))?;
    }
    for entry in &status.subscriptions {
        for uri in &entry.uris {
            output::one_line(&format!("  subscription {uri}, {}", entry.standing(uri)))?;
        }
    }
    blocked::print_of(status, None, "  ")?;
    for (tool, reason) in &status.dropped {
        output::one_line(&format!("  left out: {tool}: {reason}"))?;
    }
    Ok(())
}
