//! Modes, decisions and texts.

use toolgate_sdk::{Decision, Error, Finding, Redaction};

use super::{Mode, decide, log_line, mode, summary};

fn found() -> Vec<Finding> {
    vec![
        Finding {
            pointer: "/description".to_owned(),
            kind: "zero-width".to_owned(),
            code_points: vec!["U+200B".to_owned(), "U+FEFF".to_owned()],
            decoded: None,
        },
        Finding {
            pointer: "/description".to_owned(),
            kind: "tag".to_owned(),
            code_points: vec!["U+E0053".to_owned()],
            decoded: Some("S".to_owned()),
        },
    ]
}

#[test]
fn without_a_setting_each_hook_keeps_its_own_default() {
    assert_eq!(mode(&Ok(None), Mode::Block), Ok(Mode::Block));
    assert_eq!(mode(&Ok(None), Mode::Strip), Ok(Mode::Strip));
}

#[test]
fn a_setting_counts_for_both_hooks() {
    for default in [Mode::Block, Mode::Strip] {
        assert_eq!(mode(&Ok(Some("show".to_owned())), default), Ok(Mode::Show));
    }
}

#[test]
fn a_mode_that_is_none_is_an_error_that_names_the_setting() {
    let misspelt = mode(&Ok(Some("blok".to_owned())), Mode::Strip).unwrap_err();
    assert!(misspelt.contains("`blok`") && misspelt.contains("`mode`"), "{misspelt}");
    assert!(mode(&Err(Error::Invalid("no string".to_owned())), Mode::Strip).is_err());
}

#[test]
fn se_01_block_names_kinds_and_code_points_and_does_not_repeat_the_message() {
    let Decision::Deny(reason) = decide(Mode::Block, "`read` of server `files`", &found()) else {
        panic!("must deny");
    };
    for part in ["tag", "zero-width", "U+200B", "U+FEFF", "U+E0053", "`read`"] {
        assert!(reason.contains(part), "{part} is missing in: {reason}");
    }
    assert!(!reason.contains("spell"), "{reason}");
}

#[test]
fn strip_leaves_the_removal_to_the_host_and_show_passes() {
    let strip = decide(Mode::Strip, "x", &found());
    assert_eq!(strip, Decision::Redact(Redaction::HiddenText));
    assert_eq!(decide(Mode::Show, "x", &found()), Decision::Abstain);
}

#[test]
fn the_log_says_where_and_what_they_spell() {
    let line = log_line("`read` of server `files`", &found());
    assert!(line.contains("/description") && line.contains("[\"S\"]"), "{line}");
}

#[test]
fn many_code_points_are_counted_and_not_all_printed() {
    let many = [Finding {
        pointer: String::new(),
        kind: "tag".to_owned(),
        code_points: (0..40).map(|point| format!("U+E00{point:02}")).collect(),
        decoded: None,
    }];
    assert!(summary(&many).contains("and 24 more"), "{}", summary(&many));
}
