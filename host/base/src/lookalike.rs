//! Finds names that are made to be taken for another: letters of other scripts that look like Latin ones.
//!
//! Threat: a server offers `read_file` with U+0435, a Cyrillic letter, in place of its `e`, and whoever reads the list, model or
//! person, takes it for the tool that was approved (SE-14). What is compared and pinned is always the raw
//! name, so no right is inherited; this is about eyes.
//!
//! Contract: only names are looked at, never prose, which may quote any script. A word is suspicious that
//! mixes ASCII letters with letters that look like ASCII ones, or that is at least three letters long and
//! made of nothing else. A word in a script of its own is not: it has letters that look like no
//! Latin one. The table is small on purpose: what it does not know passes, and the exposed name of
//! a tool is ASCII with a digest anyway.

use icu_properties::CodePointMapData;
use icu_properties::props::Script;

use crate::hidden::{Finding, Kind, MAX_CODE_POINTS, MAX_DECODED};

/// Letters of other scripts, and the ASCII letter that each is taken for.
const PAIRS: &[(&str, &str)] = &[
    // Cyrillic
    (
        "\u{430}\u{435}\u{43e}\u{440}\u{441}\u{443}\u{445}\u{456}\u{458}\u{455}\u{4bb}\u{501}\u{51b}\u{51d}\u{4cf}",
        "aeopcyxijshdqwl",
    ),
    (
        "\u{410}\u{412}\u{415}\u{41a}\u{41c}\u{41d}\u{41e}\u{420}\u{421}\u{422}\u{423}\u{425}\u{406}\u{408}\u{405}\u{4ae}\u{4c0}",
        "ABEKMHOPCTYXIJSYI",
    ),
    // Greek
    ("\u{3bf}\u{3b1}\u{3bd}\u{3c1}\u{3b9}\u{3ba}\u{3c5}\u{3c7}\u{3b3}\u{3f2}\u{3f3}", "oavpikuxycj"),
    (
        "\u{391}\u{392}\u{395}\u{396}\u{397}\u{399}\u{39a}\u{39c}\u{39d}\u{39f}\u{3a1}\u{3a4}\u{3a5}\u{3a7}",
        "ABEZHIKMNOPTYX",
    ),
    // Armenian
    ("\u{585}\u{578}\u{57d}\u{570}\u{581}\u{566}", "onuhgq"),
    // Latin letters beside ASCII
    ("\u{251}\u{261}\u{131}\u{237}", "agij"),
    // Roman numerals
    (
        "\u{2170}\u{2174}\u{2179}\u{217c}\u{217d}\u{217e}\u{217f}\u{2160}\u{2164}\u{2169}\u{216c}\u{216d}\u{216e}\u{216f}",
        "ivxlcdmIVXLCDM",
    ),
];

/// What is suspicious about a name: the letters that are not what they look like, and the name as it reads;
/// none where every letter is what it seems.
pub fn find(name: &str) -> Option<Finding> {
    if name.is_ascii() {
        return None;
    }
    let mut code_points = Vec::new();
    for word in name.split(|c: char| !c.is_alphabetic()).filter(|word| is_suspicious(word)) {
        code_points.extend(word.chars().filter(|c| taken_for(*c).is_some()));
    }
    if code_points.is_empty() {
        return None;
    }
    code_points.truncate(MAX_CODE_POINTS);
    let decoded = name.chars().take(MAX_DECODED).map(|c| taken_for(c).unwrap_or(c)).collect();
    Some(Finding { kind: Kind::LookAlike, code_points, decoded: Some(decoded) })
}

/// The places in a text, in bytes and in order, of letters that a reader takes for ASCII ones. For a terminal,
/// where text of any language stands beside names, so a word counts that [`find`] calls suspicious, and one
/// that has ASCII letters and letters of a script in which some look like them, known to the table or not.
/// A word that is made of nothing but look-alikes counts only in a text without any other letter beyond
/// ASCII: in a sentence of its language it is a word.
pub fn places(text: &str) -> Vec<usize> {
    let mut places = Vec::new();
    if text.is_ascii() {
        return places;
    }
    let is_prose = text.chars().any(|c| !c.is_ascii() && c.is_alphabetic() && taken_for(c).is_none());
    let mut at = 0;
    for word in text.split_inclusive(|c: char| !c.is_alphabetic()) {
        let letters = word.trim_end_matches(|c: char| !c.is_alphabetic());
        let mixed = letters.chars().any(|c| c.is_ascii_alphabetic());
        let marked = |c: char| taken_for(c).is_some() || (mixed && is_of_a_similar_script(c));
        if if mixed { letters.chars().any(marked) } else { !is_prose && is_suspicious(letters) } {
            places.extend(letters.char_indices().filter(|(_, c)| marked(*c)).map(|(place, _)| at + place));
        }
        at += word.len();
    }
    places
}

