use proptest::prelude::*;

use super::{Finding, Kind, MAX_CODE_POINTS, find, is_hidden, strip};

fn kind(text: &str) -> Option<Kind> {
    find(text).map(|finding| finding.kind)
}

#[test]
fn a_description_with_tags_zero_width_and_bidi_is_found_with_its_code_points_se_01() {
    let tags: String = ('\u{e0053}'..='\u{e0059}').collect();
    let text = format!("Reads a file{tags}\u{200b}\u{feff}\u{202e}");
    let found = find(&text).unwrap();
    assert_eq!(found.kind, Kind::Tag);
    assert_eq!(found.decoded.as_deref(), Some("STUVWXY"));
    assert_eq!(found.code_points.len(), 10);
    assert_eq!(found.code_points.last(), Some(&'\u{202e}'));
    assert_eq!(strip(&text), "Reads a file");
}

#[test]
fn every_class_has_its_kind() {
    let cases = [
        ("a\u{0}b", Kind::Control),
        ("a\u{7f}b", Kind::Control),
        ("a\u{85}b", Kind::Control),
        ("a\u{2028}b", Kind::Control),
        ("a\u{202e}b", Kind::Bidi),
        ("a\u{2066}b", Kind::Bidi),
        ("a\u{200f}b", Kind::Bidi),
        ("a\u{61c}b", Kind::Bidi),
        ("a\u{200b}b", Kind::ZeroWidth),
        ("a\u{200d}b", Kind::ZeroWidth),
        ("a\u{2060}b", Kind::ZeroWidth),
        ("a\u{2064}b", Kind::ZeroWidth),
        ("a\u{feff}b", Kind::ZeroWidth),
        ("\u{feff}b", Kind::ZeroWidth),
        ("a\u{ad}b", Kind::ZeroWidth),
        ("a\u{115f}b", Kind::ZeroWidth),
        ("a\u{1160}b", Kind::ZeroWidth),
        ("a\u{3164}b", Kind::ZeroWidth),
        ("a\u{2800}b", Kind::ZeroWidth),
        ("a\u{180e}b", Kind::ZeroWidth),
        ("a\u{ffa0}b", Kind::ZeroWidth),
        ("a\u{2061}b", Kind::ZeroWidth),
        ("a\u{206e}b", Kind::ZeroWidth),
        ("a\u{fff9}b", Kind::ZeroWidth),
        ("a\u{fffb}b", Kind::ZeroWidth),
        ("a\u{1bca0}b", Kind::ZeroWidth),
        ("a\u{13437}b", Kind::ZeroWidth),
        ("a\u{1d173}b", Kind::ZeroWidth),
        ("a\u{1d159}b", Kind::ZeroWidth),
        ("a\u{16fe4}b", Kind::ZeroWidth),
        ("a\u{17b5}b", Kind::ZeroWidth),
        ("a\u{34f}b", Kind::ZeroWidth),
        ("a\u{e0041}b", Kind::Tag),
        ("a\u{e01ef}b", Kind::Tag),
        ("a\u{e0fff}b", Kind::Tag),
        ("a\u{e0101}b", Kind::Tag),
        ("a\u{1b}[31mb", Kind::Ansi),
        ("a\u{9b}31mb", Kind::Ansi),
        ("a\u{1b}]8;;x\u{7}b", Kind::Ansi),
        ("a\u{e000}b", Kind::PrivateUse),
        ("a\u{10fffd}b", Kind::PrivateUse),
        ("a\u{fdd0}b", Kind::Control),
        ("a\u{1ffff}b", Kind::Control),
    ];
    for (text, expected) in cases {
        assert_eq!(kind(text), Some(expected), "{text:?}");
        let stripped = strip(text);
        assert!(stripped == "ab" || stripped == "b", "{text:?} -> {stripped:?}");
    }
}

#[test]
fn visible_text_of_many_scripts_is_not_reported() {
    for text in [
        "plain ASCII, tabs\tand\r\nlines\n",
        "Größe, naïve, Ελληνικά, Русский, עברית, العربية, 日本語, 한국어, हिन्दी",
        "👍🏽 👨\u{200d}👩\u{200d}👧\u{200d}👦 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f}\u{200d}🔥 👩🏽\u{200d}💻",
        "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} ✈\u{fe0e} ™\u{fe0f} ↔\u{fe0f}",
        "🏴\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f} 🇩🇪",
        "“quotes” – dash … ½ € \u{a0}",
        // Braille with the space between its words, an Arabic number sign.
        "⠓⠑⠇⠇⠕\u{2800}⠺⠕⠗⠇⠙ ⛓\u{fe0f}\u{200d}💥 \u{600}١٢ 5\u{202f}%",
    ] {
        assert_eq!(find(text), None, "{text:?}");
        assert_eq!(strip(text), text);
    }
}

#[test]
fn selectors_and_joiners_that_choose_nothing_are_hidden() {
    for text in [
        "a\u{fe0f}",
        " \u{fe0f}",
        "\u{fe0f}",
        "✈\u{fe0f}\u{fe0f}",
        "✈\u{fe00}",
        "。\u{fe0f}",
        "⠓\u{2800}",
        "⠓\u{2800}\u{2800}⠓",
        "\u{2800}⠓",
        "👍\u{200d}a",
        "a\u{200d}👍",
        "👍\u{200d}",
        "👍\u{200d}\u{200d}👍",
        "🏴\u{e0068}\u{e0069}\u{e007f}",
    ] {
        assert!(find(text).is_some(), "{text:?}");
    }
}

