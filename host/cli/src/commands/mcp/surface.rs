//! `mcp tools`, `mcp resources`, `mcp read`, `mcp prompts`, `mcp prompt` and `mcp complete`.

use std::path::Path;
use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolgate_gateway::{Caller, Deed, Gateway, Target};
use toolgate_wire::{ListKind, Outcome, RawValue as Raw};

use super::{blocked, call};
use crate::args::surface::{Asking, McpComplete, McpListed, McpPrompt, McpRead, McpResources};
use crate::exit::{Code, Failure};
use crate::json::{at, text};
use crate::output;

/// Lists the tools that a persona sees.
pub(crate) async fn tools(explicit: Option<&Path>, args: McpListed) -> Result<(), Failure> {
    listed(explicit, args, ListKind::Tools, &["TOOL", "DESCRIPTION"], "name").await
}

/// Lists the prompts that a persona sees (PRM-002).
pub(crate) async fn prompts(explicit: Option<&Path>, args: McpListed) -> Result<(), Failure> {
    listed(explicit, args, ListKind::Prompts, &["PROMPT", "DESCRIPTION"], "name").await
}

/// Lists the resources or templates that a persona sees (RES-002, RES-003).
pub(crate) async fn resources(explicit: Option<&Path>, args: McpResources) -> Result<(), Failure> {
    if args.templates {
        let header = ["TEMPLATE", "DESCRIPTION"];
        return listed(explicit, args.listed, ListKind::Templates, &header, "uriTemplate").await;
    }
    listed(explicit, args.listed, ListKind::Resources, &["RESOURCE", "DESCRIPTION"], "uri").await
}

async fn listed(
    explicit: Option<&Path>,
    args: McpListed,
    kind: ListKind,
    header: &[&str],
    key: &str,
) -> Result<(), Failure> {
    let (gateway, mut caller) = super::open(explicit, &args.who)?;
    crate::context::check_locked(&gateway, args.server.as_deref()).await?;
    caller.server_only.clone_from(&args.server);
    if let Some(server) = &args.server
        && !gateway.config().servers.contains_key(server)
    {
        return Err(super::list::no_server(gateway.config(), server));
    }
    // What was approved last is shown of a server only where it does not answer, and then it is said.
    let statuses = blocked::connected(&gateway, &caller).await;
    let items = all(&gateway, &caller, kind).await;
    gateway.shutdown().await;
    let items = items?;
    let word = match kind {
        ListKind::Tools => "tool",
        ListKind::Prompts => "prompt",
        ListKind::Resources => "resource",
        ListKind::Templates => "template",
    };
    if args.json {
        return output::json(&json!({
            kind.member(): items,
            "blocked": blocked::as_json(&statuses, Some(word)),
            "not_connected": blocked::not_connected(&statuses),
        }));
    }
    let rows: Vec<Vec<String>> = items
        .iter()
        .map(|raw| {
            let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            let first_line = text(&value, "description").lines().next().unwrap_or("");
            vec![text(&value, key).to_owned(), first_line.chars().take(80).collect()]
        })
        .collect();
    output::table(header, &rows)?;
    blocked::print(&statuses, Some(word))
}

/// Every page of a listing.
pub(super) async fn all(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    kind: ListKind,
) -> Result<Vec<Box<Raw>>, Failure> {
    let mut items = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let page = gateway
            .list(caller, kind, cursor.as_deref())
            .await
            .map_err(|error| Failure::failed(error.message))?;
        items.extend(page.items);
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => return Ok(items),
        }
    }
}

/// Reads one resource (RES-004).
pub(crate) async fn read(explicit: Option<&Path>, args: McpRead) -> Result<(), Failure> {
    let target = Target::Original { server: args.server, tool: args.uri.clone() };
    let params = json!({ "uri": args.uri });
    let result = ask(explicit, &args.how.asking, Deed::Read, |_| target, &params, args.how.json).await?;
    if args.how.json {
        return output::raw_line(result.get());
    }
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    for content in at(&value, "contents").as_array().into_iter().flatten() {
        match at(content, "text").as_str() {
            Some(text) => output::line(text)?,
            None => {
                output::line(&format!("[binary {} {}]", text(content, "mimeType"), text(content, "uri")))?;
            }
        }
    }
    Ok(())
}

