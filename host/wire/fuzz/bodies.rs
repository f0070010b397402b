//! What each fuzz target asserts, shared by libFuzzer and by the replay of the corpus in `tests/fuzz_corpus.rs`.
//!
//! The first byte of an input for `line` and `sse` says how the rest is cut and how much may be held; an input for
//! `edit` is a pointer, a line feed, a value, a line feed and a document.

use serde_json::value::RawValue;
use toolgate_wire::line::{Line, LineDecoder};
use toolgate_wire::sse::{SseDecoder, SseItem};
use toolgate_wire::{Limits, Message, door, edit};

/// The door agrees with `serde_json` about syntax, and what it passes is what `serde_json` reads.
pub fn door(data: &[u8]) {
    let limits = Limits { max_message: 1 << 20, max_depth: 64 };
    let json = std::str::from_utf8(data).is_ok_and(is_json);
    let scanned = door::scan(data, &limits);
    match door::survey(data, &limits) {
        Ok(survey) => {
            assert!(json, "the door took for JSON what is none");
            assert_eq!(scanned.is_ok(), survey.defects.is_empty());
            for defect in &survey.defects {
                assert!(defect.offset <= data.len() && is_pointer(&defect.pointer));
            }
        }
        // What a survey gives up on is broken, too deep, or has too many defects.
        Err(error) => assert!(!json || error.kind != door::DoorErrorKind::Syntax, "the door refused JSON"),
    }
    if let Ok(text) = scanned {
        assert_eq!(text.as_bytes(), data);
        let id = edit::get(text, "/id").filter(|_| text.trim_start().starts_with('{'));
        assert_eq!(
            door::recover_id(data),
            id.filter(|id| id.len() < 1000).and_then(toolgate_wire::Id::from_json)
        );
    }
    door::recover(data);
}

/// Cuts do not change the lines, and no line is longer than it may be.
pub fn line(data: &[u8]) {
    let Some((&control, stream)) = data.split_first() else { return };
    let (step, max) = (1 + usize::from(control & 15), 3 + usize::from(control >> 4) * 8);
    let whole = lines(max, [stream]);
    assert_eq!(lines(max, stream.chunks(step)), whole);
    for line in &whole {
        match line {
            Line::Text(text) => assert!(text.len() <= max && !text.contains(&b'\n')),
            Line::TooLong { bytes, .. } => assert!(*bytes > max),
        }
    }
}

/// Cuts do not change the events, and an event that was read can be written and read again.
pub fn sse(data: &[u8]) {
    let Some((&control, stream)) = data.split_first() else { return };
    let (step, max) = (1 + usize::from(control & 15), 1 + usize::from(control >> 4) * 8);
    let whole = events(max, [stream]);
    assert_eq!(events(max, stream.chunks(step)), whole);
    for item in whole.0 {
        if let SseItem::Event(event) = item {
            assert!(!event.data.is_empty());
            let written =
                toolgate_wire::sse::encode(event.event.as_deref(), event.id.as_deref(), &event.data);
            let (again, ..) = events(1 << 20, [written.as_bytes()]);
            assert_eq!(
                again,
                if event.data.is_empty() {
                    vec![]
                } else {
                    vec![SseItem::Event(toolgate_wire::sse::SseEvent { lossy: false, ..event })]
                }
            );
        }
    }
}

/// An edit of JSON gives JSON, holds what was set, and can be undone.
pub fn edit(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some((pointer, rest)) = text.split_once('\n') else { return };
    let Some((value, json)) = rest.split_once('\n') else { return };
    let old = edit::get(json, pointer).map(str::to_owned);
    let _ = (edit::members(json), edit::elements(json), edit::string(json), edit::drop_all(json, &[pointer]));
    let ensured = edit::ensure(json, pointer, value);
    let Ok(new) = edit::set(json, pointer, value) else { return };
    if door::scan(json.as_bytes(), &Limits::default()).is_err() {
        return;
    }
    assert!(is_json(&new));
    assert_eq!(ensured.as_deref(), Ok(new.as_str()));
    match old {
        Some(old) => {
            assert_eq!(edit::get(&new, pointer), Some(value.trim_matches([' ', '\t', '\n', '\r'])));
            let back = edit::set(&new, pointer, &old);
            assert_eq!(back.as_deref(), Ok(if pointer.is_empty() { old.as_str() } else { json }));
        }
        // An insertion; `-` and the length of an array name the place only before it is filled.
        None => assert!(new.len() > json.trim().len()),
    }
}

/// A message that was read can be written as one line and read again.
pub fn message(data: &[u8]) {
    let Ok(text) = door::scan(data, &Limits::default()) else { return };
    for message in Message::parse_batch(text).unwrap_or_default().into_iter().flatten() {
        let line = message.to_text();
        assert!(!line.contains(['\n', '\r']) && is_json(&line));
        let Ok(again) = Message::parse(&line) else { panic!("a written message is a message") };
        assert_eq!(again.to_text(), line);
        assert_eq!((again.id(), again.method()), (message.id(), message.method()));
    }
}

fn lines<'b>(max: usize, parts: impl IntoIterator<Item = &'b [u8]>) -> Vec<Line> {
    let mut decoder = LineDecoder::new(max);
    let mut lines: Vec<_> = parts.into_iter().flat_map(|part| decoder.push(part)).collect();
    lines.extend(decoder.finish());
    lines
}

fn events<'b>(
    max: usize,
    parts: impl IntoIterator<Item = &'b [u8]>,
) -> (Vec<SseItem>, Option<String>, Option<u64>) {
    let mut decoder = SseDecoder::new(max);
    let items = parts.into_iter().flat_map(|part| decoder.push(part)).collect();
    (items, decoder.last_event_id().map(str::to_owned), decoder.retry_ms())
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

fn is_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/'))
        && text.split('~').skip(1).all(|after| after.starts_with(['0', '1', '…']))
}
