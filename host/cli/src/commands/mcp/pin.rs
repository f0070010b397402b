//! `mcp pin` and `mcp diff`.

use std::path::Path;

use serde_json::json;
use toolgate_gateway::{Drift, DriftKind};

use crate::args::{McpName, McpPin};
use crate::exit::{Code, Failure};
use crate::{operator, output};

/// Shows a server's pins, or accepts what it shows now.
pub(crate) async fn pin(explicit: Option<&Path>, args: McpPin) -> Result<(), Failure> {
    let (gateway, caller) = super::open(explicit, &args.persona)?;
    if args.accept {
        let what = format!("This approves what the server {} shows now.", args.name);
        let proven = operator::prove(gateway.config(), &what);
        if proven.is_err() {
            gateway.shutdown().await;
        }
        let _ = proven?;
        let accepted = gateway.accept(&caller, &args.name, args.surface.as_deref()).await;
        gateway.shutdown().await;
        let accepted = accepted.map_err(Failure::integrity)?;
        if args.json {
            return output::json(
                &json!({ "server": args.name, "accepted": accepted.definitions, "surface": accepted.surface, "drift": accepted.drift }),
            );
        }
        // What was approved is shown, since it may differ from what was read before.
        accepted.drift.iter().try_for_each(print_drift)?;
        return output::line(&format!("accepted {} definitions of {}", accepted.definitions, args.name));
    }
    let statuses = gateway.status(&caller, true).await;
    gateway.shutdown().await;
    let status = statuses
        .into_iter()
        .find(|status| status.name == args.name)
        .ok_or_else(|| super::list::no_server(&args.name))?;
    if args.json {
        return output::json(&status);
    }
    output::line(&format!("{} pinned: {}", status.name, status.pinned))?;
    let rows: Vec<Vec<String>> = status
        .tools
        .iter()
        .map(|tool| vec![tool.name.clone(), tool.pin.to_owned(), tool.digest.clone()])
        .collect();
    output::table(&["TOOL", "PIN", "DIGEST"], &rows)?;
    match &status.surface {
        Some(surface) => output::line(&format!("pinned_tool_hash: \"{surface}\"")),
        None => Err(Failure::failed(format!(
            "{} is not connected: {}",
            status.name,
            status.detail.unwrap_or_default()
        ))),
    }
}

/// Shows how the tools differ from the approved ones; exit code 5 where they do.
pub(crate) async fn diff(explicit: Option<&Path>, args: McpName) -> Result<(), Failure> {
    let (gateway, caller) = super::open(explicit, &args.persona)?;
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
    output::line(&format!("{} ({kind})", drift.tool))?;
    output::line(&drift.diff)
}
