//! Events depend on the bytes, not on how they arrive or which line ends they use.

use proptest::prelude::*;

use super::*;
use crate::Id;
use crate::testing::{config, pieces, soup};

/// The events of a stream, with the state at its end.
fn decode<'b>(
    max: usize,
    parts: impl IntoIterator<Item = &'b [u8]>,
) -> (Vec<SseItem>, Option<String>, Option<u64>) {
    let mut decoder = SseDecoder::new(max);
    let items = parts.into_iter().flat_map(|part| decoder.push(part)).collect();
    (items, decoder.last_event_id().map(str::to_owned), decoder.retry_ms())
}

fn events(text: &str) -> Vec<SseEvent> {
    let whole = decode(1000, [text.as_bytes()]);
    assert_eq!(decode(1000, text.as_bytes().chunks(1)), whole, "bytewise");
    whole
        .0
        .into_iter()
        .map(|item| match item {
            SseItem::Event(event) => event,
            SseItem::TooLong { .. } => panic!("no event here is too long"),
        })
        .collect()
}

fn data(text: &str) -> Vec<String> {
    events(text).into_iter().map(|event| event.data).collect()
}

const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

#[test]
fn ht_01_a_priming_event_and_a_keep_alive_are_no_messages_and_the_id_stays() {
    let text = format!("id: 7\ndata:\n\n: hb\n\nevent: message\ndata: {RESULT}\n\n");
    let (items, id, _) = decode(1000, [text.as_bytes()]);
    assert_eq!(
        items,
        [SseItem::Event(SseEvent {
            event: Some("message".into()),
            data: RESULT.into(),
            ..SseEvent::default()
        })]
    );
    assert_eq!(id.as_deref(), Some("7"));
    let (_, id, _) = decode(1000, [text.as_bytes(), b"id: 8\ndata: x\n\n", b"id: 9\ndata: cut off"]);
    assert_eq!(id.as_deref(), Some("8"));
}

#[test]
fn ht_02_crlf_and_cr_give_the_events_of_lf() {
    let text = format!("retry: 5\nid: 1\nevent: message\ndata: {RESULT}\n\n: c\ndata: a\ndata: b\n\n");
    let expected = decode(1000, [text.as_bytes()]);
    assert_eq!(expected.0.len(), 2);
    for ending in ["\r\n", "\r"] {
        let other = text.replace('\n', ending);
        assert_eq!(decode(1000, [other.as_bytes()]), expected, "{ending:?}");
        assert_eq!(decode(1000, other.as_bytes().chunks(1)), expected, "{ending:?} bytewise");
    }
}

#[test]
fn ht_05_an_unknown_event_type_and_foreign_data_do_not_stop_the_stream() {
    let found = events(&format!("event: status\ndata: warming up\n\nevent: message\ndata: {RESULT}\n\n"));
    assert_eq!(found.iter().map(SseEvent::is_message).collect::<Vec<_>>(), [false, true]);
    assert_eq!(found[1].data, RESULT);
}

#[test]
fn data_lines_are_joined_and_one_space_is_dropped() {
    assert_eq!(data("data:a\ndata: b\ndata:  c\ndata\ndata:\n\n"), ["a\nb\n c\n\n"]);
    assert_eq!(data("data: a\n\n\n\ndata: b\n\n"), ["a", "b"]);
    assert_eq!(data("data: a"), Vec::<String>::new());
}

#[test]
fn a_byte_order_mark_at_the_start_is_dropped() {
    assert_eq!(data("\u{feff}data: a\n\n"), ["a"]);
    assert_eq!(data("data: a\n\n\u{feff}data: b\n\n"), ["a"]);
}

#[test]
fn the_type_lasts_for_one_event_and_unknown_fields_for_none() {
    let found = events("event: x\n\ndata: a\n\nevent: y\nfoo: bar\nfoo\ndata: b\n\nevent:\ndata: c\n\n");
    assert_eq!(found.iter().map(|event| event.event.as_deref()).collect::<Vec<_>>(), [None, Some("y"), None]);
}

#[test]
fn ids_and_retry_follow_the_standard() {
    let end = |text: &str| {
        let (_, id, retry) = decode(1000, [text.as_bytes()]);
        (id, retry)
    };
    assert_eq!(end("id: a\0b\ndata: x\n\n"), (None, None));
    assert_eq!(end("id: a\n\nid\n\n"), (None, None));
    assert_eq!(end(&format!("id: a\n\nid: {}\n\n", "x".repeat(900))).0.map(|id| id.len()), Some(900));
    assert_eq!(
        end("retry: 1500\nretry: 1x\nretry:\nretry: -1\nretry: 99999999999999999999999\n").1,
        Some(1500)
    );
    let long = format!("id: a\n\nid: {}\n\n", "x".repeat(MAX_ID + 1));
    assert_eq!(decode(100_000, [long.as_bytes()]).1.as_deref(), Some("a"));
}

