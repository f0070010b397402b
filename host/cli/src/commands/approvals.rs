//! `toolgate approvals …`: the questions that wait for a person, and the answers.
//!
//! To say yes widens what an agent may do, so it needs proof of the operator; to say no and to take a
//! grant back do not. What is shown was written by servers and agents, and is escaped; what is cut says so, and
//! `show` prints it to its end.

mod show;
mod suggest;

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_store::{Answer, Ask, AskState, Grant, GrantScope, Store};

use crate::args::{ApprovalId, Approvals, ApprovalsGrant, ApprovalsWatch};
use crate::exit::{Code, Failure};
use crate::operator::Proven;
use crate::{context, operator, output};

/// How often `watch` looks for new asks.
const LOOK: Duration = Duration::from_millis(300);
const SURFACE: &str = "cli";
/// Characters of arguments in a list.
const PREVIEW: usize = 60;

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: &Approvals) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    match command {
        Approvals::List(args) => list(
            &store.asks(None).map_err(context::store_failure)?,
            &store.grants().map_err(context::store_failure)?,
            &config,
            args.json,
        ),
        Approvals::Show(args) => show::show(&store, &known(&store, &args.id)?, args.json),
        Approvals::Watch(args) => watch(&store, args).await,
        Approvals::Grant(args) => grant(&config, &store, args).await,
        Approvals::Deny(args) => deny(&store, args).await,
        Approvals::Revoke(args) => revoke(&store, args).await,
        Approvals::Suggest(args) => suggest::suggest(&config, &store, args),
    }
}

fn list(asks: &[Ask], grants: &[Grant], config: &Config, as_json: bool) -> Result<(), Failure> {
    if as_json {
        let asks: Vec<Value> = asks.iter().map(ask_json).collect();
        let grants: Vec<Value> = grants.iter().map(grant_json).collect();
        return output::json(&json!({ "asks": asks, "grants": grants }));
    }
    if asks.is_empty() && grants.is_empty() {
        return output::line(&format!(
            "no ask waits or was answered in the last 30 days, and there is no wider grant, in {}",
            config.data_dir.display()
        ));
    }
    let rows: Vec<Vec<String>> = asks
        .iter()
        .map(|ask| {
            let arguments = preview(ask);
            let by = ask.answered_by.clone().unwrap_or_default();
            vec![
                ask.id.clone(),
                ask.state.to_string(),
                ask.about.persona.clone(),
                call_of(ask),
                arguments,
                by,
            ]
        })
        .collect();
    output::table(&["ASK", "STATE", "PERSONA", "CALL", "ARGUMENTS", "ANSWERED BY"], &rows)?;
    if asks.iter().any(|ask| ask.state == AskState::Pending && !is_whole(ask)) {
        output::line("not all of it is shown; `toolgate approvals show ASK` prints an ask to its end")?;
    }
    if grants.is_empty() {
        return Ok(());
    }
    output::line("")?;
    let now = now_ms();
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            let state = if grant.is_open(now) { "open" } else { "ended" };
            let call = format!("{}.{}", grant.server, grant.tool);
            let scope = grant.scope.as_str().to_owned();
            vec![
                grant.id.clone(),
                state.to_owned(),
                scope,
                grant.persona.clone(),
                call,
                grant.granted_by.clone(),
            ]
        })
        .collect();
    output::table(&["GRANT", "STATE", "FOR", "PERSONA", "CALL", "GRANTED BY"], &rows)
}

/// The beginning of what is sent, and how much more there is.
fn preview(ask: &Ask) -> String {
    let about = &ask.about;
    let first: String = about.arguments.chars().take(PREVIEW).collect();
    let more = about.arguments_bytes.max(about.arguments.len()).saturating_sub(first.len());
    let cut = if more > 0 { format!("… ({more} bytes more)") } else { String::new() };
    let beside = if about.beside.is_empty() { "" } else { " and more beside them" };
    format!("{first}{cut}{beside}")
}

/// Whether the list shows all that would be sent.
fn is_whole(ask: &Ask) -> bool {
    ask.about.beside.is_empty() && !ask.about.is_cut() && ask.about.arguments.chars().count() <= PREVIEW
}

/// Prints each ask as it comes, until it is ended.
async fn watch(store: &Store, args: &ApprovalsWatch) -> Result<(), Failure> {
    let mut seen = std::collections::HashSet::new();
    loop {
        let pending = store.asks(Some(AskState::Pending)).map_err(context::store_failure)?;
        for ask in pending.iter().filter(|ask| seen.insert(ask.id.clone())) {
            if args.json {
                output::json(&ask_json(ask))?;
            } else {
                output::line(&told(ask))?;
            }
        }
        seen.retain(|id| pending.iter().any(|ask| ask.id == *id));
        tokio::time::sleep(LOOK).await;
    }
}

