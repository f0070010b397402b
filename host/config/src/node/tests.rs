use std::fmt::Write as _;

use super::*;

fn text_of(node: &Node) -> &str {
    match &node.value {
        Value::Text(text) => &text.value,
        other => panic!("no text: {other:?}"),
    }
}

fn entry<'a>(node: &'a Node, name: &str) -> &'a Node {
    match &node.value {
        Value::Map(entries) => &entries.iter().find(|(key, _)| key.text == name).unwrap().1,
        other => panic!("no map: {other:?}"),
    }
}

#[test]
fn every_value_knows_its_line_and_column() {
    let tree = parse("servers:\n  github:\n    command: npx\n    args: [\"-y\", x]\n").unwrap();
    let command = entry(entry(entry(&tree, "servers"), "github"), "command");
    assert_eq!((command.line, command.column), (3, 14));
    assert_eq!(text_of(command), "npx");
    let args = entry(entry(entry(&tree, "servers"), "github"), "args");
    let Value::List(items) = &args.value else { panic!() };
    assert_eq!((items[1].line, items[1].column), (4, 18));
}

#[test]
fn json_is_accepted_as_it_is() {
    let tree = parse(
        "{\n  \"servers\": {\"a\": {\"url\": \"https://h/mcp\", \"enabled\": true}},\n  \"n\": -1.5e2\n}",
    )
    .unwrap();
    assert_eq!(
        tree.to_json(true).to_string(),
        r#"{"servers":{"a":{"url":"https://h/mcp","enabled":true}},"n":-150.0}"#
    );
}

#[test]
fn an_empty_file_is_nothing_and_not_an_error() {
    for source in ["", "# only a comment\n", "---\n", "\u{feff}"] {
        assert!(matches!(parse(source).unwrap().value, Value::Null), "{source:?}");
    }
}

#[test]
fn only_true_and_false_are_booleans() {
    let tree = parse("a: true\nb: on\nc: yes\nd: off\n").unwrap();
    assert!(matches!(entry(&tree, "a").value, Value::Bool(true)));
    assert_eq!(text_of(entry(&tree, "b")), "on");
    assert_eq!(text_of(entry(&tree, "c")), "yes");
    assert_eq!(text_of(entry(&tree, "d")), "off");
}

#[test]
fn a_number_keeps_the_text_it_was_written_with() {
    let tree = parse("a: 1.10\nb: 0755\nc: 8080   # port\nd: [1.0, 2]\ne: &x 3.50\nf: *x\n").unwrap();
    for (name, text) in [("a", "1.10"), ("c", "8080"), ("e", "3.50"), ("f", "3.50")] {
        match &entry(&tree, name).value {
            Value::Number(_, written) => assert_eq!(written, text, "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
    let Value::List(items) = &entry(&tree, "d").value else { panic!() };
    assert!(matches!(&items[0].value, Value::Number(_, written) if written == "1.0"));
}

#[test]
fn a_date_is_text() {
    assert_eq!(text_of(entry(&parse("protocol: 2026-07-28\n").unwrap(), "protocol")), "2026-07-28");
}

#[test]
fn mistakes_of_form_say_where_and_nothing_of_the_text() {
    let cases = [
        ("a: 1\nb: 2\na: 3\n", 3, "twice"),
        ("env:\n  TOKEN: ghx_7\n  broken: \"unclosed\n", 3, "YAML"),
        ("env:\n  TOKEN: ghx_7\n broken: x\n", 0, ""),
        ("a: ghx_7\n---\nb: 1\n", 0, "document"),
        ("a: *nowhere\nb: ghx_7\n", 1, "anchor"),
        ("a: .inf\nb: ghx_7\n", 1, "number"),
        ("a: !secret ghx_7\n", 1, "tag"),
        ("a: [1, 2\nTOKEN: ghx_7\n", 0, ""),
        ("{\"a\": \"ghx_7\", \"a\": 1}", 1, "twice"),
    ];
    for (source, line, word) in cases {
        let error = parse(source).unwrap_err();
        let told = format!("{error:?}");
        assert!(error.what.contains(word), "{source:?}: {told}");
        assert!(error.line > 0, "{source:?}: {told}");
        assert!(line == 0 || error.line == line, "{source:?}: {told}");
        assert!(!told.contains("ghx_7"), "{source:?}: {told}");
    }
}

#[test]
fn depth_and_aliases_are_bounded() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    assert!(parse(&deep).is_err());
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let one = format!("*a{}", level - 1);
        let list = vec![one; 10].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{list}]").unwrap();
    }
    assert!(parse(&bomb).is_err());
}

#[test]
fn merge_keys_give_defaults_that_the_map_overrides() {
    let tree = parse("base: &b {x: 1, y: 2}\nmine:\n  <<: *b\n  y: 3\n").unwrap();
    assert_eq!(entry(&tree, "mine").to_json(true).to_string(), r#"{"y":3,"x":1}"#);
}
