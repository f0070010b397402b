//! Unpredictable identifiers and tokens.

use std::fmt::Write as _;

/// `bytes` bytes from the operating system's generator as lowercase hex, twice as many characters.
///
/// Used for tokens and for names of temporary files, so there is no weaker fallback: where the
/// operating system cannot give random bytes the process ends, because every answer it could give
/// instead would be a guessable token.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0_u8; bytes];
    fill(&mut buffer);
    let mut text = String::with_capacity(bytes.saturating_mul(2));
    for byte in buffer {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Bytes from the operating system's generator, for seeds and salts; the same rule as for
/// [`random_hex`].
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut buffer = [0; N];
    fill(&mut buffer);
    buffer
}

fn fill(buffer: &mut [u8]) {
    if getrandom::fill(buffer).is_err() {
        std::process::abort();
    }
}
