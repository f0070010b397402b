//! `mcp record`: documents from a server of the operator's, for the author of a plugin.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{Call, Caller, Client, Gateway, Target};
use toolgate_plugins::Recorded;
use toolgate_store::Deed;
use toolgate_wire::{Id, ListKind, Outcome};

use crate::args::record::McpRecord;
use crate::exit::Failure;
use crate::output;

/// Lists the server's tools, makes the calls that were asked for under the policies in force, and
/// writes what plugins were asked, or would have been.
pub(super) async fn record(explicit: Option<&Path>, args: McpRecord) -> Result<(), Failure> {
    let calls = args.calls.iter().map(|text| parse(text)).collect::<Result<Vec<_>, _>>()?;
    let (gateway, mut caller) = super::open(explicit, &args.who)?;
    if !gateway.config().servers.contains_key(&args.server) {
        let known: Vec<&str> = gateway.config().servers.keys().map(String::as_str).collect();
        let text = format!("there is no server '{}'; there are: {}", args.server, known.join(", "));
        return Err(Failure::usage(text));
    }
    caller.server_only = Some(args.server.clone());
    gateway.start_recording();
    let listed = gateway.list(&caller, ListKind::Tools, None).await;
    for (tool, arguments) in &calls {
        if let Some(why) = call(&gateway, &caller, &args.server, tool, arguments).await? {
            output::note(&format!(
                "{}.{tool} came to no result, and what was asked until then is kept: {why}",
                args.server
            ));
        }
    }
    gateway.shutdown().await;
    listed.map_err(|error| Failure::failed(format!("the tools could not be listed: {}", error.message)))?;
    let recorded = gateway.recording();
    if recorded.is_empty() {
        return Err(Failure::failed(format!("server '{}' showed nothing to record", args.server))
            .hint(format!("see `toolgate mcp status {}`", args.server)));
    }
    let written = write(&args.out, &recorded)?;
    if args.json {
        return output::json(&json!({ "documents": written, "directory": args.out }));
    }
    for name in &written {
        output::line(&args.out.join(name).display().to_string())?;
    }
    output::note(
        "what is named or begins like a secret was taken out; read the documents before you publish them",
    );
    Ok(())
}

/// `TOOL` or `TOOL={…}`.
fn parse(text: &str) -> Result<(String, Box<RawValue>), Failure> {
    let (tool, arguments) = text.split_once('=').unwrap_or((text, "{}"));
    let arguments = super::call::arguments(arguments)?;
    Ok((tool.to_owned(), RawValue::from_string(arguments).map_err(Failure::usage)?))
}

/// One call; the text where it was refused or failed.
async fn call(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    server: &str,
    tool: &str,
    arguments: &RawValue,
) -> Result<Option<String>, Failure> {
    let params = format!(r#"{{"name":{},"arguments":{}}}"#, json!(tool), arguments.get());
    let call = Call {
        request_id: Id::text("record"),
        params: RawValue::from_string(params).map_err(Failure::usage)?,
        progress: None,
        logs: None,
        cancel: CancellationToken::new(),
        timeout: None,
        param_headers: None,
        hold: Duration::ZERO,
        client: Client::silent(),
        subscriber: None,
    };
    let target = Target::Original { server: server.to_owned(), tool: tool.to_owned() };
    Ok(match gateway.forward_to(caller, Deed::Call, target, call).await {
        Outcome::Error(error) => Some(error.message),
        Outcome::Result(result) => {
            let value: serde_json::Value = serde_json::from_str(result.get()).unwrap_or_default();
            let refused = value.pointer("/_meta/toolgate~1error/code").is_some();
            refused.then(|| crate::json::content_texts(&value).join("\n"))
        }
    })
}

/// One file for each document. What is there already is never replaced: it may be edited by hand.
fn write(directory: &Path, recorded: &[Recorded]) -> Result<Vec<String>, Failure> {
    let failed = |path: &Path, error: &std::io::Error| {
        Failure::failed(format!("{} cannot be written: {error}", path.display()))
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))?;
    let mut written = Vec::new();
    for document in recorded {
        let text = document.to_text().map_err(Failure::failed)?;
        let free = (1..).map(|number| match number {
            1 => format!("{}.json", document.name()),
            _ => format!("{}-{number}.json", document.name()),
        });
        for name in free {
            let path = directory.join(&name);
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    std::io::Write::write_all(&mut file, text.as_bytes())
                        .map_err(|error| failed(&path, &error))?;
                    written.push(name);
                    break;
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                    // Recorded twice and the same is once.
                    if fs::read_to_string(&path).is_ok_and(|there| there == text) {
                        break;
                    }
                }
                Err(error) => return Err(failed(&path, &error)),
            }
        }
    }
    Ok(written)
}
