//! Which character is hidden, and what the ones that carry data spell.
//!
//! Unicode's own properties say it, as `icu_properties` has them: hidden is what is default-ignorable, a
//! control, a format character, a line separator, private use or no character at all. Two things the
//! properties do not know: format characters that are drawn (`Prepended_Concatenation_Mark`: an Arabic number
//! sign), which are seen, and a few symbols that are drawn as nothing ([`BLANKS`]), which are not. Spaces are
//! seen as spaces, of whatever width.

use icu_properties::props::{
    BidiControl, DefaultIgnorableCodePoint, Emoji, EmojiModifier, ExtendedPictographic, GeneralCategory,
    PrependedConcatenationMark,
};
use icu_properties::{CodePointMapData, CodePointSetData};

use super::Kind;

/// Symbols and marks whose glyph is empty: the blank Braille pattern, the Khitan filler, the null note head.
const BLANKS: [char; 3] = ['\u{2800}', '\u{16fe4}', '\u{1d159}'];

/// The kind of `character` if it draws nothing or draws what only a font knows; neighbours are not looked at.
pub(super) fn kind_of(character: char) -> Option<Kind> {
    if matches!(character, '\n' | '\t' | '\r' | ' '..='~') {
        return None;
    }
    match CodePointMapData::<GeneralCategory>::new().get(character) {
        GeneralCategory::Control => Some(match character {
            '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => Kind::Ansi,
            _ => Kind::Control,
        }),
        GeneralCategory::LineSeparator | GeneralCategory::ParagraphSeparator => Some(Kind::Control),
        GeneralCategory::PrivateUse => Some(Kind::PrivateUse),
        GeneralCategory::Unassigned if is_noncharacter(character) => Some(Kind::Control),
        _ if CodePointSetData::new::<BidiControl>().contains(character) => Some(Kind::Bidi),
        // Tags, and the selectors that number the 256 bytes.
        _ if matches!(character, '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}') => Some(Kind::Tag),
        GeneralCategory::Format
            if !CodePointSetData::new::<PrependedConcatenationMark>().contains(character) =>
        {
            Some(Kind::ZeroWidth)
        }
        _ if CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(character) => {
            Some(Kind::ZeroWidth)
        }
        _ if BLANKS.contains(&character) => Some(Kind::ZeroWidth),
        _ => None,
    }
}

/// The last two code points of every plane, and 32 in the first: no text has them (Unicode, section 23.7).
const fn is_noncharacter(character: char) -> bool {
    let code = character as u32;
    code & 0xfffe == 0xfffe || matches!(code, 0xfdd0..=0xfdef)
}

/// VS15 or VS16, which choose between the text and the emoji form of the character before them.
pub(super) const fn is_presentation_selector(character: char) -> bool {
    matches!(character, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a presentation selector after `character` chooses anything, as it does for what can be an emoji,
/// the digits and signs of keycaps among it. After anything else it is data.
pub(super) fn takes_selector(character: char) -> bool {
    kind_of(character).is_none() && (is_pictographic(character) || is_one_of_emoji(character))
}

/// Whether `character` can stand beside a joiner in an emoji sequence.
pub(super) fn is_emoji(character: char) -> bool {
    !character.is_ascii() && (is_pictographic(character) || is_one_of_emoji(character))
}

fn is_pictographic(character: char) -> bool {
    CodePointSetData::new::<ExtendedPictographic>().contains(character)
}

/// `Emoji` has the keycap bases and the flags' letters too; the modifiers of skin are among it.
fn is_one_of_emoji(character: char) -> bool {
    CodePointSetData::new::<Emoji>().contains(character)
        || CodePointSetData::new::<EmojiModifier>().contains(character)
}

/// Whether `character` is a Braille pattern with dots; between two of them the blank one is a space.
pub(super) const fn is_braille(character: char) -> bool {
    matches!(character, '\u{2801}'..='\u{28ff}')
}

/// What a tag character spells, and nothing for `U+E0001` and the cancel tag.
pub(super) fn tag_ascii(character: char) -> Option<char> {
    let offset = u32::from(character).checked_sub(0xe_0000)?;
    char::from_u32(offset).filter(|ascii| matches!(ascii, ' '..='~'))
}

/// The byte that a variation selector numbers: VS1..VS16 are 0..15, VS17..VS256 the rest.
pub(super) fn selector_byte(character: char) -> Option<u8> {
    let code = u32::from(character);
    let byte = match code {
        0xfe00..=0xfe0f => code - 0xfe00,
        0xe_0100..=0xe_01ef => code - 0xe_0100 + 16,
        _ => return None,
    };
    u8::try_from(byte).ok()
}

/// Whether `character` belongs to a script that spells words with zero-width joiners and
/// non-joiners: Arabic and its relatives, the Indic scripts, Myanmar, Khmer, Mongolian. The blocks, because
/// the marks and digits between the letters are of no script of their own.
pub(super) fn is_joined_script(character: char) -> bool {
    kind_of(character).is_none()
        && matches!(
            character,
            '\u{600}'..='\u{8ff}'
                | '\u{900}'..='\u{dff}'
                | '\u{1000}'..='\u{109f}'
                | '\u{1780}'..='\u{18af}'
                | '\u{a840}'..='\u{a8ff}'
                | '\u{fb50}'..='\u{fdff}'
                | '\u{fe70}'..='\u{fefc}'
        )
}
