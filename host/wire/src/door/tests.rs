//! The door agrees with a JSON parser on what is JSON, and refuses what two parsers could read differently.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;
use crate::testing::{config, json_text, soup};

fn refusal(text: &str) -> DoorError {
    scan(text.as_bytes(), &Limits::default()).unwrap_err()
}

fn passes(text: &str) -> bool {
    scan(text.as_bytes(), &Limits::default()).is_ok()
}

fn is_json(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

#[test]
fn a_sound_message_passes_and_is_returned_as_it_is() {
    let text =
        r#" {"jsonrpc":"2.0","id":1,"params":{"x":[1,-2.5e3,true,false,null,"\ud83d\ude00 é"],"y":{}}} "#;
    assert_eq!(scan(text.as_bytes(), &Limits::default()), Ok(text));
}

#[test]
fn a_key_that_occurs_twice_is_refused_where_it_stands() {
    let error = refusal(r#"{"params":[{"name":"safe"},{"name":"safe","x":1,"name":"evil"}]}"#);
    assert_eq!(error.kind, DoorErrorKind::DuplicateKey("name".to_owned()));
    assert_eq!(error.pointer, "/params/1/name");
    assert_eq!(error.offset, 49);
}

#[test]
fn keys_are_compared_after_unescaping() {
    let error = refusal(r#"{"name":1,"\u006eame":2}"#);
    assert_eq!(error.kind, DoorErrorKind::DuplicateKey("name".to_owned()));
    assert_eq!(refusal(r#"{"a\/b":1,"a/b":2}"#).pointer, "/a~1b");
    assert!(matches!(refusal("{\"\\ud83d\\ude00\":1,\"😀\":2}").kind, DoorErrorKind::DuplicateKey(_)));
    assert!(passes(r#"{"name":1,"Name":2,"nam\u0065e":3,"":4}"#));
}

#[test]
fn a_key_may_come_again_in_another_object() {
    assert!(passes(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"c":{"a":1}}"#));
}

#[test]
fn a_repeated_key_is_found_in_large_objects_too() {
    let mut members: Vec<_> = (0..1000).map(|n| format!("\"key{n}\":{n}")).collect();
    assert!(passes(&format!("{{{}}}", members.join(","))));
    members.push(r#""key\u0035":0"#.to_owned());
    let error = refusal(&format!("{{{}}}", members.join(",")));
    assert_eq!(error.pointer, "/key5");
}

#[test]
fn lone_surrogates_are_refused_and_pairs_pass() {
    for lone in
        [r"\ud800", r"\udc00", r"\ud800x", r"\ud800\n", r"\ud800\u0041", r"\ud800\ud800\udc00", r"\udbff"]
    {
        let error = refusal(&format!(r#"{{"a":["{lone}"]}}"#));
        assert_eq!((error.kind, error.pointer.as_str()), (DoorErrorKind::LoneSurrogate, "/a/0"), "{lone}");
    }
    assert_eq!(refusal(r#"{"\ud800":1}"#).kind, DoorErrorKind::LoneSurrogate);
    assert!(passes(r#"["\ud800\udc00","\uDBFF\uDFFF","\ud7ff","\ue000"]"#));
}

#[test]
fn depth_is_counted_in_open_containers() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(passes(&nested(64)));
    let error = refusal(&nested(65));
    assert_eq!((error.kind, error.offset), (DoorErrorKind::TooDeep(64), 64));
    // A million brackets are refused at the sixty-fifth; nothing recurses.
    assert_eq!(refusal(&"[".repeat(1_000_000)).kind, DoorErrorKind::TooDeep(64));
    assert!(survey("[".repeat(1_000_000).as_bytes(), &Limits::default()).is_err());
}

#[test]
fn a_message_longer_than_the_limit_is_refused_unread() {
    let limits = Limits { max_message: 4, ..Limits::default() };
    assert!(scan(b"1234", &limits).is_ok());
    assert_eq!(scan(b"12345", &limits).unwrap_err().kind, DoorErrorKind::TooLong);
}

#[test]
fn bytes_that_are_no_utf8_are_refused_where_they_stand() {
    let error = scan(b"{\"result\":{\"text\":\"ab\xC3\x28\"}}", &Limits::default()).unwrap_err();
    assert_eq!(error.kind, DoorErrorKind::NotUtf8);
    assert_eq!((error.pointer.as_str(), error.offset), ("/result/text", 21));
}

#[test]
fn what_is_no_json_is_refused() {
    let cases = [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{\"a\"}",
        "{\"a\" 1}",
        "[1 2]",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "NaN",
        "nul",
        "tru",
        "\"a",
        "\"\u{1}\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"\\u12\"",
        "1 1",
        "{}{}",
        "[}",
        "{]",
        "'a'",
        "\u{feff}1",
        "1\u{a0}",
        "/**/1",
        "\"\\",
        "[\"a\\\"]",
    ];
    for text in cases {
        assert_eq!(refusal(text).kind, DoorErrorKind::Syntax, "{text:?}");
        assert!(!is_json(text.as_bytes()), "{text:?}");
    }
}

#[test]
fn a_report_holds_no_more_than_the_head_of_a_long_key() {
    let key = "é".repeat(10_000);
    let error = refusal(&format!("{{\"{key}\":1,\"{key}\":2}}"));
    assert!(error.pointer.len() < 300 && error.to_string().len() < 700);
}

#[test]
fn a_survey_names_every_defect_and_the_tools_to_drop() {
    let text = r#"{"id":1,"result":{"tools":[{"name":"a"},{"name":"b","name":"c"},{"d":"\ud800"}]}}"#;
    let found = survey(text.as_bytes(), &Limits::default()).unwrap();
    let dropped: Vec<_> =
        found.by_element("/result/tools").unwrap().iter().map(|(index, _)| *index).collect();
    assert_eq!(dropped, [1, 2]);
    let outside = survey(br#"{"id":1,"id":2,"result":{"tools":[]}}"#, &Limits::default()).unwrap();
    assert_eq!(outside.by_element("/result/tools"), None);
    let deep = format!(r#"{{"result":{{"tools":[1,{}1{}]}}}}"#, "[".repeat(80), "]".repeat(80));
    assert_eq!(survey(deep.as_bytes(), &Limits::default()).unwrap().defects.len(), 1);
}

#[test]
fn st_11_the_id_of_a_message_with_broken_utf8_is_recovered() {
    let bytes = b"{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\xC3\x28\"}]}}";
    assert_eq!(scan(bytes, &Limits::default()).unwrap_err().kind, DoorErrorKind::NotUtf8);
    assert_eq!(recover(bytes), Recovered { id: Some(Id::number(4)), is_call: false });
    let last = b"{\"result\":{\"id\":9,\"t\":\"\xFF\\\"\"},\"id\":\"x\"}";
    assert_eq!(recover_id(last), Some(Id::text("x")));
}

#[test]
fn recovery_tells_a_call_from_a_reply() {
    assert!(recover(b"{\"id\":1,\"method\":\"ping\xFF\"").is_call);
    assert!(!recover(b"{\"id\":1,\"result\":{\"method\":\"x\"}}").is_call);
}

#[test]
fn recovery_gives_no_id_it_cannot_stand_by() {
    let cases: [&[u8]; 12] = [
        b"",
        b"dbg: {\"id\":4}",
        b"[{\"id\":1}]",
        b"{\"result\":{\"id\":1}}",
        b"{\"id\":1,\"id\":2}",
        b"{\"id\":12",
        b"{\"id\":null}",
        b"{\"id\":{\"a\":1}}",
        b"{\"id\":1.5}",
        b"{\"id\":1 2}",
        b"{\"ID\":1}",
        b"{\"id\"",
    ];
    for bytes in cases {
        assert_eq!(recover_id(bytes), None, "{}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(recover_id(b"\xEF\xBB\xBF {\"id\" : 7 ,\"x"), Some(Id::number(7)));
    assert_eq!(recover_id(b"{\"id\":1,\"id\":1}"), Some(Id::number(1)));
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
    b"\\u",
    b"d800",
    b"dc00",
    b"0061",
    b"a",
    b"\"a\"",
    b"\"\\u0061\"",
    b"1",
    b"0",
    b"-",
    b".",
    b"e",
    b"true",
    b"null",
    b" ",
    b"\n",
    b"\x01",
    b"\xC3\xA9",
    b"\xC3",
    b"\xFF",
    b"{\"a\":",
    b"[[",
    b"]]",
    b"\"id\":",
];

proptest! {
    #![proptest_config(config())]

    #[test]
    fn generated_json_passes(text in json_text()) {
        prop_assert_eq!(scan(text.as_bytes(), &Limits::default()), Ok(text.as_str()));
        prop_assert!(is_json(text.as_bytes()));
    }

    #[test]
    fn any_bytes_are_judged_as_serde_json_judges_their_syntax(bytes in soup(SOUP, 24)) {
        let found = survey(&bytes, &Limits::default());
        prop_assert_eq!(found.is_ok(), is_json(&bytes));
        prop_assert_eq!(scan(&bytes, &Limits::default()).is_ok(), found.is_ok_and(|found| found.defects.is_empty()));
        recover_id(&bytes);
    }

    #[test]
    fn damaged_json_is_judged_as_serde_json_judges_it(text in json_text(), at: prop::sample::Index, byte: u8) {
        let mut bytes = text.into_bytes();
        let place = at.index(bytes.len());
        bytes[place] = byte;
        prop_assert_eq!(survey(&bytes, &Limits::default()).is_ok(), is_json(&bytes));
    }

    #[test]
    fn what_passes_has_no_key_twice(bytes in soup(SOUP, 24)) {
        if let Ok(text) = scan(&bytes, &Limits::default()) {
            // A parsed value keeps one of two equal keys, so its members can be counted against the text's.
            fn agrees(text: &str) -> bool {
                let Ok(members) = crate::edit::members(text) else {
                    return crate::edit::elements(text).unwrap_or_default().into_iter().all(agrees);
                };
                let names: std::collections::HashSet<_> = members.iter().map(|(name, _)| name).collect();
                names.len() == members.len() && members.iter().all(|(_, value)| agrees(value))
            }
            prop_assert!(agrees(text));
        }
    }

    #[test]
    fn recovery_does_not_depend_on_how_bytes_are_cut(bytes in soup(SOUP, 24), cuts: Vec<prop::sample::Index>) {
        let mut recovery = Recovery::new();
        for piece in crate::testing::pieces(&bytes, &cuts) {
            recovery.push(piece);
        }
        prop_assert_eq!(recovery.finish(), recover(&bytes));
    }

    #[test]
    fn recovery_finds_the_id_of_every_sound_message(text in crate::testing::object_text()) {
        let expected = crate::edit::get(&text, "/id").and_then(Id::from_json);
        prop_assert_eq!(recover_id(text.as_bytes()), expected);
    }
}
