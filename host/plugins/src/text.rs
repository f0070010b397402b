//! What becomes of a text that a guest wrote before anybody else reads it.
//!
//! Threat: a plugin, or a server whose words it repeats, writes instructions for a model or for a
//! terminal into a reason. Everything hidden is removed and the length is capped.

use toolgate_base::hidden;

/// Most bytes of a reason (spec plugin-host 5.2).
pub(crate) const MAX_REASON: usize = 1024;

/// A reason as it is shown: without control and hidden characters, line breaks as spaces, at most
/// [`MAX_REASON`] bytes.
pub(crate) fn reason(text: &str) -> String {
    // Cut first, so that a huge text costs no scan; stripping never makes a text longer.
    let text = cut(text, MAX_REASON).replace(['\n', '\r', '\t'], " ");
    let mut clean = hidden::strip(&text);
    clean.retain(|character| !character.is_control());
    clean.trim().to_owned()
}

/// The longest prefix of at most `max` bytes that ends between characters.
pub(crate) fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests;
