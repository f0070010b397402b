//! `mcp call` and `mcp explain`.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{Call, Caller, Client, Deed, Explanation, Gateway, PolicyLine, Target};
use toolgate_wire::{Id, Outcome};

use crate::args::{McpCall, McpExplain};
use crate::context;
use crate::exit::{Code, Failure};
use crate::json::{at, content_texts};
use crate::output::{self, Format};

/// Calls a tool and prints what came back.
pub(crate) async fn call(explicit: Option<&Path>, args: McpCall) -> Result<(), Failure> {
    let arguments = arguments(args.json.as_deref().unwrap_or("{}"))?;
    let (gateway, caller) = super::open(explicit, &args.who)?;
    let target = super::target(&gateway, &args.tool);
    let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json!(args.tool));
    let timeout = args.timeout.map(Duration::from_millis);
    let outcome = send(&gateway, &caller, Deed::Call, target, params, timeout, args.wait).await?;
    print(&outcome, &args.output)
}

/// Sends one request of the operator's and closes the gateway; Ctrl-C cancels it.
pub(super) async fn send(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    deed: Deed,
    target: Target,
    params: String,
    timeout: Option<Duration>,
    wait: bool,
) -> Result<Outcome, Failure> {
    let server = match &target {
        Target::Original { server, .. } => Some(server.as_str()),
        Target::Exposed(_) => None,
    };
    context::check_locked(gateway, server).await?;
    let cancel = CancellationToken::new();
    let call = Call {
        request_id: Id::text("cli"),
        params: RawValue::from_string(params).map_err(Failure::usage)?,
        progress: None,
        logs: None,
        cancel: cancel.clone(),
        timeout,
        param_headers: None,
        hold: if wait { Duration::MAX } else { Duration::ZERO },
        client: Client::silent(),
        subscriber: None,
    };
    let mut running = Box::pin(gateway.forward_to(caller, deed, target, call));
    let outcome = tokio::select! {
        outcome = &mut running => outcome,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            running.await
        }
    };
    gateway.shutdown().await;
    Ok(outcome)
}

/// How arguments are written, for whoever wrote them otherwise.
const AN_OBJECT: &str = "give one object, in quotes that your shell leaves alone: --json '{\"path\":\".\"}', or `-` to read it from standard input";

/// The arguments as JSON text: from the command line, or from standard input for `-` (DSP-014).
pub(super) fn arguments(given: &str) -> Result<String, Failure> {
    let text = if given == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
        text
    } else {
        given.to_owned()
    };
    let limits = toolgate_wire::Limits::default();
    toolgate_wire::door::scan(text.trim().as_bytes(), &limits).map_err(|error| {
        Failure::usage(format!("the arguments are no usable JSON: {error}")).hint(AN_OBJECT)
    })?;
    if !text.trim_start().starts_with('{') {
        return Err(Failure::usage("the arguments must be a JSON object").hint(AN_OBJECT));
    }
    Ok(text.trim().to_owned())
}

/// Prints a result; a refusal, an error result and an error are exit codes as well.
fn print(outcome: &Outcome, format: &str) -> Result<(), Failure> {
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => {
            if format == "json" {
                output::raw_line(&format!(r#"{{"error":{}}}"#, error.to_json()))?;
            }
            let failure =
                Failure::failed(format!("the call failed with error {}: {}", error.code, error.message));
            let unknown = error.code == toolgate_wire::codes::INVALID_PARAMS;
            return Err(if unknown {
                failure.hint("see the names with `toolgate mcp tools`")
            } else {
                failure
            });
        }
    };
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let refused = value.pointer("/_meta/toolgate~1error/code").and_then(Value::as_str);
    if format == "json" {
        output::raw_line(result.get())?;
    } else if at(&value, "isError") != true {
        print_content(&value)?;
    }
    let text = || content_texts(&value).join("\n");
    match refused {
        Some(
            "denied" | "approval_required" | "approval_timed_out" | "too_many_asks" | "result_denied"
            | "adapter_refused",
        ) => Err(Failure::new(Code::Denied, text())),
        Some("authentication_required") => Err(Failure::new(Code::Authentication, text())),
        Some(_) => Err(Failure::failed(text())),
        None if at(&value, "isError") == true => {
            Err(Failure::failed(format!("the tool reports an error: {}", text())))
        }
        None => Ok(()),
    }
}

fn print_content(value: &Value) -> Result<(), Failure> {
    let blocks = at(value, "content").as_array().cloned().unwrap_or_default();
    for block in &blocks {
        match at(block, "text").as_str() {
            Some(text) => output::line(text)?,
            None => output::line(&format!(
                "[{} {}]",
                at(block, "type").as_str().unwrap_or("content"),
                at(block, "mimeType").as_str().or(at(block, "uri").as_str()).unwrap_or_default()
            ))?,
        }
    }
    if blocks.is_empty() && !at(value, "structuredContent").is_null() {
        output::json(at(value, "structuredContent"))?;
    }
    Ok(())
}

/// Says why a call would pass or not.
pub(crate) async fn explain(explicit: Option<&Path>, args: McpExplain) -> Result<(), Failure> {
    let arguments = arguments(&args.arguments)?;
    let (gateway, caller) = super::open(explicit, &args.who)?;
    let target = super::target(&gateway, &args.tool);
    let explained = gateway.explain(&caller, &target, &arguments).await;
    gateway.shutdown().await;
    let explanation = explained.map_err(Failure::failed)?;
    match Format::json(args.json) {
        Format::Json => output::json(&explanation),
        Format::Text => print_explanation(&explanation),
    }
}

fn print_explanation(explained: &Explanation) -> Result<(), Failure> {
    output::line(&format!(
        "{}.{} for persona {}: {}",
        explained.server, explained.tool, explained.persona, explained.call
    ))?;
    output::line(&format!("  reason      {}", explained.reason))?;
    output::line(&format!("  listed      {}", explained.list))?;
    output::line(&format!("  exposed as  {}", explained.exposed))?;
    let label = if explained.label.contains('/') { &*explained.label } else { "none that is of this alone" };
    output::line(&format!("  label       {label}"))?;
    let matched = explained.matched_approval.as_ref().or(explained.matched_allow.as_ref());
    output::line(&format!("  matched by  {}", matched.map_or("nothing", String::as_str)))?;
    if let Some(source) = &explained.approved_by {
        output::line(&format!("  approved by {source}"))?;
    }
    output::line(&format!("  pin         {} ({})", explained.pin, explained.definition))?;
    let listing = explained.listing.iter().map(|said| policy_row("list", said));
    let rows: Vec<Vec<String>> =
        explained.policies.iter().map(|said| policy_row("call", said)).chain(listing).collect();
    if rows.is_empty() {
        return output::line("  policies    none was asked: the reason above stands before all of them");
    }
    output::table(&["ABOUT", "POLICY", "DECISION", "DIGEST", "REASON"], &rows)
}

fn policy_row(about: &str, said: &PolicyLine) -> Vec<String> {
    let mut name = said.plugin.clone();
    if said.fallback {
        name += " (fallback)";
    }
    let decision = match said.mode {
        "monitor" => format!("{} (monitor: decides nothing)", said.decision),
        _ => said.decision.to_owned(),
    };
    let digest = said.digest.chars().take(19).collect();
    vec![about.to_owned(), name, decision, digest, said.reason.clone()]
}
