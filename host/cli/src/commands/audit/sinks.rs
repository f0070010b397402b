//! `toolgate audit sinks|deliver`: the receivers of audit rows.

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_sinks::{Health, SinkState};
use toolgate_store::AuditReader;

use crate::context;
use crate::exit::Failure;
use crate::output;

/// How each sink does, from what whoever delivers wrote down last.
pub(super) fn show(config: &Config, as_json: bool) -> Result<(), Failure> {
    let last = last_id(config)?;
    let states = states(config)?;
    if as_json {
        let all: Vec<Value> = config
            .audit
            .sinks
            .iter()
            .zip(&states)
            .map(|(sink, state)| {
                json!({
                    "name": sink.name, "type": sink.target.kind(), "health": state.health,
                    "cursor": state.cursor, "behind": last.saturating_sub(state.cursor),
                    "delivered": state.delivered, "error": state.error, "note": state.note,
                    "failing_since_ms": state.failing_since_ms, "next_attempt_ms": state.next_attempt_ms,
                    "delivered_at_ms": state.delivered_at_ms,
                })
            })
            .collect();
        return output::json(&all);
    }
    if states.is_empty() {
        return output::line("no sinks; name them in audit.sinks of toolgate.yaml");
    }
    let rows: Vec<Vec<String>> = config
        .audit
        .sinks
        .iter()
        .zip(&states)
        .map(|(sink, state)| {
            vec![
                sink.name.clone(),
                sink.target.kind().to_owned(),
                word(state).to_owned(),
                last.saturating_sub(state.cursor).to_string(),
                state.error.clone().or_else(|| state.note.clone()).unwrap_or_default(),
            ]
        })
        .collect();
    output::table(&["SINK", "TYPE", "STATE", "ROWS BEHIND", "DETAIL"], &rows)
}

/// Delivers to every sink what waits; one that fails does not keep rows from the others.
pub(super) async fn deliver(config: &Config, as_json: bool) -> Result<(), Failure> {
    let (mut told, mut failed) = (Vec::new(), Vec::new());
    for sink in &config.audit.sinks {
        match toolgate_sinks::deliver(&config.data_dir, sink).await {
            Ok(rows) => told.push((sink.name.as_str(), rows)),
            Err(error) => failed.push(format!("{}: {error}", sink.name)),
        }
    }
    if as_json {
        let told: Vec<Value> =
            told.iter().map(|(sink, rows)| json!({ "sink": sink, "rows": rows })).collect();
        output::json(&told)?;
    } else {
        told.iter().try_for_each(|(sink, rows)| output::line(&format!("{sink} has {rows} more rows")))?;
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(failed.join("\n")).hint("the rows stay in the log and are delivered later"))
}

/// One line for each sink that does not take rows; for whoever shows a status.
pub(crate) fn troubles(config: &Config) -> Vec<String> {
    match states(config) {
        Ok(states) => {
            let both = config.audit.sinks.iter().zip(states);
            let retrying = both.filter(|(_, state)| state.health == Health::Retrying);
            retrying
                .map(|(sink, state)| {
                    format!(
                        "audit rows do not reach the sink {}: {}",
                        sink.name,
                        state.error.unwrap_or_default()
                    )
                })
                .collect()
        }
        Err(failure) => vec![failure.message],
    }
}

/// Up to which row every sink has everything; says which of them keep row `last` where it is.
pub(super) fn delivered(config: &Config, last: i64) -> Result<Option<i64>, Failure> {
    for (sink, state) in config.audit.sinks.iter().zip(states(config)?) {
        if state.cursor < last {
            tracing::warn!(
                "the sink {} has taken rows up to {} only; later ones are not sealed (`toolgate audit deliver`)",
                sink.name,
                state.cursor
            );
        }
    }
    toolgate_sinks::delivered(&config.data_dir, &config.audit.sinks).map_err(Failure::failed)
}

fn states(config: &Config) -> Result<Vec<SinkState>, Failure> {
    toolgate_sinks::states(&config.data_dir, &config.audit.sinks).map_err(Failure::failed)
}

fn last_id(config: &Config) -> Result<i64, Failure> {
    if !config.data_dir.join(toolgate_store::AUDIT_DB).exists() {
        return Ok(0);
    }
    AuditReader::open(&config.data_dir).and_then(|reader| reader.last_id()).map_err(context::store_failure)
}

fn word(state: &SinkState) -> &'static str {
    match state.health {
        Health::Delivering => "delivering",
        Health::Retrying => "retrying",
    }
}
