//! `mcp subscribe`: prints the URI of a resource whenever its server says that it changed.
//!
//! The subscription lives as long as the command (RES-010): it ends with Ctrl-C, after `--count`
//! updates, or with the reason when its server or a policy ends it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_gateway::{Call, Caller, Client, Deed, Gateway, Subscriber, SubscriptionSummary, Target, Told};
use toolgate_wire::{ErrorObject, Id, Outcome, codes};

use crate::args::surface::McpSubscribe;
use crate::context;
use crate::exit::{Code, Failure};
use crate::output;

/// Subscribes and follows.
pub(crate) async fn subscribe(explicit: Option<&Path>, args: McpSubscribe) -> Result<(), Failure> {
    let (gateway, caller) = super::open(explicit, &args.how.asking.who)?;
    let done = run(&gateway, &caller, &args).await;
    gateway.shutdown().await;
    done
}

async fn run(gateway: &Arc<Gateway>, caller: &Caller, args: &McpSubscribe) -> Result<(), Failure> {
    context::check_locked(gateway, Some(&args.server)).await?;
    let subscriber = Subscriber::new();
    let cancel = CancellationToken::new();
    let stopped = async {
        let _ = tokio::signal::ctrl_c().await;
    };
    tokio::pin!(stopped);
    let mut declined = None;
    for uri in &args.uris {
        let subscribing = ask(gateway, caller, args, uri, &subscriber, &cancel);
        tokio::pin!(subscribing);
        tokio::select! {
            asked = &mut subscribing => match asked? {
                None => {}
                Some(failure) => drop(declined.replace(failure)),
            },
            () = &mut stopped => {
                cancel.cancel();
                return subscribing.await.map(|_| ());
            }
        }
    }
    summary(gateway, args)?;
    // What a server leaves out is shown; with nothing else there is nothing to wait for.
    if let Some(failure) = declined.filter(|_| gateway.subscriptions().iter().all(is_idle)) {
        return Err(failure);
    }
    let mut left = args.count.unwrap_or(u64::MAX);
    while left > 0 {
        let told = tokio::select! {
            told = subscriber.next() => told,
            () = &mut stopped => return Ok(()),
        };
        for told in told {
            match told {
                // None is listened for here.
                Told::Task(_) => {}
                Told::Ended { error, .. } => return Err(failure(&error)),
                Told::Updated(_) if left == 0 => {}
                Told::Updated(uri) => {
                    left -= 1;
                    if args.how.json {
                        let line = json!({ "event": "updated", "server": args.server, "uri": uri });
                        output::raw_line(&line.to_string())?;
                    } else {
                        output::line(&format!("updated {}", toolgate_base::display::escape(&uri)))?;
                    }
                }
            }
        }
    }
    Ok(())
}

async fn ask(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    args: &McpSubscribe,
    uri: &str,
    subscriber: &Arc<Subscriber>,
    cancel: &CancellationToken,
) -> Result<Option<Failure>, Failure> {
    let call = Call {
        request_id: Id::text("cli"),
        params: RawValue::from_string(json!({ "uri": uri }).to_string()).map_err(Failure::usage)?,
        progress: None,
        logs: None,
        cancel: cancel.clone(),
        timeout: None,
        param_headers: None,
        hold: if args.how.asking.wait { Duration::MAX } else { Duration::ZERO },
        client: Client::silent(),
        subscriber: Some(Arc::clone(subscriber)),
    };
    let target = Target::Original { server: args.server.clone(), tool: uri.to_owned() };
    match Box::pin(gateway.forward_to(caller, Deed::Subscribe, target, call)).await {
        Outcome::Result(_) => Ok(None),
        Outcome::Error(error) if is_declined(&error) => Ok(Some(failure(&error))),
        Outcome::Error(error) => Err(failure(&error)),
    }
}

/// Whether it is the server that does not tell of this resource.
fn is_declined(error: &ErrorObject) -> bool {
    let data = error.data.as_deref().map_or("{}", RawValue::get);
    let code = toolgate_wire::edit::get(data, "/toolgate~1error/code");
    code.and_then(toolgate_wire::edit::string).as_deref() == Some("not_honored")
}

/// Whether nothing of it is honoured.
fn is_idle(entry: &SubscriptionSummary) -> bool {
    entry.uris.iter().all(|uri| entry.standing(uri) == "not honored")
}

/// The summary that everything which shows subscriptions shares (RES-020).
fn summary(gateway: &Gateway, args: &McpSubscribe) -> Result<(), Failure> {
    let all = gateway.subscriptions();
    if args.how.json {
        return output::raw_line(&json!({ "event": "subscribed", "subscriptions": all }).to_string());
    }
    for entry in &all {
        output::line(&format!("{} ({})", entry.server, entry.mode.as_deref().unwrap_or("not connected")))?;
        for uri in &entry.uris {
            output::line(&format!("  {uri} · {}", entry.standing(uri)))?;
        }
    }
    Ok(())
}

fn failure(error: &ErrorObject) -> Failure {
    let code = match error.code {
        codes::DENIED | codes::ASK_PENDING => Code::Denied,
        codes::AUTHENTICATION_NEEDED => Code::Authentication,
        _ => Code::Failed,
    };
    Failure::new(code, &error.message)
}
