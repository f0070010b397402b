use super::*;

fn variables(process: &dyn Fn(&str) -> Option<String>) -> Variables<'_> {
    Variables {
        process,
        secrets: BTreeMap::from([
            ("B".to_owned(), Secret::new("from-secrets")),
            ("A".to_owned(), Secret::new("no")),
        ]),
        dotenv: BTreeMap::from([
            ("A".to_owned(), Secret::new("no")),
            ("B".to_owned(), Secret::new("no")),
            ("C".to_owned(), Secret::new("from-dotenv")),
        ]),
    }
}

fn process(name: &str) -> Option<String> {
    match name {
        "A" => Some("from-process".to_owned()),
        "EMPTY" => Some(String::new()),
        "NESTED" => Some("${A}".to_owned()),
        _ => None,
    }
}

fn expand(raw: &str) -> Result<Text, &'static str> {
    variables(&process).expand(raw, &mut |_, _| {})
}

#[test]
fn a_variable_comes_from_the_process_then_secrets_env_then_dotenv() {
    assert_eq!(expand("Bearer ${A}").unwrap().value, "Bearer from-process");
    assert_eq!(expand("${B}").unwrap().value, "from-secrets");
    assert_eq!(expand("x-${C}-y").unwrap().value, "x-from-dotenv-y");
}

#[test]
fn a_missing_variable_is_empty_and_named_sec_012() {
    let text = expand("Bearer ${NOPE}").unwrap();
    assert_eq!((text.value.as_str(), text.missing.as_slice()), ("Bearer ", ["NOPE".to_owned()].as_slice()));
    assert_eq!(expand("${EMPTY}").unwrap().missing, ["EMPTY"]);
}

#[test]
fn the_text_after_colon_dash_stands_in_for_unset_and_empty() {
    assert_eq!(expand("${NOPE:-x y}").unwrap().value, "x y");
    assert_eq!(expand("${EMPTY:-x}").unwrap().value, "x");
    assert_eq!(expand("${A:-x}").unwrap().value, "from-process");
    assert!(expand("${NOPE:-x}").unwrap().missing.is_empty());
    // An empty text is empty, whoever chose it: a header with it is not sent (FT-15).
    assert_eq!(expand("${NOPE:-}").unwrap().missing, ["NOPE"]);
}

#[test]
fn dollars_stand_for_themselves_and_two_are_one() {
    for (raw, value) in
        [("$$", "$"), ("$${A}", "${A}"), ("$A", "$A"), ("5$", "5$"), ("^a$|b", "^a$|b"), ("$$$${A}", "$${A}")]
    {
        assert_eq!(expand(raw).unwrap().value, value, "{raw}");
    }
}

#[test]
fn a_value_is_never_expanded_again() {
    assert_eq!(expand("${NESTED}").unwrap().value, "${A}");
}

#[test]
fn secret_references_and_other_spellings_are_rejected_sec_018() {
    assert!(expand("${secret:github}").unwrap_err().contains("${secret:…}"));
    assert!(expand("${env:A}").unwrap_err().contains("${NAME}"));
    for raw in ["${", "${A", "${}", "${1A}", "${A-B}", "${A B}", "${A:=x}", "${A:-${B}}", "${sk-9f}"] {
        let what = expand(raw).unwrap_err();
        assert!(!what.contains("sk-9f"), "{raw}: {what}");
    }
}

#[test]
fn the_template_is_kept_for_showing() {
    assert_eq!(expand("x ${A}").unwrap().template.as_deref(), Some("x ${A}"));
    assert_eq!(expand("x").unwrap().template, None);
}

#[test]
fn a_missing_variable_is_warned_about_once_with_its_path_sec_012() {
    let mut tree = crate::node::parse("a: ${NOPE}\nb: [\"${NOPE}\", {c: '${NOPE} ${A}'}]\n").unwrap();
    let mut uses = Vec::new();
    expand_tree(
        &mut tree,
        "",
        Path::new("toolgate.yaml"),
        &variables(&process),
        &mut uses,
        &mut |_, what| panic!("{what}"),
    );
    assert_eq!(uses.len(), 4);
    let notices = warnings(&uses);
    assert_eq!(notices.len(), 1);
    let told = notices[0].to_string();
    assert!(
        told.contains("toolgate.yaml:1:4: a:") && told.contains("NOPE") && told.contains("in 2 more"),
        "{told}"
    );
}
