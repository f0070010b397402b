//! An edit changes what it names and nothing else.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::testing::{config, json_text, object_text, soup};

/// Every pointer of a document with the raw text it names, found by walking, not by looking up.
fn places(json: &str) -> BTreeMap<String, String> {
    fn walk(json: &str, at: &str, out: &mut BTreeMap<String, String>) {
        out.insert(at.to_owned(), json.to_owned());
        let token = |key: &str| key.replace('~', "~0").replace('/', "~1");
        for (key, value) in members(json).unwrap_or_default() {
            walk(value, &format!("{at}/{}", token(&key)), out);
        }
        for (index, value) in elements(json).unwrap_or_default().into_iter().enumerate() {
            walk(value, &format!("{at}/{index}"), out);
        }
    }
    let mut out = BTreeMap::new();
    walk(json.trim_matches([' ', '\n', '\r', '\t']), "", &mut out);
    out
}

fn is_at_or_below(pointer: &str, other: &str) -> bool {
    pointer == other || pointer.strip_prefix(other).is_some_and(|rest| rest.starts_with('/'))
}

const DOCUMENT: &str =
    "{ \"a\" : [1 , 2.0,{\"b\":null}] ,\n  \"m~n/o\":\"x\", \"\":{ } , \"n\\u0061me\":1e2 }";

#[test]
fn get_finds_members_elements_escaped_tokens_and_escaped_keys() {
    assert_eq!(get(DOCUMENT, ""), Some(DOCUMENT));
    assert_eq!(get(DOCUMENT, "/a/1"), Some("2.0"));
    assert_eq!(get(DOCUMENT, "/a/2/b"), Some("null"));
    assert_eq!(get(DOCUMENT, "/m~0n~1o"), Some("\"x\""));
    assert_eq!(get(DOCUMENT, "/"), Some("{ }"));
    assert_eq!(get(DOCUMENT, "/name"), Some("1e2"));
    for missing in [
        "/b",
        "/a/3",
        "/a/-",
        "/a/01",
        "/a/+1",
        "/a/1/x",
        "a",
        "/m~2",
        "/m~",
        "//x",
        "/a/99999999999999999999",
    ] {
        assert_eq!(get(DOCUMENT, missing), None, "{missing}");
    }
}

#[test]
fn set_replaces_in_place_and_leaves_every_other_byte() {
    let new = set(DOCUMENT, "/a/1", " [true] ").unwrap();
    assert_eq!(new, DOCUMENT.replace("2.0", "[true]"));
    assert_eq!(set(DOCUMENT, "/name", "0").unwrap(), DOCUMENT.replace("1e2", "0"));
    assert_eq!(set(DOCUMENT, "", " 1 ").unwrap(), "1");
}

