use serde_json::{Map, Value, json};

use super::{MAX_DETAILS, MAX_TEXT, Prepared};
use crate::audit::event::Event;
use crate::audit::row::AuditRow;

fn details(row: AuditRow) -> Value {
    let text = Prepared::new(row).details;
    assert!(text.len() <= MAX_DETAILS, "{} bytes", text.len());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn details_that_fit_are_stored_as_they_are_aud_009() {
    let row = AuditRow::new(Event::McpFailed).with("error", "no route").with("n", 7);
    assert_eq!(Prepared::new(row).details, r#"{"event":"mcp_failed","error":"no route","n":7}"#);
}

#[test]
fn a_large_member_is_replaced_by_its_length_and_digest_and_the_others_stay() {
    let row = AuditRow::new(Event::McpFailed).with("error", "x".repeat(100_000)).with("server", "s");
    let details = details(row);
    assert_eq!(details["server"], "s");
    assert_eq!(details["error"]["omitted_bytes"], 100_002);
    assert!(details["error"]["digest"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn ten_thousand_members_still_leave_the_event_and_the_server() {
    let mut row = AuditRow::about_server(Event::McpInitialized, "s");
    for number in 0..10_000 {
        row = row.with(&format!("member{number}"), "value");
    }
    let details = details(row);
    assert_eq!(details["event"], "mcp_initialized");
    assert_eq!(details["server"], "s");
}

#[test]
fn details_that_are_no_object_are_bounded_too() {
    let mut row = AuditRow::new(Event::McpFailed);
    row.details = Value::from("y".repeat(50_000));
    assert_eq!(details(row)["omitted_bytes"], 50_002);
}

/// SE-03: nothing that acts on a screen is in the file, and no value is lost.
#[test]
fn details_keep_their_value_while_control_characters_become_escapes() {
    let hostile = "ok\u{1b}[2J\u{9b}31m\u{202e}\u{200b}\u{e0041}é";
    let row = AuditRow::new(Event::McpFailed).with("error", hostile);
    let text = Prepared::new(row).details;
    for bad in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{200b}', '\u{e0041}'] {
        assert!(!text.contains(bad), "{bad:?}");
    }
    assert!(text.contains('é'));
    let back: Map<String, Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(back["error"], json!(hostile));
}

/// SE-03 for the other columns, and a bound on what a stranger may choose.
#[test]
fn texts_of_strangers_are_escaped_and_cut() {
    let mut row = AuditRow::new(Event::McpDenied);
    row.tool = Some("t\u{1b}]0;pwn\u{7}".to_owned());
    row.request_id = Some("9".repeat(1_000_000));
    let prepared = Prepared::new(row);
    let tool = prepared.tool.unwrap();
    assert!(!tool.contains('\u{1b}') && !tool.contains('\u{7}'), "{tool:?}");
    let id = prepared.request_id.unwrap();
    assert!(id.len() <= MAX_TEXT, "{} bytes", id.len());
    assert!(id.contains("1000000 bytes, sha256:"), "{id}");
}
