//! `toolgate mcp …`: servers and their tools.

mod add;
mod blocked;
mod call;
mod decide;
mod decisions;
mod list;
mod pin;
mod record;
mod subscribe;
mod surface;
mod tasks;

use std::path::Path;
use std::sync::Arc;

use toolgate_gateway::{Caller, Gateway, Target};
use toolgate_store::Standing;

use crate::args::{Mcp, Who};
use crate::context;
use crate::exit::Failure;

pub(crate) use list::no_server;

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: Mcp) -> Result<(), Failure> {
    match command {
        Mcp::Add(args) => add::add(explicit, args).await,
        Mcp::Remove(args) => add::remove(explicit, &args).await,
        Mcp::Get(args) => list::get(explicit, &args).await,
        Mcp::List(args) => list::list(explicit, args).await,
        Mcp::Status(args) => list::status(explicit, args).await,
        Mcp::Reconnect(args) => list::reconnect(explicit, args).await,
        Mcp::Tools(args) => surface::tools(explicit, args).await,
        Mcp::Resources(args) => surface::resources(explicit, args).await,
        Mcp::Read(args) => surface::read(explicit, args).await,
        Mcp::Subscribe(args) => subscribe::subscribe(explicit, args).await,
        Mcp::Prompts(args) => surface::prompts(explicit, args).await,
        Mcp::Prompt(args) => surface::prompt(explicit, args).await,
        Mcp::Complete(args) => surface::complete(explicit, args).await,
        Mcp::Call(args) => call::call(explicit, args).await,
        Mcp::Tasks(args) => tasks::tasks(explicit, &args).await,
        Mcp::Explain(args) => call::explain(explicit, args).await,
        Mcp::Pin(args) => pin::pin(explicit, args).await,
        Mcp::Allow(args) => decide::decide(explicit, &args, Standing::Allow).await,
        Mcp::Ask(args) => decide::decide(explicit, &args, Standing::Ask).await,
        Mcp::Deny(args) => decide::decide(explicit, &args, Standing::Deny).await,
        Mcp::Forget(args) => decisions::forget(explicit, &args).await,
        Mcp::Decisions(args) => decisions::list(explicit, &args),
        Mcp::Diff(args) => pin::diff(explicit, args).await,
        Mcp::Record(args) => record::record(explicit, args).await,
    }
}

/// A gateway in this process and the operator as a persona.
fn open(explicit: Option<&Path>, who: &Who) -> Result<(Arc<Gateway>, Caller), Failure> {
    let config = context::config(explicit)?;
    let caller = Caller { lane: who.lane, ..context::operator(&config, &who.persona)? };
    Ok((context::gateway(config, "cli")?, caller))
}

/// `SERVER.TOOL`, where SERVER is a configured name; everything else is an exposed name. The server
/// is resolved first, by the longest name that fits, because tools may have dots as well (FP-27).
fn target(gateway: &Gateway, selector: &str) -> Target {
    let names = gateway.config().servers.keys();
    let server = names
        .filter(|name| selector.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('.')))
        .max_by_key(|name| name.len());
    match server {
        Some(server) => Target::Original {
            server: server.clone(),
            tool: selector.chars().skip(server.chars().count() + 1).collect(),
        },
        None => Target::Exposed(selector.to_owned()),
    }
}
