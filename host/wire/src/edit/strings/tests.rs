//! Only the strings that change are rewritten.

use proptest::prelude::*;

use super::*;
use crate::edit::EditError;
use crate::testing::{config, json_text};

#[test]
fn only_the_strings_that_change_are_rewritten() {
    let document = r#"{"a\u0062": "x\u0079z", "n": 1.50, "list":[ "keep\n", "drop" ]}"#;
    let changed = map_strings(document, &|text| (text == "drop").then(|| "\"new\"".to_owned()));
    assert_eq!(changed.unwrap(), document.replace("\"drop\"", r#""\"new\"""#));
    let keys = map_strings(document, &|text| (text == "ab").then(|| "c".to_owned()));
    assert_eq!(keys.unwrap(), document.replace(r"a\u0062", "c"));
}

#[test]
fn keys_that_become_equal_are_an_error() {
    let strip = |text: &str| text.contains('\u{200b}').then(|| text.replace('\u{200b}', ""));
    let document = "{\"x\":[{\"name\":1,\"na\u{200b}me\":2}]}";
    assert_eq!(map_strings(document, &strip), Err(EditError::KeysMeet("/x/0/name".to_owned())));
    assert!(map_strings("{\"a\":{\"name\":1},\"na\u{200b}me\":2}", &strip).is_ok());
}

#[test]
fn a_string_without_an_end_is_an_error() {
    for document in ["{\"a\":\"b", "\"", "[\"\\", "\"\\é"] {
        assert!(map_strings(document, &|_| None).is_err(), "{document}");
    }
}

/// Every string of a document in the order of the text, found by walking.
fn strings(json: &str, out: &mut Vec<String>) {
    out.extend(crate::edit::string(json));
    for (key, value) in crate::edit::members(json).unwrap_or_default() {
        out.push(key);
        strings(value, out);
    }
    for value in crate::edit::elements(json).unwrap_or_default() {
        strings(value, out);
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn changing_nothing_gives_the_document_back(json in json_text()) {
        prop_assert_eq!(map_strings(&json, &|_| None).unwrap(), json);
    }

    #[test]
    fn every_string_is_seen_unescaped(json in json_text()) {
        let seen = std::cell::RefCell::new(Vec::new());
        map_strings(&json, &|text| { seen.borrow_mut().push(text.to_owned()); None }).unwrap();
        let mut expected = Vec::new();
        strings(&json, &mut expected);
        prop_assert_eq!(seen.into_inner(), expected);
    }
}
