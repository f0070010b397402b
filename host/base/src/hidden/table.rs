//! Which character is hidden, and what the ones that carry data spell.
//!
//! The table is Unicode's `Default_Ignorable_Code_Point` with the controls, the line separators,
//! the private-use planes and the interlinear annotations added to it.

use super::Kind;

/// The kind of `character` if it draws nothing or draws what only a font knows; neighbours are not looked at.
pub(super) fn kind_of(character: char) -> Option<Kind> {
    if matches!(character, '\n' | '\t' | '\r' | ' '..='~') {
        return None;
    }
    if character.is_control() {
        return Some(match character {
            '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => Kind::Ansi,
            _ => Kind::Control,
        });
    }
    match character {
        '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Some(Kind::Bidi)
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' => Some(Kind::ZeroWidth),
        '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}' => Some(Kind::Tag),
        '\u{e000}'..='\u{f8ff}' => Some(Kind::PrivateUse),
        '\u{2028}'..='\u{2029}' | '\u{fdd0}'..='\u{fdef}' => Some(Kind::Control),
        // The last two code points of every plane are noncharacters; planes 15 and 16 are private.
        _ if (u32::from(character) & 0xfffe) == 0xfffe => Some(Kind::Control),
        '\u{f0000}'.. => Some(Kind::PrivateUse),
        _ => None,
    }
}

/// VS15 or VS16, which choose between the text and the emoji form of the character before them.
pub(super) const fn is_presentation_selector(character: char) -> bool {
    matches!(character, '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a presentation selector after `character` chooses anything: digits and signs of keycaps,
/// and symbols beyond ASCII. Letters take none, so one after a letter is data.
pub(super) fn takes_selector(character: char) -> bool {
    match character {
        '0'..='9' | '#' | '*' => true,
        _ if character.is_ascii() || character.is_whitespace() => false,
        _ => kind_of(character).is_none() && (!character.is_alphabetic() || is_emoji(character)),
    }
}

/// Whether `character` can be a part of an emoji sequence (the blocks that hold `Extended_Pictographic`).
pub(super) const fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{3030}'
            | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}' | '\u{24c2}' | '\u{25a0}'..='\u{27bf}'
            | '\u{2900}'..='\u{297f}' | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}'
    )
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
/// non-joiners: Arabic and its relatives, the Indic scripts, Myanmar, Khmer, Mongolian.
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
