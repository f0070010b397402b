use super::*;
use proptest::prelude::*;
use serde_json::Value;

const DOCUMENT: &str =
    r#" { "a" : [ 1, {"b/c":"x\n", "~":-1.50e3}, [] , "" ], "é\u0041": true, "n": {} , "z":null} "#;

#[test]
fn a_pointer_finds_the_exact_text() {
    let at = |pointer| lookup(DOCUMENT, pointer).unwrap();
    assert_eq!(at("/a/0"), Some("1"));
    assert_eq!(at("/a/1/b~1c"), Some("\"x\\n\""));
    assert_eq!(at("/a/1/~0"), Some("-1.50e3"));
    assert_eq!(at("/a/2"), Some("[]"));
    assert_eq!(at("/éA"), Some("true"));
    assert_eq!(at("/z"), Some("null"));
    assert_eq!(at(""), Some(DOCUMENT.trim()));
}

#[test]
fn a_pointer_to_nothing_finds_nothing() {
    for pointer in ["/b", "/a/9", "/a/-", "/a/01", "/a/x", "/a/0/0", "/z/a", "/n/a", "/", "/a/+1"] {
        assert_eq!(lookup(DOCUMENT, pointer), Ok(None), "{pointer}");
    }
}

#[test]
fn a_malformed_pointer_is_an_error() {
    for pointer in ["a", "/~", "/~2", "a/b", "/a~"] {
        assert_eq!(lookup(DOCUMENT, pointer), Err(LookupError::Pointer), "{pointer}");
    }
}

#[test]
fn text_that_is_no_json_is_an_error_and_never_a_panic() {
    for text in ["", "not json", "1 2", "{", "{\"a\"", "{\"a\":", "[1", "\"", "\"\\", "{a:1}"] {
        assert!(!matches!(lookup(text, "/a"), Ok(Some(_))), "{text}");
        assert!(visit_strings(text, "", &mut |_, _, _| Visit::On).is_err(), "{text}");
    }
}

#[test]
fn every_string_and_name_is_visited_in_order() {
    let mut seen = Vec::new();
    visit_strings(DOCUMENT, "", &mut |pointer, raw, role| {
        seen.push((pointer.to_owned(), raw.to_owned(), role));
        Visit::On
    })
    .unwrap();
    let values: Vec<_> =
        seen.iter().filter(|(_, _, role)| *role == Role::Value).map(|(p, _, _)| p.as_str()).collect();
    assert_eq!(values, ["/a/1/b~1c", "/a/3"]);
    let keys: Vec<_> =
        seen.iter().filter(|(_, _, role)| *role == Role::Key).map(|(p, _, _)| p.as_str()).collect();
    assert_eq!(keys, ["/a", "/a/1/b~1c", "/a/1/~0", "/éA", "/n", "/z"]);
}

#[test]
fn a_visitor_can_stop_and_depth_is_bounded() {
    let mut count = 0;
    visit_strings(r#"["a","b","c"]"#, "", &mut |_, _, _| {
        count += 1;
        if count == 2 { Visit::Stop } else { Visit::On }
    })
    .unwrap();
    assert_eq!(count, 2);
    let deep = format!("{}\"x\"{}", "[".repeat(200), "]".repeat(200));
    assert_eq!(visit_strings(&deep, "", &mut |_, _, _| Visit::On), Err(LookupError::Malformed));
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a~/\"\\\\é]{0,3}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn pointers(value: &Value, base: &str, out: &mut Vec<String>) {
    out.push(base.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| pointers(item, &format!("{base}/{at}"), out));
        }
        Value::Object(members) => members.iter().for_each(|(name, item)| {
            pointers(item, &format!("{base}/{}", name.replace('~', "~0").replace('/', "~1")), out);
        }),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn look_ups_agree_with_a_parser(value in json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let mut all = Vec::new();
        pointers(&value, "", &mut all);
        for pointer in all {
            let found = lookup(&text, &pointer).unwrap().map(|raw| serde_json::from_str::<Value>(raw).unwrap());
            prop_assert_eq!(found.as_ref(), value.pointer(&pointer));
        }
    }

    #[test]
    fn any_text_is_survived(text in ".{0,64}", pointer in "(/[a0~1]{0,3}){0,3}") {
        let _ = lookup(&text, &pointer);
        let _ = visit_strings(&text, "", &mut |_, _, _| Visit::On);
    }
}