#[test]
fn set_inserts_the_last_member_and_appends_elements() {
    assert_eq!(set("{}", "/a~1b", "1").unwrap(), r#"{"a/b":1}"#);
    assert_eq!(set(r#"{"a":1 }"#, "/\"", "2").unwrap(), r#"{"a":1 ,"\"":2}"#);
    assert_eq!(set("[ ]", "/-", "1").unwrap(), "[ 1]");
    assert_eq!(set("[1]", "/1", "2").unwrap(), "[1,2]");
    assert_eq!(set(r#"{"a":{}}"#, "/a/-", "2").unwrap(), r#"{"a":{"-":2}}"#);
}

#[test]
fn set_needs_its_parents_and_ensure_makes_them() {
    assert_eq!(set("{}", "/a/b", "1"), Err(EditError::Missing("/a/b".to_owned())));
    assert_eq!(ensure("{}", "/a/b/c", "1").unwrap(), r#"{"a":{"b":{"c":1}}}"#);
    assert_eq!(ensure(r#"{"a":{"x":0}}"#, "/a/b", "1").unwrap(), r#"{"a":{"x":0,"b":1}}"#);
    assert_eq!(ensure(r#"{"a":1}"#, "/a/b", "1"), Err(EditError::NotThere("/a/b".to_owned())));
    assert_eq!(set("[1]", "/2", "1"), Err(EditError::Missing("/2".to_owned())));
    assert_eq!(set("[1]", "/x", "1"), Err(EditError::NotThere("/x".to_owned())));
}

#[test]
fn many_edits_count_in_the_document_as_it_was() {
    let edits = [("/0", None), ("/1/a", Some("9")), ("/2", None), ("/-", Some("5"))];
    assert_eq!(set_all(r#"[0, {"a":1}, 2, 3]"#, &edits).unwrap(), r#"[ {"a":9}, 3,5]"#);
    assert_eq!(set_all(r#"{"a":1,"b":2}"#, &[("/b", None), ("/a", None)]).unwrap(), "{}");
    assert_eq!(
        set_all(r#"{"a":1,"b":2}"#, &[("/d", Some("4")), ("/c", Some("3")), ("/a", None)]).unwrap(),
        r#"{"b":2,"d":4,"c":3}"#
    );
    assert_eq!(set_all(" [1]\n", &[]).unwrap(), " [1]\n");
}

#[test]
fn edits_that_overlap_are_refused() {
    for pair in [["/a", "/a"], ["/a", "/a/0"], ["/a/0", "/a"], ["", "/a"]] {
        let edits = pair.map(|pointer| (pointer, Some("1")));
        assert!(matches!(set_all(DOCUMENT, &edits), Err(EditError::Overlap(_))), "{pair:?}");
    }
}

#[test]
fn a_removal_that_names_nothing_is_an_error_unless_it_may() {
    assert_eq!(set_all("{}", &[("/a", None)]), Err(EditError::Missing("/a".to_owned())));
    assert_eq!(set_all("[]", &[("/0", None)]), Err(EditError::Missing("/0".to_owned())));
    assert_eq!(set_all("{}", &[("", None)]), Err(EditError::Root));
    assert_eq!(
        drop_all(r#"{"a":1,"b":[2],"c":3}"#, &["/x", "/a", "/b/7", "/b/x", "/c/d"]).unwrap(),
        r#"{"b":[2],"c":3}"#
    );
}

#[test]
fn a_value_that_is_no_json_cannot_be_spliced_in() {
    for value in ["", "1,\"x\":2", "}", "nul", "\"", "1 2"] {
        assert!(matches!(set("{}", "/a", value), Err(EditError::BadValue(_))), "{value}");
    }
}

#[test]
fn a_pointer_has_at_most_128_tokens() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(get(&deep, &"/0".repeat(128)).map(str::len), Some(1 + 2 * 72));
    assert_eq!(get(&deep, &"/0".repeat(129)), None);
    assert!(matches!(set(&deep, &"/0".repeat(129), "1"), Err(EditError::BadPointer(_))));
}

#[test]
fn members_and_elements_give_the_parts_in_order() {
    let expected = [("a", "[1 , 2.0,{\"b\":null}]"), ("m~n/o", "\"x\""), ("", "{ }"), ("name", "1e2")];
    let found = members(DOCUMENT).unwrap();
    assert_eq!(found.iter().map(|(key, value)| (key.as_str(), *value)).collect::<Vec<_>>(), expected);
    assert_eq!(elements("[1 , \"a]\" ,{}]").unwrap(), ["1", "\"a]\"", "{}"]);
    assert!(members("[]").is_err() && elements("{}").is_err() && members("1").is_err());
}

#[test]
fn text_that_is_no_json_is_an_error_not_a_panic() {
    for text in [
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "[1",
        "[1}",
        "{1:2}",
        "{\"a\":1]",
        "[,]",
        "[\"a\\",
        "{\"é\\",
        "[\"\\é\"x",
    ] {
        assert!(set_all(text, &[("/a", Some("1")), ("/0", Some("1"))]).is_err(), "{text}");
    }
}

#[test]
fn raw_says_where_a_text_is_broken() {
    assert_eq!(raw(" [1] ".to_owned()).unwrap().get(), "[1]");
    assert!(matches!(raw("{\n\"a\":x}".to_owned()), Err(EditError::NotJson { line: 2, .. })));
}

const SOUP: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\"",
    b"\\",
    b"\"a\"",
    b"1",
    b" ",
    b"\xC3\xA9",
    b"{\"a\":",
    b"\"0\":",
    b"\\u00e9",
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn get_finds_every_place_and_the_places_are_the_whole(json in json_text()) {
        for (pointer, value) in places(&json) {
            prop_assert_eq!(get(&json, &pointer), Some(value.as_str()), "{}", pointer);
        }
    }

    #[test]
    fn set_then_get_gives_the_value_and_all_else_is_untouched(
        json in json_text(), value in json_text(), at: prop::sample::Index,
    ) {
        let before = places(&json);
        let pointer = before.keys().nth(at.index(before.len())).unwrap();
        let new = set(&json, pointer, &value).unwrap();
        prop_assert!(serde_json::from_str::<&RawValue>(&new).is_ok());
        prop_assert_eq!(get(&new, pointer), Some(value.trim_matches([' ', '\n', '\r', '\t'])));
        let after = places(&new);
        for (other, text) in &before {
            if !is_at_or_below(other, pointer) && !is_at_or_below(pointer, other) {
                prop_assert_eq!(after.get(other), Some(text));
            }
        }
        if !pointer.is_empty() {
            // What surrounds the value is the same text, blanks included.
            prop_assert_eq!(new.len() + before[pointer].len(), json.len() + value.trim_matches([' ', '\n', '\r', '\t']).len());
            prop_assert_eq!(set(&new, pointer, &before[pointer]).unwrap(), json);
        }
    }

    #[test]
    fn inserting_and_removing_a_member_gives_the_text_back(json in object_text(), value in json_text()) {
        let new = set(&json, "/fresh", &value).unwrap();
        let last = members(&new).unwrap().pop().unwrap();
        prop_assert_eq!(last.0, "fresh");
        prop_assert_eq!(set_all(&new, &[("/fresh", None)]).unwrap(), json);
    }

    #[test]
    fn many_edits_at_once_do_what_they_do_one_by_one(
        json in json_text(), value in json_text(), picks: Vec<prop::sample::Index>,
    ) {
        let before = places(&json);
        let mut chosen: Vec<&str> = Vec::new();
        for pick in picks {
            let pointer = before.keys().nth(pick.index(before.len())).unwrap().as_str();
            let free = chosen.iter().all(|other| !is_at_or_below(other, pointer) && !is_at_or_below(pointer, other));
            if free {
                chosen.push(pointer);
            }
        }
        let edits: Vec<_> = chosen.iter().map(|pointer| (*pointer, Some(value.as_str()))).collect();
        let one_by_one = chosen.iter().fold(json.clone(), |json, pointer| set(&json, pointer, &value).unwrap());
        prop_assert_eq!(set_all(&json, &edits).unwrap(), one_by_one);
    }

    #[test]
    fn removing_takes_away_what_was_named_and_nothing_else(json in json_text(), picks: Vec<bool>) {
        let names: Vec<String> = match (members(&json), elements(&json)) {
            (Ok(members), _) => members.into_iter().map(|(key, _)| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect(),
            (_, Ok(elements)) => (0..elements.len()).map(|index| format!("/{index}")).collect(),
            _ => return Ok(()),
        };
        let gone: Vec<&str> = names.iter().zip(&picks).filter(|(_, pick)| **pick).map(|(name, _)| name.as_str()).collect();
        let new = drop_all(&json, &gone).unwrap();
        let kept: Vec<_> = names.iter().filter(|name| !gone.contains(&name.as_str())).filter_map(|name| get(&json, name)).collect();
        let left: Vec<_> = match members(&new) {
            Ok(members) => members.into_iter().map(|(_, value)| value).collect(),
            Err(_) => elements(&new).unwrap(),
        };
        prop_assert_eq!(left, kept);
        prop_assert!(serde_json::from_str::<&RawValue>(&new).is_ok());
    }

    #[test]
    fn any_text_and_pointer_are_survived(bytes in soup(SOUP, 20), pointer in "(/[a0é~-]{0,2}){0,3}") {
        let text = String::from_utf8_lossy(&bytes);
        let _ = get(&text, &pointer);
        let _ = members(&text);
        let _ = elements(&text);
        for manner in [set(&text, &pointer, "1"), ensure(&text, &pointer, "1"), drop_all(&text, &[&pointer, "/a"])] {
            // Whatever was JSON stays JSON.
            if serde_json::from_str::<&RawValue>(&text).is_ok() && let Ok(new) = manner {
                prop_assert!(serde_json::from_str::<&RawValue>(&new).is_ok(), "{} -> {}", text, new);
            }
        }
    }
}
