//! `toolgate audit …`: reads the log, proves that it is whole, and lets rows out of it.

mod keep;
pub(crate) mod sinks;
mod verify;

use std::path::Path;
use std::time::Duration;

use toolgate_base::{Clock, SystemClock};
use toolgate_registry::Time;
use toolgate_store::{AuditReader, Filter, StoredRow};

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
    let filter = Filter { event_prefix: args.filter.clone(), ..Filter::default() };
    let rows = reader.tail(args.lines, &filter).map_err(context::store_failure)?;
    let mut last = rows.last().map_or(0, |row| row.id);
    rows.iter().try_for_each(|row| print(row, args.json))?;
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
    let text = |name: &str| row.details.get(name).and_then(serde_json::Value::as_str).unwrap_or("");
    output::line(&format!(
        "{} {:<22} {:<28} {} {}",
        Time::from_seconds(u64::try_from(row.created_at).unwrap_or(0)),
        text("event"),
        format!(
            "{}{}",
            if text("server").is_empty() { text("plugin") } else { text("server") },
            row.tool.as_ref().map_or(String::new(), |tool| format!(".{tool}"))
        ),
        row.persona_id.as_deref().unwrap_or("-"),
        text("reason")
    ))
}
