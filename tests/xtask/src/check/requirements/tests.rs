//! Ids, lines and what is missing between them.

use super::{Tests, compare, entry, function_names, ids, test_code};

fn tests(code: &str) -> Tests {
    let mut tests = Tests::default();
    tests.add("tests/e2e/src/a.rs", code);
    tests
}

fn findings(document: &str, code: &str) -> Vec<String> {
    compare(document, &tests(code), &|file| file == "tests/peers/a.py")
        .into_iter()
        .map(|finding| format!("{}: {}", finding.place, finding.what))
        .collect()
}

#[test]
fn an_id_is_a_known_family_and_two_or_three_digits() {
    assert_eq!(ids("ST-05, (PR_11) é CAP-001..008"), ["ST-05", "PR-11", "CAP-001"]);
    assert!(ids("UTF-16 ST-5 ST-1234 ST 05 XST-05 ST-05a st-05").is_empty());
}

#[test]
fn ids_in_names_of_tests_may_be_in_lower_case() {
    let tests = tests("    async fn st_05_two_ids_and_pr_11_too() {\n");
    assert_eq!(tests.ids.keys().collect::<Vec<_>>(), ["PR-11", "ST-05"]);
    assert_eq!(function_names("def test_x(a):"), ["test_x"]);
}

#[test]
fn a_named_id_with_a_line_and_an_existing_test_is_fine() {
    let document =
        "| id | text | test |\n|---|---|---|\n| ST-05 | Both ids come back as sent. | `e2e::ids_return` |\n";
    assert!(findings(document, "// ST-05\nfn ids_return() {}").is_empty());
    let peer = "| ST-05 | Both ids come back as sent. | `tests/peers/a.py` |";
    assert!(findings(peer, "").is_empty());
}

#[test]
fn each_way_to_miss_is_found_with_its_place() {
    assert_eq!(
        findings("", "\n// ST-05"),
        ["tests/e2e/src/a.rs:2: names ST-05, which has no line in docs/requirements.md"]
    );
    assert_eq!(findings("| ST-05 | | `gone` |", "").len(), 2);
    assert_eq!(
        findings("| ST-05 | Both ids come back as sent. | |", ""),
        ["docs/requirements.md:1: ST-05 names no test"]
    );
}

#[test]
fn only_table_lines_that_begin_with_an_id_are_entries() {
    assert!(entry("ST-05 is told below").is_none());
    assert!(entry("| id | text | test |").is_none());
    let (id, text, named) = entry("| ST-05 | One. | `a::b()`, `c` |").unwrap();
    assert_eq!((id.as_str(), text, named), ("ST-05", "One.", vec!["a::b", "c"]));
}

#[test]
fn only_tests_are_read() {
    assert!(test_code("host/wire/src/door.rs", "// ST-05\n").is_none());
    assert!(test_code("host/wire/src/door/tests.rs", "x").is_some());
    assert!(
        test_code("host/wire/src/door.rs", "a\n#[cfg(test)]\nmod tests {\n}")
            .is_some_and(|code| !code.starts_with('a'))
    );
    assert!(test_code("tests/xtask/src/main.rs", "x").is_none());
    assert!(test_code("docs/a.rs", "x").is_none());
}
