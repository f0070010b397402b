//! A fingerprint that two people can read to each other.
//!
//! Sixteen bits make one word of five letters, consonant and vowel in turn: four bits choose each of
//! three consonants, two bits each of two vowels (the public "proquint" scheme). Five words are the
//! first 80 bits of a key's id: enough that nobody finds a second key with the same words, short
//! enough to be compared.

use crate::key::KeyId;

const CONSONANTS: [char; 16] =
    ['b', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'r', 's', 't', 'v', 'z'];
const VOWELS: [char; 4] = ['a', 'i', 'o', 'u'];

/// How many words a key has.
const WORDS: usize = 5;

impl KeyId {
    /// Five words to compare aloud, joined by `-`.
    pub fn words(&self) -> String {
        let words: Vec<String> = self.as_str().as_bytes().chunks(4).take(WORDS).map(word).collect();
        words.join("-")
    }

    /// The 64 hex digits in groups of four, for the eye.
    pub fn fingerprint(&self) -> String {
        let groups: Vec<String> = self
            .as_str()
            .as_bytes()
            .chunks(4)
            .map(|group| String::from_utf8_lossy(group).into_owned())
            .collect();
        groups.join(" ")
    }
}

/// Four hex digits as one word.
fn word(digits: &[u8]) -> String {
    let bits = digits.iter().fold(0_u16, |bits, digit| {
        (bits << 4) | u16::try_from(char::from(*digit).to_digit(16).unwrap_or(0)).unwrap_or(0)
    });
    let consonant = |shift: u16| CONSONANTS.get(usize::from((bits >> shift) & 15)).copied().unwrap_or('b');
    let vowel = |shift: u16| VOWELS.get(usize::from((bits >> shift) & 3)).copied().unwrap_or('a');
    [consonant(12), vowel(10), consonant(6), vowel(4), consonant(0)].into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::word;
    use crate::SigningKey;

    #[test]
    fn words_are_those_of_the_public_scheme() {
        // 127.0.0.1 is written lusab-babad there.
        assert_eq!(word(b"7f00"), "lusab");
        assert_eq!(word(b"0001"), "babad");
    }

    #[test]
    fn a_key_has_five_words_and_sixteen_groups() {
        let id = SigningKey::from_seed(&[1; 32]).public().id();
        assert_eq!(id.words().split('-').count(), 5);
        assert_eq!(id.fingerprint().split(' ').count(), 16);
    }
}
