//! `toolgate audit …`: reads the log, and proves that it is whole.

use std::path::Path;
use std::time::Duration;

use toolgate_base::{Clock, SystemClock};
use toolgate_registry::Time;
use toolgate_store::{AuditReader, Filter, StoredRow};

use crate::args::{Audit, AuditQuery, AuditTail};
use crate::context;
use crate::exit::{Code, Failure};
use crate::output::{self, Format};

/// How often `--follow` looks for new rows.
const POLL: Duration = Duration::from_millis(250);

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: Audit) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    if let Audit::Verify(args) = &command {
        return verify(&config.data_dir, Format::json(args.json));
    }
    let reader = AuditReader::open(&config.data_dir).map_err(context::store_failure)?;
    match command {
        Audit::Tail(args) => tail(&reader, &args).await,
        Audit::Query(args) => query(reader, &args),
        Audit::Verify(_) => Ok(()),
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
    let since = args.since.as_deref().map(age).transpose()?;
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

/// `7d`, `2h`, `30m` or `10s` ago, as Unix seconds.
fn age(text: &str) -> Result<i64, Failure> {
    let wrong = || Failure::usage(format!("--since {text} is no age; write 7d, 2h, 30m or 10s"));
    let unit = text.chars().last().ok_or_else(wrong)?;
    let number: i64 = text.trim_end_matches(unit).parse().map_err(|_| wrong())?;
    let seconds = match unit {
        'd' => number.checked_mul(86_400),
        'h' => number.checked_mul(3_600),
        'm' => number.checked_mul(60),
        's' => Some(number),
        _ => None,
    };
    let now = i64::try_from(SystemClock.now_ms() / 1_000).unwrap_or(i64::MAX);
    seconds.filter(|seconds| *seconds >= 0).map(|seconds| now - seconds).ok_or_else(wrong)
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

fn verify(data_dir: &Path, format: Format) -> Result<(), Failure> {
    let report = AuditReader::verify(data_dir).map_err(context::store_failure)?;
    match format {
        Format::Json => output::json(&report)?,
        Format::Text if report.is_intact() => {
            let rows: u64 = report.chains.iter().map(|chain| chain.rows).sum();
            let rows = output::count(usize::try_from(rows).unwrap_or(usize::MAX), "row");
            output::line(&format!("whole: {rows} in {}", output::count(report.chains.len(), "chain")))?;
            for chain in &report.chains {
                output::line(&format!("  {} ends at {} with {}", chain.chain, chain.last_seq, chain.head))?;
            }
        }
        Format::Text => report.findings.iter().try_for_each(|finding| output::line(&finding.to_string()))?,
    }
    if report.is_intact() {
        return Ok(());
    }
    let message = format!("the audit log is not whole: {}", output::count(report.findings.len(), "finding"));
    Err(Failure::new(Code::Integrity, message)
        .hint("keep a copy of audit.db and audit.heads before anything else is written"))
}
