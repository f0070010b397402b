//! `mcp list`, `mcp get`, `mcp status` and `mcp tools`.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_config::{Origin, Transport};
use toolgate_gateway::indexes::standings;
use toolgate_gateway::{ServerState, ServerStatus, Target};
use toolgate_store::OperatorProof;
use toolgate_wire::ListKind;

use super::surface;
use crate::args::{McpList, McpName, McpStatus};
use crate::commands::audit;
use crate::exit::Failure;
use crate::json::{at, text};
use crate::{context, operator, output};

/// Lists the configured servers without connecting, or shows one tool.
pub(crate) async fn list(explicit: Option<&Path>, args: McpList) -> Result<(), Failure> {
    if let Some(selector) = &args.selector {
        return one_tool(explicit, &args, selector).await;
    }
    let config = context::config(explicit)?;
    if args.json {
        return output::json(at(&toolgate_config::masked(&config), "servers"));
    }
    if config.servers.is_empty() {
        return output::line("no servers yet; add one with `toolgate mcp add NAME -- COMMAND`");
    }
    let rows: Vec<Vec<String>> = config
        .servers
        .values()
        .map(|server| {
            let target = match &server.transport {
                Transport::Stdio { command, args, .. } => {
                    format!("{command} ({} arguments)", args.len())
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
                target,
            ]
        })
        .collect();
    output::table(&["NAME", "TRANSPORT", "ENABLED", "FROM", "TARGET"], &rows)
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
    let listed = tokio::time::timeout(wait, surface::all(&gateway, &caller, ListKind::Tools)).await;
    gateway.shutdown().await;
    let tools =
        listed.map_err(|_| Failure::failed(format!("no answer within {} ms", wait.as_millis())))??;
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
    let tool = found.ok_or_else(|| {
        Failure::failed(format!("persona '{}' has no tool {selector}", args.who.persona))
            .hint("see `toolgate mcp tools`")
    })?;
    let shown = if args.schema { at(&tool, "inputSchema") } else { &tool };
    if args.json {
        return output::json(shown);
    }
    output::line(&serde_json::to_string_pretty(shown).map_err(Failure::failed)?)
}

/// Shows one entry, secrets masked.
pub(crate) fn get(explicit: Option<&Path>, args: &McpName) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let masked = toolgate_config::masked(&config);
    let entry = at(&masked, "servers").get(&args.name).ok_or_else(|| no_server(&args.name))?;
    if args.json {
        return output::json(entry);
    }
    output::line(&serde_json::to_string_pretty(entry).map_err(Failure::failed)?)
}

pub(crate) fn no_server(name: &str) -> Failure {
    Failure::failed(format!("there is no server '{name}'")).hint("see `toolgate mcp list`")
}

/// Connects to every server and shows its state.
pub(crate) async fn status(explicit: Option<&Path>, args: McpStatus) -> Result<(), Failure> {
    let (gateway, caller) = super::open(explicit, &args.who)?;
    crate::context::check_locked(&gateway, None).await?;
    let mut statuses = gateway.status(&caller, true).await;
    gateway.shutdown().await;
    if let Some(name) = &args.name {
        statuses.retain(|status| status.name == *name);
        if statuses.is_empty() {
            return Err(no_server(name));
        }
    }
    if args.json {
        let sinks = audit::sinks::troubles(gateway.config());
        return output::json(
            &json!({ "servers": statuses, "indexes": standings(gateway.config()), "audit_sinks": sinks }),
        );
    }
    if statuses.is_empty() {
        return output::line(&format!("persona {} has no servers", args.who.persona));
    }
    statuses.iter().try_for_each(print_status)?;
    for standing in standings(gateway.config()).iter().filter(|standing| !standing.is_good()) {
        tracing::warn!("index {}: {}", standing.index, standing.detail);
    }
    for trouble in audit::sinks::troubles(gateway.config()) {
        tracing::warn!("{trouble}");
    }
    if operator::proof(gateway.config())? == OperatorProof::None {
        tracing::warn!("{}", operator::UNPROVEN);
    }
    Ok(())
}

fn print_status(status: &ServerStatus) -> Result<(), Failure> {
    let state = match status.state {
        ServerState::Connected => "connected",
        ServerState::Starting => "starting",
        ServerState::Disabled => "disabled",
        ServerState::Failed => "failed",
    };
    let version = status.protocol_version.as_deref().unwrap_or("");
    let line = format!("{}: {state} {} {version}", status.name, status.era.unwrap_or(""));
    output::line(line.trim_end())?;
    if let Some(detail) = &status.detail {
        output::line(&format!("  reason: {detail}"))?;
    }
    if !status.capabilities.is_empty() {
        output::line(&format!("  capabilities: {}", status.capabilities.join(", ")))?;
    }
    output::line(&format!("  pinned: {}", status.pinned))?;
    for tool in &status.tools {
        output::line(&format!("  {} ({}), pin {}", tool.name, tool.exposed, tool.pin))?;
    }
    for (items, what) in
        [(&status.prompts, "prompt"), (&status.resources, "resource"), (&status.templates, "template")]
    {
        for item in items {
            output::line(&format!("  {what} {}, pin {}", item.name, item.pin))?;
        }
    }
    if let Some(instructions) = &status.instructions {
        output::line(&format!("  instructions, pin {}", instructions.pin))?;
    }
    for (tool, reason) in &status.dropped {
        output::line(&format!("  left out: {tool}: {reason}"))?;
    }
    Ok(())
}
