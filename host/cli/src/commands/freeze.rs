//! `toolgate freeze` and `toolgate thaw`: stop a server, a plugin or everything, now.
//!
//! A freeze narrows and needs no proof; it takes effect in a running gateway within a moment, ends the
//! calls that run, and takes back every ask that waits. To end it needs proof of the operator.

use std::path::Path;

use serde_json::json;
use toolgate_base::display;
use toolgate_store::{Freeze as Row, Frozen};

use crate::args::{Freeze, FreezeWhat, Thaw};
use crate::exit::Failure;
use crate::{context, operator, output};

/// Characters of a reason.
const MAX_REASON: usize = 500;

/// Freezes, or lists what is frozen where nothing is named.
pub(crate) async fn freeze(explicit: Option<&Path>, args: &Freeze) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    let Some(what) = named(&args.what) else {
        let frozen = store.frozen().map_err(context::store_failure)?;
        if args.json {
            return output::json(&json!({ "frozen": frozen }));
        }
        if frozen.is_empty() {
            return output::line("nothing is frozen; name --server, --plugin or --all, with --reason");
        }
        return frozen.iter().try_for_each(|row| {
            // A line break in a reason must not look like another freeze.
            let row = format!("{}: {} ({})", row.what, row.reason, row.frozen_by);
            output::line(&display::escape(&row))
        });
    };
    let reason = reason(args.reason.as_deref().unwrap_or_default())?;
    if let Frozen::Server(name) = &what
        && !config.servers.contains_key(name)
    {
        return Err(Failure::usage(format!("there is no server '{name}'")).hint("see `toolgate mcp list`"));
    }
    let row = Row { what, reason, frozen_by: format!("uid {}", crate::sys::user()) };
    let voided = store.freeze(&row).await.map_err(context::store_failure)?;
    if args.json {
        let ids: Vec<&str> = voided.iter().map(|ask| ask.id.as_str()).collect();
        return output::json(&json!({ "frozen": row, "voided": ids }));
    }
    output::line(&format!("froze {}; took back {}", row.what, output::count(voided.len(), "ask")))
}

/// Why, in one line that a person sees all of: whoever is refused reads it, a model among them.
fn reason(given: &str) -> Result<String, Failure> {
    let given = given.trim();
    if given.is_empty() {
        return Err(Failure::usage("--reason is needed: whoever is refused is told why"));
    }
    // Nothing about the words may keep a freeze from happening.
    Ok(display::escape(given).chars().take(MAX_REASON).collect())
}

/// Ends a freeze.
pub(crate) async fn thaw(explicit: Option<&Path>, args: &Thaw) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let what = named(&args.what)
        .ok_or_else(|| Failure::usage("say what to thaw: --server NAME, --plugin NAME or --all"))?;
    let proven = operator::prove(&config, &format!("This ends the freeze of {what}."))?;
    let store = context::store(&config, "cli")?;
    if !store.thaw(&what, &proven.approver()).await.map_err(context::store_failure)? {
        return Err(Failure::failed(format!("{what} is not frozen")).hint("see `toolgate freeze`"));
    }
    output::line(&format!("thawed {what}"))
}

fn named(what: &FreezeWhat) -> Option<Frozen> {
    if what.all {
        return Some(Frozen::All);
    }
    let server = what.server.clone().map(Frozen::Server);
    server.or_else(|| what.plugin.clone().map(Frozen::Plugin))
}
