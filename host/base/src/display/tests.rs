use proptest::prelude::*;

use super::{escape, escape_multiline, is_command_word, is_label_text, show, show_multiline};

#[test]
fn terminal_sequences_are_shown_and_do_nothing_se_03() {
    let hostile = "ok\u{1b}[2J\u{1b}]0;pwn\u{7}\u{1b}]8;;http://x\u{7}\u{9b}31m";
    for shown in [escape(hostile), escape_multiline(hostile)] {
        assert!(!shown.bytes().any(|byte| matches!(byte, 0x1b | 0x07 | 0x9b)), "{shown}");
        assert_eq!(shown, r"ok\u{1b}[2J\u{1b}]0;pwn\u{7}\u{1b}]8;;http://x\u{7}\u{9b}31m");
    }
}

#[test]
fn invisible_text_is_shown_escaped_se_01() {
    assert_eq!(
        escape("Reads a file\u{e0053}\u{200b}\u{feff}\u{202e}"),
        r"Reads a file\u{e0053}\u{200b}\u{feff}\u{202e}"
    );
    // A line separator would forge a line in some log viewers.
    assert_eq!(escape_multiline("a\u{2028}b\u{85}c"), r"a\u{2028}b\u{85}c");
}

#[test]
fn line_breaks_stay_only_where_lines_are_asked_for() {
    assert_eq!(escape("a\nb\tc\r\nd"), r"a\nb\tc\r\nd");
    assert_eq!(escape_multiline("a\nb\tc\r\nd\re"), "a\nb\tc\nd\\re");
}

#[test]
fn ordinary_text_and_emoji_stay_as_they_are() {
    let text = "Größe 日本語 “quoted” 👨\u{200d}👩\u{200d}👧 ✈\u{fe0f} — fine";
    assert_eq!(escape(text), text);
}

#[test]
fn letters_that_look_like_others_are_written_out_where_they_are_shown_se_14() {
    assert_eq!(show("r\u{435}ad\u{200b}"), r"r\u{435}ad\u{200b}");
    assert_eq!(show_multiline("\u{1b}[2J\nr\u{435}ad"), "\\u{1b}[2J\nr\\u{435}ad");
    assert_eq!(escape("r\u{435}ad"), "r\u{435}ad", "what is kept keeps its letters");
}

proptest! {
    #[test]
    fn nothing_that_a_terminal_obeys_survives(text in any::<String>()) {
        let one = escape(&text);
        prop_assert!(!one.chars().any(char::is_control));
        prop_assert!(!escape_multiline(&text).chars().any(|c| c.is_control() && c != '\n' && c != '\t'));
    }

    #[test]
    fn a_text_without_hidden_characters_or_controls_is_untouched(text in "[a-zA-Z0-9äöü ,.]*") {
        prop_assert_eq!(escape(&text), text);
    }
}

#[test]
fn a_word_of_a_command_is_obeyed_by_no_shell_and_a_label_ends_no_quote() {
    for good in ["f/echo", "github/issues.create", "fix/a-b_c", "9"] {
        assert!(is_command_word(good) && is_label_text(good), "{good}");
    }
    let bad =
        ["", "f/x; id", "f/$(id)", "f/`id`", "f/a\nb", "f/*", "f/q'q", "f/a\"b", "f/a\\b", "f/a|b", "f/a&b"];
    for bad in bad.into_iter().chain(["f/a#b", "f/a>b", "f/\u{202e}b", "f/é", "f/a!b", "f/{a,b}"]) {
        assert!(!is_command_word(bad) && !is_label_text(bad), "{bad}");
    }
    for only_a_label in ["f/a b", "f/x://h?a=b%20c"] {
        assert!(!is_command_word(only_a_label) && is_label_text(only_a_label), "{only_a_label}");
    }
    assert!(!is_command_word("-x") && !is_label_text("f/a "));
}
