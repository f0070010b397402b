//! `mcp pin` and `mcp diff`.

use std::path::Path;

use serde_json::json;
use toolgate_config::managed;
use toolgate_gateway::{Drift, DriftKind};
use toolgate_store::{AuditRow, Event};

use crate::args::{McpName, McpPin};
use crate::exit::{Code, Failure};
use crate::{context, operator, output};

/// Shows a server's pins, or accepts what it shows now.
pub(crate) async fn pin(explicit: Option<&Path>, args: McpPin) -> Result<(), Failure> {
    if args.accept {
        return accept(explicit, args).await;
    }
    let (gateway, caller) = super::open(explicit, &args.who)?;
    let statuses = gateway.status(&caller, true).await;
    gateway.shutdown().await;
    let status = statuses
        .into_iter()
        .find(|status| status.name == args.name)
        .ok_or_else(|| super::list::unbound(gateway.config(), &args.name, &args.who.persona))?;
    if args.json {
        return output::json(&status);
    }
    output::line(&format!("{} pinned: {}", status.name, status.pinned))?;
    let kinds = [
        ("tool", &status.tools),
        ("prompt", &status.prompts),
        ("resource", &status.resources),
        ("template", &status.templates),
    ];
    let items = kinds.into_iter().flat_map(|(kind, items)| items.iter().map(move |item| (kind, item)));
    let items = items.chain(status.instructions.iter().map(|item| ("instructions", item)));
    let rows: Vec<Vec<String>> = items
        .map(|(kind, item)| vec![kind.to_owned(), item.name.clone(), item.pin.clone(), item.digest.clone()])
        .collect();
    output::table(&["KIND", "NAME", "PIN", "DIGEST"], &rows)?;
    match &status.surface {
        Some(surface) => output::line(&format!("pinned_tool_hash: \"{surface}\"")),
        None => Err(Failure::failed(format!(
            "{} is not connected: {}",
            status.name,
            status.detail.unwrap_or_default()
        ))),
    }
}

/// Makes what the server shows now its approved surface. A file of the managed layer that Toolgate did
/// not write is shown and accepted first, as it is.
async fn accept(explicit: Option<&Path>, args: McpPin) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let stranger = config.servers.get(&args.name).is_some_and(|server| !server.accepted);
    let mut what = format!("This approves what the server {} shows now.", args.name);
    let mut entry = None;
    if stranger {
        let text = managed::text_of(&config.data_dir, &args.name).map_err(context::config_failure)?;
        let text = text.ok_or_else(|| super::list::no_server(&config, &args.name))?;
        what = format!(
            "{what}\nIts entry in servers.d was not written by Toolgate, or changed since. It counts from now on, as it is:\n{}",
            text.expose()
        );
        if !args.json {
            output::line(&what)?;
        }
        entry = Some(text);
    }
    let proven = operator::prove(&config, &what)?;
    if let Some(entry) = entry {
        managed::accept(&config.data_dir, &args.name, entry.expose()).map_err(context::config_failure)?;
        let row = AuditRow::about_server(Event::McpServerInstalled, &args.name).with("accepted", true);
        let store = context::store(&config, "cli")?;
        store.append(proven.on(row)).await.map_err(context::store_failure)?;
    }
    let (gateway, caller) = super::open(explicit, &args.who)?;
    let accepted = gateway.accept(&caller, &args.name, args.surface.as_deref(), &proven.approver()).await;
    gateway.shutdown().await;
    let accepted = accepted.map_err(Failure::integrity)?;
    if args.json {
        return output::json(
            &json!({ "server": args.name, "accepted": accepted.definitions, "surface": accepted.surface, "drift": accepted.drift }),
        );
    }
    // What was approved is shown, since it may differ from what was read before.
    accepted.drift.iter().try_for_each(print_drift)?;
    output::line(&format!("accepted {} definitions of {}", accepted.definitions, args.name))
}

/// Shows how the tools differ from the approved ones; exit code 5 where they do.
pub(crate) async fn diff(explicit: Option<&Path>, args: McpName) -> Result<(), Failure> {
    let (gateway, caller) = super::open(explicit, &args.who)?;
    if !gateway.config().servers.contains_key(&args.name) {
        return Err(super::list::no_server(gateway.config(), &args.name));
    }
    let drifts = gateway.diff(&caller, &args.name).await;
    gateway.shutdown().await;
    let drifts = drifts.map_err(Failure::failed)?;
    if args.json {
        output::json(&json!({ "server": args.name, "drift": drifts }))?;
    } else if drifts.is_empty() {
        output::line(&format!("{} shows exactly what was approved", args.name))?;
    } else {
        drifts.iter().try_for_each(print_drift)?;
    }
    if drifts.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Code::Integrity,
        format!("{} definitions of {} are not the approved ones", drifts.len(), args.name),
    )
    .hint(format!("read the difference, then approve it with `toolgate mcp pin {} --accept`", args.name)))
}

fn print_drift(drift: &Drift) -> Result<(), Failure> {
    let kind = match drift.kind {
        DriftKind::Added => "new",
        DriftKind::Removed => "gone",
        DriftKind::Changed => "changed",
    };
    output::line(&format!("{} {} ({kind})", drift.what, drift.tool))?;
    output::line(&drift.diff)
}
