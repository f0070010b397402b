//! `toolgate approvals …`: the questions that wait for a person.
//!
//! Answering one widens what an agent may do, so it needs proof that the operator answers and not an
//! agent with a shell (design.md section 6). This version has no such proof yet: asks are stored,
//! listed and expire; `grant` refuses and says what works instead.

use std::path::Path;

use serde_json::json;
use toolgate_store::Ask;

use crate::args::Approvals;
use crate::context;
use crate::exit::{Code, Failure};
use crate::output;

/// Runs one verb.
pub(crate) fn run(explicit: Option<&Path>, command: &Approvals) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    match command {
        Approvals::List(args) => list(&store.asks(None).map_err(context::store_failure)?, args.json),
        Approvals::Grant(args) => {
            let ask = store.ask(&args.ask).map_err(context::store_failure)?;
            Err(cannot_grant(&args.ask, ask.as_ref()))
        }
    }
}

fn list(asks: &[Ask], as_json: bool) -> Result<(), Failure> {
    if as_json {
        let rows: Vec<_> = asks
            .iter()
            .map(|ask| {
                json!({
                    "id": ask.id, "state": ask.state, "persona": ask.about.persona, "server": ask.about.server,
                    "tool": ask.about.tool, "reason": ask.about.reason, "arguments": ask.about.arguments,
                    "expires_at_ms": ask.expires_at_ms,
                })
            })
            .collect();
        return output::json(&json!({ "asks": rows }));
    }
    let rows: Vec<Vec<String>> = asks
        .iter()
        .map(|ask| {
            let call = format!("{}.{}", ask.about.server, ask.about.tool);
            let arguments = ask.about.arguments.chars().take(60).collect();
            vec![ask.id.clone(), ask.state.as_str().to_owned(), ask.about.persona.clone(), call, arguments]
        })
        .collect();
    output::table(&["ASK", "STATE", "PERSONA", "CALL", "ARGUMENTS"], &rows)
}

fn cannot_grant(id: &str, ask: Option<&Ask>) -> Failure {
    let Some(ask) = ask else {
        return Failure::failed(format!("there is no ask {id}")).hint("see `toolgate approvals list`");
    };
    let label = format!("mcp.call:{}/{}", ask.about.server, ask.about.tool);
    Failure::new(
        Code::Denied,
        "this version cannot grant an ask: it has no way yet to tell an operator from an agent with a shell",
    )
    .hint(format!(
        "add the label \"{label}\" to personas.{}.capabilities.allow in toolgate.yaml, then repeat the call",
        ask.about.persona
    ))
}
