//! What a row looks like to others: syslog, OpenTelemetry, and OCSF.
//!
//! The row itself is always inside, in the form of docs/audit-event.schema.json, so that no mapping
//! loses anything.

use serde_json::{Map, Value, json};
use toolgate_base::clock::utc_text;
use toolgate_store::ExportedRow;

/// How much a row matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    /// RFC 5424, section 6.2.1.
    const fn syslog(self) -> u8 {
        match self {
            Self::Info => 6,
            Self::Warning => 4,
            Self::Error => 3,
        }
    }

    /// The OpenTelemetry log data model, "severity fields".
    pub(crate) const fn otlp(self) -> (u8, &'static str) {
        match self {
            Self::Info => (9, "INFO"),
            Self::Warning => (13, "WARN"),
            Self::Error => (17, "ERROR"),
        }
    }

    /// `severity_id` of OCSF: informational, medium, high.
    const fn ocsf(self) -> (u8, &'static str) {
        match self {
            Self::Info => (1, "Informational"),
            Self::Warning => (3, "Medium"),
            Self::Error => (4, "High"),
        }
    }
}

/// `details.event`.
pub(crate) fn event(row: &ExportedRow) -> String {
    details(row).get("event").and_then(Value::as_str).unwrap_or("unknown").to_owned()
}

/// How much a row matters: what is not as it was approved, or was lost, most.
pub(crate) fn severity(row: &ExportedRow) -> Severity {
    match event(row).as_str() {
        "tool_pin_mismatch"
        | "plugin_refused"
        | "plugin_trap"
        | "plugin_put_aside"
        | "plugin_revoked"
        | "operator_proof_refused"
        | "caller_refused"
        | "audit_gap"
        | "frozen" => Severity::Error,
        "mcp_denied" | "mcp_failed" | "approval.reject" | "approval.timeout" | "hidden_text_found"
        | "secret_revealed" | "index_refused" => Severity::Warning,
        _ => Severity::Info,
    }
}

fn details(row: &ExportedRow) -> Map<String, Value> {
    serde_json::from_str(row.details.get()).unwrap_or_default()
}

/// One RFC 5424 message: facility 13 (log audit), the event as MSGID, the row as MSG.
pub fn syslog_message(row: &ExportedRow, text: &str) -> String {
    let priority = 13 * 8 + severity(row).syslog();
    let ms = u64::try_from(row.created_at_ms).unwrap_or(0);
    let seconds = utc_text(ms);
    let time = format!("{}.{:03}Z", seconds.trim_end_matches('Z'), ms % 1000);
    // Printable ASCII without blanks, at most 32 characters (section 6.2.7).
    let id: String = event(row).chars().filter(char::is_ascii_graphic).take(32).collect();
    let id = if id.is_empty() { "-".to_owned() } else { id };
    format!("<{priority}>1 {time} - toolgate - {id} - {text}")
}

/// One attribute of OpenTelemetry.
pub(crate) fn attribute(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// The columns that a search goes by.
pub(crate) fn attributes(row: &ExportedRow) -> Vec<Value> {
    let details = details(row);
    let server = details.get("server").and_then(Value::as_str);
    let fields = [
        ("toolgate.action", Some(row.action.as_str())),
        ("toolgate.server", server),
        ("toolgate.tool", row.tool.as_deref()),
        ("toolgate.persona", row.persona_id.as_deref()),
        ("toolgate.run", row.run_id.as_deref()),
        ("toolgate.thread", row.thread_id.as_deref()),
        ("toolgate.request", row.request_id.as_deref()),
        ("toolgate.chain", Some(row.chain.as_str())),
        ("toolgate.hash", Some(row.hash.as_str())),
    ];
    let mut attributes: Vec<Value> =
        fields.into_iter().filter_map(|(key, value)| Some(attribute(key, value?))).collect();
    attributes.push(json!({ "key": "toolgate.id", "value": { "intValue": row.id.to_string() } }));
    attributes
}

/// The row as an event of OCSF 1.3, class API Activity (6003): who (`actor`), what (`api`, `resources`),
/// how it ended (`status_id`); the row itself is in `raw_data`.
pub fn ocsf(row: &ExportedRow) -> Value {
    let details = details(row);
    let text = |key: &str| details.get(key).and_then(Value::as_str);
    let event = event(row);
    let (severity_id, severity) = severity(row).ocsf();
    let (activity_id, activity) = activity(&row.action);
    let (status_id, status) = status(&event, &details);
    let server = text("server");
    let resources: Vec<Value> =
        row.tool.iter().map(|tool| json!({ "name": tool, "type": "tool", "namespace": server })).collect();
    json!({
        "class_uid": 6003, "class_name": "API Activity", "category_uid": 6,
        "category_name": "Application Activity",
        "activity_id": activity_id, "activity_name": activity, "type_uid": 600_300 + activity_id,
        "severity_id": severity_id, "severity": severity,
        "status_id": status_id, "status": status, "status_detail": text("reason").or_else(|| text("error")),
        "time": row.created_at_ms,
        "message": event,
        "metadata": {
            "version": "1.3.0", "uid": format!("{}:{}", row.chain, row.seq), "log_name": "audit_log",
            "event_code": event, "sequence": row.id, "correlation_uid": row.thread_id,
            "product": { "name": "Toolgate", "vendor_name": "Toolgate", "version": env!("CARGO_PKG_VERSION") },
        },
        "actor": {
            "user": { "name": text("approver").or_else(|| text("person")).or(row.persona_id.as_deref()), "uid": text("credential") },
            "session": { "uid": text("session") },
            "app_name": row.persona_id,
        },
        "api": {
            "operation": row.action, "service": { "name": server },
            "request": { "uid": row.request_id.as_deref().unwrap_or_default() },
        },
        "src_endpoint": { "name": text("surface").or_else(|| text("credential")).unwrap_or("toolgate") },
        "resources": resources,
        "raw_data": serde_json::to_string(row).unwrap_or_default(),
    })
}

fn activity(action: &str) -> (u32, &'static str) {
    match action.rsplit('.').next().unwrap_or_default() {
        "install" | "issue" | "grant" | "request" | "init" => (1, "Create"),
        "read" | "list" | "get" | "complete" | "reveal" => (2, "Read"),
        "decide" | "pin" | "trust" | "freeze" | "thaw" | "update" => (3, "Update"),
        "remove" | "revoke" | "archive" => (4, "Delete"),
        _ => (99, "Other"),
    }
}

fn status(event: &str, details: &Map<String, Value>) -> (u32, &'static str) {
    let is_error = details.get("is_error").and_then(Value::as_bool) == Some(true);
    let failed =
        ["_failed", "_denied", "_refused", "_cancelled", "_mismatch", "_trap", ".reject", ".timeout"];
    if is_error || failed.iter().any(|ending| event.ends_with(ending)) {
        (2, "Failure")
    } else {
        (1, "Success")
    }
}