/// Renders one prompt (PRM-003).
pub(crate) async fn prompt(explicit: Option<&Path>, args: McpPrompt) -> Result<(), Failure> {
    let arguments = call::arguments(args.json.as_deref().unwrap_or("{}"))?;
    let arguments: Value = serde_json::from_str(&arguments).map_err(Failure::usage)?;
    let params = json!({ "name": args.prompt, "arguments": arguments });
    let as_json = args.output == "json";
    let target = |gateway: &Gateway| super::target(gateway, &args.prompt);
    let result = ask(explicit, &args.asking, Deed::Prompt, target, &params, as_json).await?;
    if as_json {
        return output::raw_line(result.get());
    }
    let value: Value = serde_json::from_str(result.get()).unwrap_or_default();
    for message in at(&value, "messages").as_array().into_iter().flatten() {
        let content = at(message, "content");
        let shown = at(content, "text")
            .as_str()
            .map_or_else(|| format!("[{}]", text(content, "type")), str::to_owned);
        output::line(&format!("{}: {shown}", text(message, "role")))?;
    }
    Ok(())
}

/// Completes an argument.
pub(crate) async fn complete(explicit: Option<&Path>, args: McpComplete) -> Result<(), Failure> {
    let Some((name, value)) = args.argument.split_once('=') else {
        return Err(Failure::usage("--argument needs NAME=TEXT").hint("for example --argument path=src"));
    };
    let (reference, subject) = match (args.prompt, args.template) {
        (Some(prompt), _) => (json!({ "type": "ref/prompt", "name": prompt }), prompt),
        (None, template) => {
            let uri = template.unwrap_or_default();
            (json!({ "type": "ref/resource", "uri": uri }), uri)
        }
    };
    let mut params = json!({ "ref": reference, "argument": { "name": name, "value": value } });
    let mut settled = serde_json::Map::new();
    for given in &args.context {
        let Some((name, value)) = given.split_once('=') else {
            return Err(Failure::usage(format!("--context {given} is not NAME=VALUE"))
                .hint("for example --context owner=jane --argument repository=to"));
        };
        if settled.insert(name.to_owned(), json!(value)).is_some() {
            return Err(Failure::usage(format!("--context gives {name} twice")));
        }
    }
    if let Some(object) = params.as_object_mut().filter(|_| !settled.is_empty()) {
        object.insert("context".to_owned(), json!({ "arguments": settled }));
    }
    let target = Target::Original { server: args.server, tool: subject };
    let result = ask(explicit, &args.how.asking, Deed::Complete, |_| target, &params, args.how.json).await?;
    if args.how.json {
        return output::raw_line(result.get());
    }
    let answer: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let values = at(at(&answer, "completion"), "values").as_array().cloned().unwrap_or_default();
    values.iter().filter_map(Value::as_str).try_for_each(output::line)
}

/// One request to its result; a refusal and an error are exit codes.
async fn ask(
    explicit: Option<&Path>,
    how: &Asking,
    deed: Deed,
    target: impl FnOnce(&Gateway) -> Target,
    params: &Value,
    as_json: bool,
) -> Result<Box<RawValue>, Failure> {
    let (gateway, caller) = super::open(explicit, &how.who)?;
    let target = target(&gateway);
    let outcome = call::send(&gateway, &caller, deed, target, params.to_string(), None, how.wait).await?;
    match outcome {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => {
            if as_json {
                output::raw_line(&format!(r#"{{"error":{}}}"#, error.to_json()))?;
            }
            let code = match error.code {
                toolgate_wire::codes::DENIED | toolgate_wire::codes::ASK_PENDING => Code::Denied,
                toolgate_wire::codes::AUTHENTICATION_NEEDED => Code::Authentication,
                _ => Code::Failed,
            };
            Err(Failure::new(code, error.message))
        }
    }
}
