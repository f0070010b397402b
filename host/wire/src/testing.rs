//! What the property tests share: a fixed seed, JSON texts of every shape, and cuts through bytes.

use std::fmt::Write;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

use crate::json;

/// 256 cases from one seed, so that a run is the same everywhere and leaves no files behind.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 256,
        rng_seed: RngSeed::Fixed(0x0070_0194_7e00),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// JSON text: any shape, blanks between tokens, escapes, numbers no double holds; keys are unique in their object.
pub(crate) fn json_text() -> impl Strategy<Value = String> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            (vec((blank(), inner.clone(), blank()), 0..5)).prop_map(|items| {
                let items: Vec<_> = items.iter().map(|(a, item, b)| format!("{a}{item}{b}")).collect();
                format!("[{}]", items.join(","))
            }),
            object(inner),
        ]
    })
}

/// JSON text of an object.
pub(crate) fn object_text() -> impl Strategy<Value = String> {
    object(json_text())
}

fn object(inner: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((blank(), key(), blank(), inner, blank()), 0..6).prop_map(|members| {
        let mut seen = std::collections::HashSet::new();
        let members: Vec<_> = members
            .iter()
            .filter(|(_, key, ..)| seen.insert(json::string(key)))
            .map(|(a, key, b, value, c)| format!("{a}{key}{b}:{b}{value}{c}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

fn blank() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", "", " ", "\n", "\r\n\t "])
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["id", "method", "a/b", "m~n", "", "é", "~1", "0", "-", "_meta", "name"])
            .prop_map(json::quote),
        Just(r#""\u006eame""#.to_owned()),
        string(),
    ]
}

/// A JSON string, some characters escaped though they need not be.
fn string() -> impl Strategy<Value = String> {
    vec((any::<char>(), any::<bool>()), 0..12).prop_map(|chars| {
        let mut text = String::from("\"");
        for (c, escape) in chars {
            if escape {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    write!(text, "\\u{unit:04X}").unwrap();
                }
            } else {
                let quoted = json::quote(&c.to_string());
                text.push_str(quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap());
            }
        }
        text.push('"');
        text
    })
}

fn scalar() -> impl Strategy<Value = String> {
    let fixed = ["null", "true", "false", "0", "-0", "1e5", "-1.50E+3", "1e999", "9007199254740993", "42.0"];
    prop_oneof![
        select(fixed.to_vec()).prop_map(str::to_owned),
        Just("123456789012345678901234567890".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        string(),
    ]
}

/// The same bytes, in pieces cut at the given places.
pub(crate) fn pieces<'b>(bytes: &'b [u8], cuts: &[proptest::sample::Index]) -> Vec<&'b [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

/// Bytes over a small alphabet, so that the interesting ones meet often.
pub(crate) fn soup(alphabet: &'static [&'static [u8]], length: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(select(alphabet), 0..length).prop_map(|parts| parts.concat())
}