#[test]
fn st_11_data_that_is_no_utf8_is_marked() {
    let (items, ..) =
        decode(1000, [b"data: {\"id\":4,\"result\":\"\xC3\x28\"}\n\ndata: \xC3".as_slice(), b"\xA9\n\n"]);
    let [SseItem::Event(broken), SseItem::Event(sound)] = items.as_slice() else { panic!("two events") };
    assert!(broken.lossy && !sound.lossy);
    assert_eq!(sound.data, "é");
    assert_eq!(crate::door::recover_id(broken.data.as_bytes()), Some(Id::number(4)));
}

#[test]
fn an_event_that_is_too_long_costs_only_itself_and_names_its_request() {
    let long = format!(r#"{{"result":"{}","id":4}}"#, "x".repeat(5000));
    let text = format!("data: a\n\nid: 3\ndata: {long}\n\ndata: b\n\n");
    let (items, id, _) = decode(100, text.as_bytes().chunks(11));
    let recovered = Recovered { id: Some(Id::number(4)), is_call: false };
    assert_eq!(items.len(), 3);
    assert_eq!(items[1], SseItem::TooLong { recovered });
    assert_eq!(id.as_deref(), Some("3"));
    let many = format!("data: {{\"id\":5\n{}\n", "data: ,\"a\":1\n".repeat(50));
    assert_eq!(
        decode(100, [many.as_bytes()]).0,
        [SseItem::TooLong { recovered: Recovered { id: Some(Id::number(5)), is_call: false } }]
    );
}

#[test]
fn a_comment_of_any_length_takes_nothing_from_the_event() {
    let text = format!("data: a\n: {}\ndata: b\n\n", "x".repeat(5000));
    assert_eq!(decode(100, text.as_bytes().chunks(13)).0.len(), 1);
    assert!(matches!(&decode(100, [text.as_bytes()]).0[0], SseItem::Event(event) if event.data == "a\nb"));
}

#[test]
fn no_more_than_the_limit_is_held_of_an_endless_event() {
    let mut decoder = SseDecoder::new(1000);
    for _ in 0..10_000 {
        assert!(decoder.push(b"data: 0123456789012345678901234567890123456789\n").is_empty());
        assert!(decoder.push(b"").is_empty());
    }
    assert_eq!(decoder.push(b"\n").len(), 1);
}

#[test]
fn encoding_starts_no_field_of_its_own() {
    assert_eq!(
        encode(Some("a\ndata: x"), Some("1\r\n2\0"), "x\r\ny\rz\n"),
        "event: adata: x\nid: 12\ndata: x\ndata: y\ndata: z\ndata:\n\n"
    );
    assert_eq!(encode(None, Some("7"), ""), "id: 7\ndata:\n\n");
    assert_eq!(data(KEEP_ALIVE), Vec::<String>::new());
    assert_eq!(decode(10, [encode_retry(20).as_bytes()]).2, Some(20));
}

const SOUP: &[&[u8]] = &[
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"data: a",
    b"data",
    b":",
    b" ",
    b"event: x",
    b"id: 1",
    b"id",
    b"retry: 5",
    b"\xEF\xBB\xBF",
    b"\xEF",
    b"\xC3\xA9",
    b"\xC3",
    b"\0",
    b"data: {\"id\":1",
    b"long enough to be too long",
    b": comment",
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_chunking_gives_the_same_events(bytes in soup(SOUP, 30), cuts: Vec<prop::sample::Index>, max in 1..40_usize) {
        let whole = decode(max, [bytes.as_slice()]);
        prop_assert_eq!(&decode(max, pieces(&bytes, &cuts)), &whole);
        prop_assert_eq!(&decode(max, bytes.chunks(1)), &whole);
    }

    #[test]
    fn ht_02_line_ends_do_not_matter(lines in prop::collection::vec("(data|event|id|:|x)?(:[ a-c]{0,3})?", 0..12)) {
        let whole = decode(1000, [format!("{}\n", lines.join("\n")).as_bytes()]);
        for ending in ["\r\n", "\r"] {
            prop_assert_eq!(&decode(1000, [format!("{}{ending}", lines.join(ending)).as_bytes()]), &whole);
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(text in "[ -~é\u{1F600}\n\r\t]{0,40}", event in "[a-z]{0,8}", id in "[0-9a-f]{1,8}", cuts: Vec<prop::sample::Index>) {
        let encoded = encode(Some(event.as_str()), Some(id.as_str()), &text);
        let (items, last, _) = decode(1000, pieces(encoded.as_bytes(), &cuts));
        prop_assert_eq!(last.as_deref(), Some(id.as_str()));
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let expected = SseEvent { event: Some(event).filter(|event| !event.is_empty()), data: text.clone(), id: Some(id), lossy: false };
        prop_assert_eq!(items, if text.is_empty() { vec![] } else { vec![SseItem::Event(expected)] });
    }
}
