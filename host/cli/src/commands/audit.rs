//! `toolgate audit …`: reads the log, proves that it is whole, and lets rows out of it.

mod keep;
pub(crate) mod sinks;
mod verify;

use std::path::Path;
use std::time::Duration;

use toolgate_base::{Clock, SystemClock};
use toolgate_config::nearest;
use toolgate_registry::Time;
use toolgate_store::{AuditReader, Event, Filter, StoredRow};

use crate::args::{Audit, AuditQuery, AuditTail};
use crate::context;
use crate::exit::Failure;
use crate::output;

/// How often `--follow` looks for new rows.
const POLL: Duration = Duration::from_millis(250);

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: Audit) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    match &command {
        Audit::Verify(args) => return verify::run(&config.data_dir, args),
        Audit::Checkpoint(args) => return keep::checkpoint(&config, args).await,
        Audit::Export(args) => return keep::export(&config.data_dir, args),
        Audit::Archive(args) => return keep::archive(&config, args).await,
        Audit::Sinks(args) => return sinks::show(&config, args.json),
        Audit::Deliver(args) => return sinks::deliver(&config, args.json).await,
        Audit::Tail(_) | Audit::Query(_) => {}
    }
    let reader = AuditReader::open(&config.data_dir).map_err(context::store_failure)?;
    match command {
        Audit::Tail(args) => tail(&reader, &args).await,
        Audit::Query(args) => query(reader, &args),
        _ => Ok(()),
    }
}

async fn tail(reader: &AuditReader, args: &AuditTail) -> Result<(), Failure> {
    if let Some(prefix) = &args.filter {
        known_prefix(prefix)?;
    }
    let filter = Filter { event_prefix: args.filter.clone(), ..Filter::default() };
    let mut last = if args.json || args.filter.is_some() {
        let rows = reader.tail(args.lines, &filter).map_err(context::store_failure)?;
        rows.iter().try_for_each(|row| print(row, args.json))?;
        rows.last().map_or(0, |row| row.id)
    } else {
        tail_folded(reader, args.lines)?
    };
    if !args.follow {
        return Ok(());
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        for row in reader.after(last, &filter).map_err(context::store_failure)? {
            last = row.id;
            print(&row, args.json)?;
        }
    }
}

/// How many rows are read for each line, so that folded ones leave enough.
const ROWS_A_LINE: usize = 16;

/// Each start of Toolgate loads its plugins, so that these rows would push everything else out of sight: a
/// run of them is one line here. `--filter plugin_loaded` and `--json` show each. Gives the last row's number.
fn tail_folded(reader: &AuditReader, lines: usize) -> Result<i64, Failure> {
    let most = lines.saturating_mul(ROWS_A_LINE).min(toolgate_store::MAX_ROWS);
    let rows = reader.tail(most, &Filter::default()).map_err(context::store_failure)?;
    let loaded = |row: &StoredRow| word(row, "event") == Event::PluginLoaded.name();
    let runs: Vec<&[StoredRow]> = rows.chunk_by(|one, next| loaded(one) && loaded(next)).collect();
    for run in runs.iter().skip(runs.len().saturating_sub(lines)) {
        let Some((last, others)) = run.split_last() else { continue };
        match others.len() {
            0 => print(last, false)?,
            _ => output::line(&format!(
                "{} {:<22} {} loads of plugins; see them with --filter {}",
                at(last),
                word(last, "event"),
                run.len(),
                word(last, "event")
            ))?,
        }
    }
    Ok(rows.last().map_or(0, |row| row.id))
}

/// Refuses the beginning of no event at all: whoever mistypes one would believe that nothing happened.
fn known_prefix(prefix: &str) -> Result<(), Failure> {
    let names = || Event::ALL.iter().map(|event| event.name());
    if names().any(|name| name.starts_with(prefix)) {
        return Ok(());
    }
    let failure = Failure::usage(format!("no event begins with '{prefix}'"));
    Err(match nearest(prefix, names()) {
        Some(near) => failure.hint(format!("did you mean '{near}'?")),
        None => failure.hint("as --filter mcp_ or --filter approval_; docs/security-teams.md has them all"),
    })
}

fn query(reader: AuditReader, args: &AuditQuery) -> Result<(), Failure> {
    if let Some(sql) = &args.sql {
        let outcome = reader.select(sql).map_err(context::store_failure)?;
        if outcome.truncated {
            tracing::warn!("only the first {} rows are shown", outcome.rows.len());
        }
        for row in &outcome.rows {
            let named: serde_json::Map<_, _> =
                outcome.columns.iter().cloned().zip(row.iter().cloned()).collect();
            output::json(&named)?;
        }
        return Ok(());
    }
    let since = args.since.as_deref().map(time).transpose()?;
    let filter = Filter {
        server: args.server.clone(),
        tool: args.tool.clone(),
        persona: args.persona.clone(),
        action: args.action.clone(),
        since,
        ..Filter::default()
    };
    let rows = reader.tail(toolgate_store::MAX_ROWS, &filter).map_err(context::store_failure)?;
    if rows.is_empty() && !args.json {
        output::note("no row matches");
    }
    rows.iter().try_for_each(|row| print(row, args.json))
}

/// A day, a time, or an age, as Unix seconds.
fn time(text: &str) -> Result<i64, Failure> {
    let day = format!("{text}T00:00:00Z");
    let at = [text, day.as_str()].into_iter().find_map(toolgate_base::clock::utc_ms);
    let now = SystemClock.now_ms();
    let ms = match at {
        Some(ms) => ms,
        None => super::duration(text)
            .ok()
            .and_then(|age| now.checked_sub(u64::try_from(age.as_millis()).ok()?))
            .ok_or_else(|| {
                Failure::usage(format!(
                    "`{text}` is no time; write 2026-11-29, 2026-11-29T12:00:00Z, 7d, 2h or 30m"
                ))
            })?,
    };
    Ok(i64::try_from(ms / 1_000).unwrap_or(i64::MAX))
}

fn print(row: &StoredRow, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(row);
    }
    let whose = if word(row, "server").is_empty() { word(row, "plugin") } else { word(row, "server") };
    let tool = row.tool.as_ref().map_or(String::new(), |tool| format!(".{tool}"));
    output::line(&format!(
        "{} {:<22} {:<28} {} {}",
        at(row),
        word(row, "event"),
        format!("{whose}{tool}"),
        row.persona_id.as_deref().unwrap_or("-"),
        word(row, "reason")
    ))
}

/// A text of the details; empty where there is none.
fn word<'a>(row: &'a StoredRow, name: &str) -> &'a str {
    row.details.get(name).and_then(serde_json::Value::as_str).unwrap_or("")
}

fn at(row: &StoredRow) -> Time {
    Time::from_seconds(u64::try_from(row.created_at).unwrap_or(0))
}
