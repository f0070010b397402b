use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::AuditRow;
use crate::audit::event::Event;
use crate::testing::{call, digest};

#[test]
fn every_event_has_a_name_of_its_own_and_a_dotted_action_aud_006() {
    let names: BTreeSet<&str> = Event::ALL.iter().map(|event| event.name()).collect();
    assert_eq!(names.len(), Event::ALL.len());
    for event in Event::ALL.iter().copied() {
        assert_eq!(event.action().split('.').count(), 2, "{}", event.action());
        assert_eq!(AuditRow::new(event).details["event"], event.name());
    }
}

/// AUD-003..009, AUD-013: a call says who, what and which request, and holds no arguments.
#[test]
fn a_called_row_names_run_thread_persona_tool_and_request() {
    let row = AuditRow::called(&call(), &digest("{}"));
    assert_eq!(row.run_id.as_deref(), Some("run-7"));
    assert_eq!(row.thread_id.as_deref(), Some("thread-3"));
    assert_eq!(row.persona_id.as_deref(), Some("default"));
    assert_eq!(row.action, "tool.execute");
    assert_eq!(row.tool.as_deref(), Some("issues/create"), "the original name");
    assert_eq!(row.request_id.as_deref(), Some("\"1\""), "a text id stays apart from a number");
    assert_eq!(
        row.details,
        json!({
            "event": "mcp_called", "lane": "main", "credential": "stdio", "session": "s-1",
            "server": "github", "exposed": "github__issues_create_0123456789",
            "args": digest("{}").to_string(), "surface": "stdio",
        })
    );
}

/// AUD-014, AUD-015 and the vocabulary of acceptance 2.5.
#[test]
fn each_kind_of_row_has_the_members_the_vocabulary_gives_it() {
    let has = |row: AuditRow, event: &str, members: &[&str]| {
        assert_eq!(row.details["event"], event);
        for member in members {
            assert_ne!(row.details[member], Value::Null, "{event} needs {member}");
        }
        row
    };
    has(AuditRow::completed(&call(), true), "mcp_completed", &["server", "is_error"]);
    has(AuditRow::failed(&call(), "closed"), "mcp_failed", &["server", "error"]);
    has(AuditRow::cancelled(&call()), "mcp_cancelled", &["server"]);
    has(
        AuditRow::denied(&call(), "policy", Some("toolgate/trust"), "drift"),
        "mcp_denied",
        &["server", "rule", "by", "reason"],
    );
    has(
        AuditRow::initialized("github", "2025-11-25", json!({"tools": {}})),
        "mcp_initialized",
        &["server", "negotiated_version", "capabilities"],
    );
    let failed = has(AuditRow::connect_failed("github", "exit 1"), "mcp_failed", &["server", "error"]);
    assert_eq!(failed.action, "server.connect");
    let drift = AuditRow::pin_mismatch("github", "echo", Some(&digest("a")), Some(&digest("b")));
    let drift = has(drift, "tool_pin_mismatch", &["server", "expected", "actual"]);
    assert_eq!(drift.tool.as_deref(), Some("echo"));
    let asked = AuditRow::asked(&call(), "ask_0011223344556677", "fallback", 1);
    has(asked, "approval.request", &["ask", "reason", "expires_at"]);
    has(AuditRow::plugin_refused("a/b", "digest"), "plugin_refused", &["plugin", "reason"]);
    has(AuditRow::plugin_trap("a/b", "epoch", Some(&call())), "plugin_trap", &["plugin", "fault", "server"]);
    let token = has(AuditRow::token_issued("tok_1", "default", "main"), "token_issued", &["token"]);
    assert_eq!(token.persona_id.as_deref(), Some("default"));
}