/// Scripts that share shapes with Latin letters, and words with them in no language.
fn is_of_a_similar_script(letter: char) -> bool {
    let script = CodePointMapData::<Script>::new().get(letter);
    [Script::Cyrillic, Script::Armenian, Script::Cherokee, Script::Coptic, Script::Lisu, Script::Deseret]
        .contains(&script)
}

fn is_suspicious(word: &str) -> bool {
    let ascii = word.chars().any(|c| c.is_ascii_alphabetic());
    let mut letters = word.chars().map(|c| c.is_ascii() || taken_for(c).is_some());
    let length = word.chars().count();
    if ascii {
        return word.chars().any(|c| taken_for(c).is_some());
    }
    length >= 3 && letters.all(|known| known)
}

/// The ASCII letter that a letter is taken for; `None` for one that looks like no other, and for ASCII itself.
pub fn taken_for(letter: char) -> Option<char> {
    if letter.is_ascii() {
        return None;
    }
    let code = u32::from(letter);
    match code {
        // Fullwidth forms stand at a fixed distance.
        0xff21..=0xff3a | 0xff41..=0xff5a => return char::from_u32(code - 0xfee0),
        // The mathematical alphabets come one after the other, capitals first.
        0x1d400..=0x1d6a3 => {
            let place = (code - 0x1d400) % 52;
            return char::from_u32(if place < 26 { 0x41 + place } else { 0x61 + place - 26 });
        }
        _ => {}
    }
    PAIRS.iter().find_map(|(from, to)| {
        from.chars().zip(to.chars()).find(|(known, _)| *known == letter).map(|(_, ascii)| ascii)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn se_14_a_word_that_mixes_letters_or_is_made_of_none_but_look_alikes_is_found() {
        let mixed = find("r\u{435}ad_file").unwrap();
        assert_eq!((mixed.kind, mixed.code_points.as_slice()), (Kind::LookAlike, &['\u{435}'][..]));
        assert_eq!(mixed.decoded.as_deref(), Some("read_file"));
        for name in [
            "\u{441}\u{43e}\u{440}\u{443}",
            "\u{ff52}\u{ff45}\u{ff41}\u{ff44}",
            "\u{1d5cb}\u{1d5be}\u{1d5ba}\u{1d5bd}",
            "files.\u{3bf}pen",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_word_of_another_language_is_what_it_seems() {
        for name in [
            "read_file",
            "\u{43f}\u{440}\u{43e}\u{447}\u{438}\u{442}\u{430}\u{442}\u{44c}",
            "\u{8aad}\u{3080}",
            "caf\u{e9}",
            "\u{3bb}_calc",
            "\u{43e}\u{43d}_file",
        ] {
            assert_eq!(find(name), None, "{name}");
        }
    }

    #[test]
    fn se_14_on_a_terminal_every_letter_that_mixes_with_ascii_is_placed_and_sentences_are_left() {
        assert_eq!(places("r\u{435}ad \u{440}\u{430}th"), [1, 6, 8]);
        assert_eq!(places("file\u{444}"), [4], "no pair of the table, and no word of any language");
        assert_eq!(places("\u{441}\u{43e}\u{440}\u{443}"), [0, 2, 4, 6]);
        for text in [
            "\u{440}\u{43e}\u{441}\u{430} \u{43d}\u{430} \u{442}\u{440}\u{430}\u{432}\u{435}",
            "Gr\u{f6}\u{df}e, \u{394}t, \u{3bb}, \u{65e5}\u{672c}\u{8a9e}MCP, caf\u{e9}",
            "plain",
        ] {
            assert_eq!(places(text), [0; 0], "{text}");
        }
    }

    #[test]
    fn the_table_pairs_each_letter_with_one() {
        for (from, to) in PAIRS {
            assert_eq!(from.chars().count(), to.chars().count(), "{to}");
        }
    }
}