#[test]
fn bytes_smuggled_in_variation_selectors_are_decoded() {
    let hidden: String =
        "ignore all".bytes().filter_map(|byte| char::from_u32(0xe_0100 + u32::from(byte) - 16)).collect();
    let found = find(&format!("😀{hidden}")).unwrap();
    assert_eq!(found.kind, Kind::Tag);
    assert_eq!(found.decoded.as_deref(), Some("ignore all"));
}

#[test]
fn decoded_text_holds_no_terminal_sequence_se_03() {
    let hidden: String = "a\u{1b}[2Jb\u{202e}"
        .bytes()
        .filter_map(|byte| match byte {
            0..16 => char::from_u32(0xfe00 + u32::from(byte)),
            _ => char::from_u32(0xe_0100 + u32::from(byte) - 16),
        })
        .collect();
    assert_eq!(find(&hidden).unwrap().decoded.as_deref(), Some("a[2Jb"));
}

#[test]
fn a_terminal_sequence_goes_as_a_whole_and_an_endless_one_does_not_take_the_text_with_it_se_03() {
    assert_eq!(strip("ok\u{1b}[2J\u{1b}]0;pwn\u{7}\u{1b}]8;;http://x\u{7}!"), "ok!");
    assert_eq!(strip("a\u{1b}]0;title\u{1b}\\b"), "ab");
    assert_eq!(strip("a\u{9d}0;title\u{9c}b"), "ab");
    assert_eq!(strip("a\u{1b}(Bb"), "ab");
    assert_eq!(strip("a\u{1b}cb"), "ab");
    assert_eq!(strip("a\u{1b}"), "a");
    assert_eq!(strip("a\u{1b}]0;all of this stays"), "a0;all of this stays");
    assert_eq!(strip("a\u{1b}[12\nb"), "a12\nb");
    let found = find("x\u{1b}[2Jy").unwrap();
    assert_eq!(
        found,
        Finding { kind: Kind::Ansi, code_points: "\u{1b}[2J".chars().collect(), decoded: None }
    );
}

#[test]
fn what_a_finding_keeps_is_bounded() {
    let text = "\u{e0041}".repeat(100_000);
    let found = find(&text).unwrap();
    assert_eq!(found.code_points.len(), MAX_CODE_POINTS);
    assert!(found.decoded.unwrap().len() <= super::MAX_DECODED);
    // Introducers without an end must not make the scan quadratic.
    let endless = "\u{1b}]".repeat(500_000);
    assert_eq!(strip(&endless), "");
}

#[test]
fn a_single_character_is_judged_without_its_neighbours() {
    assert!(is_hidden('\u{200b}') && is_hidden('\u{e0041}') && is_hidden('\u{1b}'));
    assert!(!is_hidden('a') && !is_hidden('\n') && !is_hidden('\u{fe0f}'));
}

/// Every character that Unicode calls ignorable, a control or a format is found, whichever version says so.
#[test]
fn se_01_all_that_unicode_says_draws_nothing_is_hidden() {
    use icu_properties::props::{DefaultIgnorableCodePoint, GeneralCategory};
    use icu_properties::{CodePointMapData, CodePointSetData};
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let category = CodePointMapData::<GeneralCategory>::new();
    let seen = |c: char| matches!(c, '\n' | '\r' | '\t' | '\u{fe0e}' | '\u{fe0f}');
    let mut count = 0;
    for character in ('\0'..=char::MAX).filter(|c| !seen(*c)) {
        if ignorable.contains(character) || category.get(character) == GeneralCategory::Control {
            assert!(is_hidden(character), "{character:?}");
            assert_eq!(strip(&format!("a{character}")), "a", "{character:?}");
            count += 1;
        }
    }
    assert!(count > 4_000, "{count}");
}

proptest! {
    #[test]
    fn stripping_leaves_nothing_to_find(
        text in proptest::collection::vec(
            prop_oneof![
                any::<char>(),
                prop::sample::select(vec!['\u{1b}', '[', ']', '\u{7}', '\u{9b}', '\u{fe0f}', '\u{200d}', '👍', 'm', '1', '\u{1f3f4}', '\u{e0067}']),
            ],
            0..40,
        )
    ) {
        let text: String = text.into_iter().collect();
        let stripped = strip(&text);
        prop_assert_eq!(find(&stripped), None);
        prop_assert_eq!(find(&text).is_none(), stripped == text);
    }
}

#[test]
fn words_that_are_spelt_with_joiners_are_not_hidden_text() {
    for word in ["می\u{200c}خواهم", "क्\u{200d}ष", "ක්\u{200d}ෂ"] {
        assert_eq!(find(word), None, "{word:?}");
        assert_eq!(strip(word), word);
    }
    for hidden in ["a\u{200c}b", "می\u{200c}\u{200c}خواهم", "می\u{200c}", "\u{200c}می", "می\u{200c}x"]
    {
        assert!(find(hidden).is_some(), "{hidden:?}");
    }
}
