//! Lines depend on the bytes, not on how they arrive.

use proptest::prelude::*;

use super::*;
use crate::testing::{config, pieces, soup};
use crate::{Id, Message};

fn decode<'b>(max: usize, parts: impl IntoIterator<Item = &'b [u8]>) -> Vec<Line> {
    let mut decoder = LineDecoder::new(max);
    let mut lines: Vec<_> = parts.into_iter().flat_map(|part| decoder.push(part)).collect();
    lines.extend(decoder.finish());
    lines
}

fn texts(bytes: &[u8]) -> Vec<String> {
    let whole = decode(1000, [bytes]);
    assert_eq!(decode(1000, bytes.chunks(1)), whole, "bytewise");
    whole
        .into_iter()
        .map(|line| match line {
            Line::Text(text) => String::from_utf8(text).unwrap(),
            Line::TooLong { .. } => panic!("no line here is too long"),
        })
        .collect()
}

#[test]
fn st_04_a_byte_order_mark_at_the_start_is_dropped() {
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let lines = texts(format!("\u{feff}{reply}\n").as_bytes());
    assert_eq!(lines, [reply]);
    assert!(Message::parse(&lines[0]).is_ok());
    // Elsewhere it is text, and the door refuses it.
    assert_eq!(texts("a\n\u{feff}b".as_bytes()), ["a", "\u{feff}b"]);
    assert_eq!(texts("\u{feff}".as_bytes()), Vec::<String>::new());
}

#[test]
fn st_05_blank_lines_crlf_and_chunks_do_not_change_the_outcome() {
    let reply = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    assert_eq!(texts(format!("\r\n   \n{reply}\r\n").as_bytes()), [reply]);
    assert_eq!(texts(b"a\n\nb\r\n\t\r\nc"), ["a", "b", "c"]);
    assert_eq!(texts(b"a\rb\r\r\n"), ["a\rb\r"]);
}

#[test]
fn st_08_a_long_line_within_the_limit_is_delivered_byte_exact() {
    let long = "x".repeat(300 * 1024);
    let lines = decode(16 * 1024 * 1024, format!("{long}\n").as_bytes().chunks(4096));
    assert_eq!(lines, [Line::Text(long.into_bytes())]);
}

#[test]
fn the_limit_counts_the_line_without_its_ending() {
    assert_eq!(
        decode(3, [b"abc\r\nabc\nabcd\nab\r\n".as_slice()])
            .iter()
            .map(|line| matches!(line, Line::Text(_)))
            .collect::<Vec<_>>(),
        [true, true, false, true]
    );
    assert_eq!(decode(3, [b"\xEF\xBB\xBFabc\n".as_slice()]), [Line::Text(b"abc".to_vec())]);
}

#[test]
fn a_line_that_is_too_long_costs_only_itself_and_names_its_request() {
    let long = format!(r#"{{"jsonrpc":"2.0","result":"{}","id":4}}"#, "x".repeat(5000));
    let lines = decode(100, format!("{long}\r\nnext\n").as_bytes().chunks(7));
    let recovered = Recovered { id: Some(Id::number(4)), is_call: false };
    assert_eq!(lines, [Line::TooLong { bytes: long.len(), recovered }, Line::Text(b"next".to_vec())]);
}

#[test]
fn no_more_than_the_limit_is_held_of_an_endless_line() {
    let mut decoder = LineDecoder::new(1000);
    for _ in 0..10_000 {
        assert!(decoder.push(&[b'x'; 1000]).is_empty());
        assert!(decoder.buffer.capacity() <= 4000);
    }
    assert!(matches!(decoder.finish(), Some(Line::TooLong { bytes: 10_000_000, .. })));
}

/// What the lines of a whole stream are, said as plainly as possible.
fn plainly(bytes: &[u8], max: usize) -> Vec<Option<Vec<u8>>> {
    let bytes = bytes.strip_prefix(&BOM).unwrap_or(bytes);
    let lines = bytes.split(|&b| b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let said = lines.map(|line| (line.len() <= max).then(|| line.to_vec()));
    said.filter(|line| line.as_ref().is_none_or(|line| !line.iter().all(u8::is_ascii_whitespace))).collect()
}

const SOUP: &[&[u8]] =
    &[b"\n", b"\r", b"\r\n", b"\xEF", b"\xBB", b"\xBF", b"\xEF\xBB\xBF", b" ", b"{\"id\":1", b"}", b"ab"];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn st_05_every_chunking_gives_the_same_lines(
        bytes in soup(SOUP, 24), cuts: Vec<prop::sample::Index>, max in 3..12_usize,
    ) {
        let whole = decode(max, [bytes.as_slice()]);
        prop_assert_eq!(&decode(max, pieces(&bytes, &cuts)), &whole);
        prop_assert_eq!(&decode(max, bytes.chunks(1)), &whole);
        let texts: Vec<_> = whole.into_iter().map(|line| match line {
            Line::Text(text) => Some(text),
            Line::TooLong { .. } => None,
        }).collect();
        prop_assert_eq!(texts, plainly(&bytes, max));
    }
}