/// Says yes, after the operator saw to what and proved who they are.
async fn grant(config: &Config, store: &Store, args: &ApprovalsGrant) -> Result<(), Failure> {
    let ask = known(store, &args.ask)?;
    if ask.state != AskState::Pending {
        return Err(Failure::failed(format!("ask {} is {} already", ask.id, ask.state))
            .hint("see `toolgate approvals list`; the same call, repeated, asks again"));
    }
    let ttl = args.ttl.as_deref().map(super::duration).transpose()?;
    let scope = match args.scope.as_str() {
        "session" => Some(GrantScope::Session),
        "persona" => Some(GrantScope::Persona),
        _ if ttl.is_some() => return Err(Failure::usage("--ttl goes with --for session or --for persona")),
        _ => None,
    };
    let width = match scope {
        None => "This grants one call:".to_owned(),
        Some(scope) => format!(
            "This grants every call of {} to persona '{}', for as long as its definition does not change ({}):",
            call_of(&ask),
            ask.about.persona,
            if scope == GrantScope::Session { "this session" } else { "every session" },
        ),
    };
    let proven = operator::prove(config, &format!("{width}\n{}", told(&ask)))?;
    let answer = by(&proven, true);
    match scope {
        None => {
            let ask = store.answer_ask(&ask.id, &answer).await.map_err(context::store_failure)?;
            if args.json {
                return output::json(&json!({ "ask": ask_json(&ask) }));
            }
            output::line(&format!("granted {}: the same call passes once", ask.id))
        }
        Some(scope) => {
            let grant =
                store.grant_wider(&ask.id, &answer, scope, ttl).await.map_err(context::store_failure)?;
            if args.json {
                let ask = known(store, &ask.id)?;
                return output::json(&json!({ "ask": ask_json(&ask), "grant": grant_json(&grant) }));
            }
            output::line(&format!(
                "granted {} as {}; `toolgate approvals revoke {1}` ends it",
                ask.id, grant.id
            ))
        }
    }
}

async fn deny(store: &Store, args: &ApprovalId) -> Result<(), Failure> {
    let ask = known(store, &args.id)?;
    let answer = Answer { grant: false, by: format!("uid {}", crate::sys::user()), surface: SURFACE };
    let ask = store.answer_ask(&ask.id, &answer).await.map_err(context::store_failure)?;
    if args.json {
        return output::json(&json!({ "ask": ask_json(&ask) }));
    }
    output::line(&format!("denied {}", ask.id))
}

async fn revoke(store: &Store, args: &ApprovalId) -> Result<(), Failure> {
    let id = &args.id;
    let by = format!("uid {}", crate::sys::user());
    let Some(ended) = store.revoke(id, &by).await.map_err(context::store_failure)? else {
        return Err(
            Failure::failed(format!("there is no open grant {id}")).hint("see `toolgate approvals list`")
        );
    };
    if args.json {
        return output::json(&json!({ "revoked": id, "ended": ended, "by": by }));
    }
    output::line(&format!("revoked {}", ended.ids().join(" and ")))
}

fn by(proven: &Proven, grant: bool) -> Answer {
    Answer { grant, by: proven.approver(), surface: SURFACE }
}

fn known(store: &Store, id: &str) -> Result<Ask, Failure> {
    let ask = store.ask(id).map_err(context::store_failure)?;
    ask.ok_or_else(|| {
        Failure::new(Code::Failed, format!("there is no ask {id}")).hint("see `toolgate approvals list`")
    })
}

/// One ask for a person; whoever prints it escapes it.
fn told(ask: &Ask) -> String {
    let about = &ask.about;
    let mut lines = vec![
        format!("{}  persona {}  {}", ask.id, one_line(&about.persona), one_line(&call_of(ask))),
        format!("  why: {}", one_line(&about.reason)),
        format!("  arguments: {}", part(&about.arguments, about.arguments_bytes)),
    ];
    if !about.beside.is_empty() {
        lines.push(format!("  sent beside them: {}", part(&about.beside, about.beside_bytes)));
    }
    if about.is_cut() {
        lines
            .push(format!("  this is not all of it; read it to its end: toolgate approvals show {}", ask.id));
    }
    lines.push(format!("  answer: toolgate approvals grant {0}   or   toolgate approvals deny {0}", ask.id));
    lines.join("\n")
}

/// A text on one line, and how much of it is missing.
fn part(text: &str, bytes: usize) -> String {
    match bytes.saturating_sub(text.len()) {
        0 => one_line(text),
        missing => format!("{} [CUT: {missing} of {bytes} bytes are not shown]", one_line(text)),
    }
}

/// A line break of an agent's must not look like one of ours.
fn one_line(text: &str) -> String {
    toolgate_base::display::escape(text)
}

fn call_of(ask: &Ask) -> String {
    format!("{}.{}", ask.about.server, ask.about.tool)
}

fn ask_json(ask: &Ask) -> Value {
    json!({
        "id": ask.id, "state": ask.state, "persona": ask.about.persona, "server": ask.about.server,
        "tool": ask.about.tool, "action": ask.about.action, "reason": ask.about.reason,
        "arguments": ask.about.arguments, "arguments_bytes": ask.about.arguments_bytes,
        "beside": ask.about.beside, "beside_bytes": ask.about.beside_bytes, "cut": ask.about.is_cut(),
        "session": ask.about.session, "created_at_ms": ask.created_at_ms,
        "expires_at_ms": ask.expires_at_ms, "answered_by": ask.answered_by, "surface": ask.surface,
    })
}

fn grant_json(grant: &Grant) -> Value {
    json!({
        "id": grant.id, "open": grant.is_open(now_ms()), "for": grant.scope, "persona": grant.persona,
        "server": grant.server, "tool": grant.tool, "action": grant.action, "ask": grant.ask,
        "granted_by": grant.granted_by, "surface": grant.surface, "created_at_ms": grant.created_at_ms,
        "expires_at_ms": grant.expires_at_ms, "revoked_at_ms": grant.revoked_at_ms,
    })
}

fn now_ms() -> i64 {
    i64::try_from(toolgate_base::Clock::now_ms(&toolgate_base::SystemClock)).unwrap_or(i64::MAX)
}
