//! The name under which a client sees a server's tool.
//!
//! A function of (server, tool) alone: no list, no order of connecting, no other server changes
//! it, so a name that was listed is the name that is called (PR-07). Clients accept
//! `^[A-Za-z0-9_-]{1,64}$` and put their own prefix before it (PR-05), so the caller gives the
//! length that is left.
//!
//! Threat: a server names a tool such that it takes another's exposed name (SE-16), or that two
//! of its tools share one (SE-14). A name is taken over as `<server>__<tool>` only where the pair
//! can be read back from it; every other pair gets a name that ends in `_` and 40 bits of a digest
//! of both, and no plain name ends like that. Two digested names are equal only if their digests
//! collide *and* their readable parts agree, which somebody who may name many tools can bring
//! about for two tools of one server. So whoever builds a catalog must still treat an exposed name
//! that comes twice as an error of both tools; grants and pins never key on it.

use sha2::{Digest as _, Sha256};

/// What separates server and tool in a plain name.
const SEPARATOR: &str = "__";

/// Hex digits of the digest in a name that could not be taken over.
const DIGITS: usize = 10;

/// Begins what is hashed, so that no other digest in Toolgate is over the same bytes.
const DOMAIN: &[u8] = b"toolgate exposed-name v1\n";

/// The name that a client sees for `tool` of `server`: at most `max` characters of `A-Z a-z 0-9 _ -`,
/// at least one. 49 is usual; below 12 there is room for the digest only, and cut short it is no
/// longer unique.
pub fn exposed_name(server: &str, tool: &str, max: usize) -> String {
    let plain = format!("{server}{SEPARATOR}{tool}");
    if plain.len() <= max && !is_ambiguous(server, tool) && !looks_digested(&plain) {
        return plain;
    }
    let digest = digest_of(server, tool);
    match max.checked_sub(DIGITS + 1).filter(|room| *room > 0) {
        Some(room) => format!("{}_{digest}", readable(server, tool, room)),
        None => digest.chars().take(max.max(1)).collect(),
    }
}

/// How every exposed name of `server` begins, at least: what does not begin so is no name of its
/// tools. May be empty.
pub fn exposed_prefix(server: &str, max: usize) -> String {
    // A digested name keeps this much of its server; a plain one keeps the whole.
    let room = max.saturating_sub(DIGITS + 1);
    accepted(server).chars().take(room / 2).collect()
}

/// Whether server and tool cannot be read back from `<server>__<tool>`: the first `__` in it must be
/// the separator, and every character must be one that clients accept.
fn is_ambiguous(server: &str, tool: &str) -> bool {
    let clean = |part: &str| !part.is_empty() && part.chars().all(is_accepted);
    !clean(server)
        || !clean(tool)
        || server.contains(SEPARATOR)
        || server.ends_with('_')
        || tool.starts_with('_')
}

/// Whether a name ends like one that was made from a digest.
fn looks_digested(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == DIGITS && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The first [`DIGITS`] hex digits of sha256 over both names, the server's behind its length, so
/// that no other pair gives the same bytes.
fn digest_of(server: &str, tool: &str) -> String {
    let mut hasher = Sha256::new();
    hasher.update(DOMAIN);
    // Lengths are written as text, so that a 32-bit guest and the host hash the same bytes.
    hasher.update(format!("{}\n", server.len()).as_bytes());
    hasher.update(server.as_bytes());
    hasher.update(tool.as_bytes());
    let mut digits = String::with_capacity(DIGITS);
    for byte in hasher.finalize().iter().take(DIGITS / 2) {
        for nibble in [byte >> 4, byte & 0xf] {
            digits.extend(char::from_digit(u32::from(nibble), 16));
        }
    }
    digits
}

/// As much of both names as fits into `room` characters; the server gives way only beyond its half.
fn readable(server: &str, tool: &str, room: usize) -> String {
    let (server, tool) = (accepted(server), accepted(tool));
    let for_server = room.saturating_sub(SEPARATOR.len() + tool.len()).max(room / 2);
    let mut text: String = server.chars().take(for_server).collect();
    text.push_str(SEPARATOR);
    text.push_str(&tool);
    text.chars().take(room).collect()
}

/// `text` with every run of characters that clients do not accept replaced by one `_`.
fn accepted(text: &str) -> String {
    let mut result = String::new();
    let mut replaced = false;
    for character in text.chars() {
        if is_accepted(character) {
            result.push(character);
        } else if !replaced {
            result.push('_');
        }
        replaced = !is_accepted(character);
    }
    result
}

const fn is_accepted(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

#[cfg(test)]
mod tests;
