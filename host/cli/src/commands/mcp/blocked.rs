//! What is there and does not reach clients: shown by every verb that shows servers or what they offer,
//! with the reason and the command to go on with.
//!
//! A drifted tool is in no list, so a list alone looks as if it were gone, and while a server is not
//! connected, what is listed is what was approved last. Both are said here, in words and as JSON.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_downstream::local::Want;
use toolgate_gateway::{Blocked, Caller, Gateway, ServerState, ServerStatus};
use toolgate_store::STATE_DB;

use crate::args::Who;
use crate::commands::serve::client;
use crate::context::{self, Loaded};
use crate::exit::{Code, Failure};
use crate::output;

/// How long servers are waited for before what was approved last is shown in their place.
const CONNECT: Duration = Duration::from_secs(10);

/// The servers as they stand, connected to as far as they answer in time.
pub(super) async fn connected(gateway: &Arc<Gateway>, caller: &Caller) -> Vec<ServerStatus> {
    let (own, who) = (Arc::clone(gateway), caller.clone());
    // What is not there in time goes on connecting, and is told as what it is.
    let asked = tokio::spawn(async move { own.status(&who, true).await });
    match tokio::time::timeout(CONNECT, asked).await {
        Ok(Ok(statuses)) => statuses,
        _ => gateway.status(caller, false).await,
    }
}

/// The servers as the gateway that runs sees them; where none runs, as far as their pins say. Nothing where
/// neither can be asked: whoever shows the configuration shows it still.
pub(super) async fn unconnected(loaded: &Loaded, who: &Who) -> Vec<ServerStatus> {
    let want = Want::Status { persona: who.persona.clone(), lane: who.lane.as_str().to_owned() };
    match client::ask(loaded, want).await {
        Ok(Some(answer)) => {
            return super::list::statuses_of(answer).unwrap_or_else(|failure| untold(&failure));
        }
        Ok(None) => {}
        Err(failure) => return untold(&failure),
    }
    let config = &loaded.config;
    // With a lock, pins come from elsewhere; without a state there are none, and looking makes nothing.
    if context::is_locked() || !config.data_dir.join(STATE_DB).exists() {
        return Vec::new();
    }
    match context::store(config, "cli") {
        Ok(store) => ServerStatus::unconnected(config, &store),
        Err(failure) => untold(&failure),
    }
}

fn untold(failure: &Failure) -> Vec<ServerStatus> {
    tracing::warn!("how the servers stand cannot be told: {}", failure.message);
    Vec::new()
}

/// What of one kind is blocked, whole servers included, as JSON.
pub(super) fn as_json(statuses: &[ServerStatus], kind: Option<&str>) -> Value {
    let all = statuses.iter().flat_map(|status| {
        of_kind(status, kind).map(|blocked| {
            json!({
                "server": status.name, "kind": blocked.kind, "name": blocked.name, "reason": blocked.reason,
                "next": blocked.next,
            })
        })
    });
    all.collect()
}

/// The servers whose list is what was approved last, or nothing, because they are not connected; as JSON.
pub(super) fn not_connected(statuses: &[ServerStatus]) -> Value {
    let those = statuses.iter().filter(|status| is_missed(status));
    those.map(|status| json!({ "server": status.name, "reason": why_missed(status) })).collect()
}

/// Prints the same for a person, after a list.
pub(super) fn print(statuses: &[ServerStatus], kind: Option<&str>) -> Result<(), Failure> {
    for status in statuses {
        print_of(status, kind, "")?;
        if is_missed(status) {
            output::one_line(&format!(
                "not connected: {}: {}; what is shown of it is what was approved last",
                status.name,
                why_missed(status)
            ))?;
        }
    }
    Ok(())
}

/// Prints what of one server is blocked; a reason that several have is told once.
pub(super) fn print_of(status: &ServerStatus, kind: Option<&str>, indent: &str) -> Result<(), Failure> {
    let all: Vec<&Blocked> = of_kind(status, kind).collect();
    let reasons: BTreeSet<&str> = all.iter().map(|blocked| blocked.reason.as_str()).collect();
    for reason in reasons {
        let same: Vec<&&Blocked> = all.iter().filter(|blocked| blocked.reason == reason).collect();
        let names: Vec<String> =
            same.iter().take(8).map(|blocked| format!("{} {}", blocked.kind, blocked.name)).collect();
        let more = same.len().saturating_sub(names.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let of = if same.iter().any(|blocked| blocked.kind == "server") {
            String::new()
        } else {
            format!(" of {}", status.name)
        };
        output::one_line(&format!("{indent}blocked: {}{more}{of}: {reason}", names.join(", ")))?;
        if let Some(first) = same.first() {
            output::one_line(&format!("{indent}  next: {}", first.next))?;
        }
    }
    Ok(())
}

/// How many are blocked, in words for one cell.
pub(super) fn cell(statuses: &[ServerStatus], server: &str) -> String {
    let Some(status) = statuses.iter().find(|status| status.name == server) else { return String::new() };
    if status.blocked.iter().any(|blocked| blocked.kind == "server") {
        return "all".to_owned();
    }
    match status.blocked.len() {
        0 if status.state == ServerState::Connected => "none".to_owned(),
        0 => String::new(),
        some => some.to_string(),
    }
}

/// The refusal of one thing that is blocked.
pub(super) fn refusal(statuses: &[ServerStatus], server: &str, name: &str) -> Option<Failure> {
    let status = statuses.iter().find(|status| status.name == server)?;
    let blocked = status.blocked.iter().find(|blocked| blocked.kind == "server" || blocked.name == name)?;
    let failure = Failure::new(Code::Denied, format!("{name} of {server} is blocked: {}", blocked.reason));
    Some(failure.hint(blocked.next.clone()))
}

fn of_kind<'a>(status: &'a ServerStatus, kind: Option<&str>) -> impl Iterator<Item = &'a Blocked> {
    let fits =
        move |blocked: &&Blocked| kind.is_none_or(|kind| blocked.kind == kind || blocked.kind == "server");
    status.blocked.iter().filter(fits)
}

fn is_missed(status: &ServerStatus) -> bool {
    matches!(status.state, ServerState::Failed | ServerState::Starting)
}

fn why_missed(status: &ServerStatus) -> String {
    status.detail.clone().unwrap_or_else(|| format!("it did not answer within {} s", CONNECT.as_secs()))
}
