#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)]

use std::path::Path;

use serde_json::Value;
use toolgate_config::{Sink, SinkFormat, SinkTarget};
use toolgate_store::{AuditReader, AuditRow, Event, ExportedRow, Store, VerifyOptions};

use crate::{Health, SinkError, deliver, delivered, ocsf, state, syslog_message};

fn with_rows(data: &Path, count: usize) {
    let store = Store::open(data, "cli").unwrap();
    for number in 0..count {
        store.append_detached(
            AuditRow::about_server(Event::McpDenied, "notes").with("n", number).with("reason", "no"),
        );
    }
}

fn file_sink(path: &Path, rotate: u64, format: SinkFormat) -> Sink {
    Sink {
        name: "file".to_owned(),
        format,
        target: SinkTarget::Jsonl { path: path.to_owned(), rotate, keep: 2 },
        missing: Vec::new(),
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn first(data: &Path) -> ExportedRow {
    AuditReader::open(data).unwrap().export_after(0, 1).unwrap().remove(0)
}

#[test]
fn each_row_is_delivered_once_the_cursor_moves_and_the_lines_prove_themselves() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("out/audit.jsonl"));
    std::fs::create_dir(dir.path().join("out")).unwrap();
    let sink = file_sink(&file, 1 << 30, SinkFormat::Toolgate);
    with_rows(&data, 1200);
    assert_eq!(run(deliver(&data, &sink)).unwrap(), 1200, "more than two batches");
    with_rows(&data, 3);
    assert_eq!(run(deliver(&data, &sink)).unwrap(), 3);
    assert_eq!(run(deliver(&data, &sink)).unwrap(), 0);
    let told = state(&data, "file").unwrap();
    assert_eq!((told.cursor, told.delivered, told.health), (1203, 1203, Health::Delivering));
    assert_eq!(delivered(&data, &[sink]).unwrap(), Some(1203));
    let report = AuditReader::verify_file(&file, &VerifyOptions::default()).unwrap();
    assert!(report.is_intact() && report.rows == 1203, "{:?}", report.findings);
}

#[test]
fn a_file_is_rotated_at_its_size_and_half_a_line_of_a_kill_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("audit.jsonl"));
    let sink = file_sink(&file, 4096, SinkFormat::Toolgate);
    std::fs::write(&file, "{\"whole\":1}\n{\"half\":").unwrap();
    for _ in 0..4 {
        with_rows(&data, 6);
        run(deliver(&data, &sink)).unwrap();
    }
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap_or_default();
    assert!(
        !read("audit.jsonl").is_empty()
            && !read("audit.jsonl.1").is_empty()
            && !read("audit.jsonl.2").is_empty()
    );
    assert!(read("audit.jsonl.3").is_empty(), "two are kept");
    for name in ["audit.jsonl", "audit.jsonl.1", "audit.jsonl.2"] {
        assert!(read(name).lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{name}");
    }
}

#[test]
fn a_receiver_that_is_down_keeps_the_cursor_and_is_said_to_be_without_its_credential() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    with_rows(&data, 2);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let target = SinkTarget::Webhook {
        url: format!("http://{address}/in?key=hush-hush"),
        headers: vec![("authorization".to_owned(), toolgate_base::Secret::new("Bearer hush-hush"))],
    };
    let sink = Sink { name: "hook".to_owned(), format: SinkFormat::Toolgate, target, missing: Vec::new() };
    let error = run(deliver(&data, &sink)).unwrap_err();
    assert!(matches!(error, SinkError::Receiver(_)), "{error}");
    let told = state(&data, "hook").unwrap();
    assert_eq!((told.cursor, told.health), (0, Health::Retrying));
    let everything = format!("{error} {error:?} {} {sink:?}", serde_json::to_string(&told).unwrap());
    assert!(!everything.replace("key=hush-hush", "").contains("hush-hush"), "{everything}");
    assert!(!told.error.unwrap().contains("hush-hush"));
}

/// After `audit.db` was moved away its numbers begin at 1 again.
#[test]
fn the_rows_of_a_log_that_was_begun_anew_are_delivered_from_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let (data, file) = (dir.path().join("data"), dir.path().join("audit.jsonl"));
    let sink = file_sink(&file, 1 << 30, SinkFormat::Toolgate);
    with_rows(&data, 5);
    run(deliver(&data, &sink)).unwrap();
    for rows in [2, 9] {
        for name in ["audit.db", "audit.db-wal", "audit.db-shm", "audit.heads"] {
            let _ = std::fs::remove_file(data.join(name));
        }
        with_rows(&data, rows);
        assert_eq!(run(deliver(&data, &sink)).unwrap(), rows as u64, "{rows}");
        assert!(state(&data, "file").unwrap().note.unwrap().contains("anew"));
    }
}

#[test]
fn a_cursor_that_cannot_be_read_is_an_error_and_no_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    with_rows(&data, 2);
    let sink = file_sink(&dir.path().join("audit.jsonl"), 4096, SinkFormat::Toolgate);
    run(deliver(&data, &sink)).unwrap();
    std::fs::write(data.join("sinks/file.json"), "{}").unwrap();
    assert!(matches!(run(deliver(&data, &sink)), Err(SinkError::Cursor { .. })));
}

/// Every member that the class API Activity of OCSF 1.3 requires is there.
#[test]
fn an_ocsf_event_has_what_its_class_requires() {
    let dir = tempfile::tempdir().unwrap();
    with_rows(dir.path(), 1);
    let event = ocsf(&first(dir.path()));
    for pointer in [
        "/activity_id",
        "/actor/user",
        "/api/operation",
        "/category_uid",
        "/class_uid",
        "/metadata/product/vendor_name",
        "/metadata/version",
        "/severity_id",
        "/src_endpoint",
        "/time",
        "/type_uid",
    ] {
        assert!(event.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}: {event}");
    }
    assert_eq!(event["type_uid"], 600_399);
    assert_eq!((&event["status_id"], &event["severity_id"]), (&Value::from(2), &Value::from(3)), "a denial");
    let raw: ExportedRow = serde_json::from_str(event["raw_data"].as_str().unwrap()).unwrap();
    assert_eq!(raw.id, 1);
}

#[test]
fn a_syslog_message_has_the_header_of_rfc_5424() {
    let dir = tempfile::tempdir().unwrap();
    with_rows(dir.path(), 1);
    let row = first(dir.path());
    let message = syslog_message(&row, "{}");
    let fields: Vec<&str> = message.split(' ').collect();
    assert_eq!(
        (fields[0], fields[2], fields[3], fields[4], fields[5]),
        ("<108>1", "-", "toolgate", "-", "mcp_denied")
    );
    assert_eq!(fields[6..], ["-", "{}"]);
    let time = fields[1];
    assert!(time.len() == 24 && time.ends_with('Z') && time.as_bytes()[19] == b'.', "{time}");
}
