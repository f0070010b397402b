use proptest::prelude::*;

use super::*;

/// ELI-008
#[test]
fn the_names_that_forms_give_to_secrets_are_found() {
    for name in [
        "password",
        "pass_word",
        "PassWord",
        "pwd",
        "userPwd",
        "pin",
        "user_pin",
        "pinCode",
        "PIN2",
        "cvv",
        "cardCvv2",
        "cvc",
        "apiKey",
        "API-KEY",
        "p@ssw0rd",
        "s3cr3t",
        "t0ken",
        "2fa_code",
        "otp",
        "smsTan",
        "passwort",
        "Kennwort",
        "mot_de_passe",
        "contrase\u{f1}a",
        "senha",
        "wachtwoord",
        "has\u{142}o",
        "l\u{f6}senord",
        "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
        "\u{41f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
        "\u{5bc6}\u{7801}",
        "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}",
        "\u{be44}\u{bc00}\u{bc88}\u{d638}",
        "p\u{430}ssw\u{43e}rd",
        "\u{ff50}\u{ff49}\u{ff4e}",
        "pass\u{200b}word",
        "p\u{308}assw\u{f6}rd",
        "\u{1d429}\u{1d422}\u{1d427}",
        "\u{24df}\u{24d8}\u{24dd}",
        "\u{1f15f}\u{1f158}\u{1f15d}",
        "c l a v e",
        "ssn",
        "customer.ssn",
    ] {
        assert!(in_name(name), "{name}");
    }
}

#[test]
fn names_that_ask_for_no_secret_are_not_held_up() {
    for name in [
        "city",
        "reason",
        "priority",
        "shipping_address",
        "opinion",
        "mapping",
        "passenger_name",
        "business_name",
        "address_number",
        "class_name",
        "session_name",
        "spinner",
        "compass",
        "distance",
        "instance",
        "email",
        "amount",
        "start_date",
        "count",
        "how",
        "region",
        "userName",
        "titre",
        "ort",
        "\u{433}\u{43e}\u{440}\u{43e}\u{434}",
    ] {
        assert!(!in_name(name), "{name}");
    }
}

#[test]
fn sentences_that_ask_for_a_secret_are_told_from_those_that_do_not() {
    for text in [
        "Enter your PIN.",
        "PIN:",
        "Your p.i.n., please",
        "p a s s w o r d",
        "Type the pass word",
        "pass\u{ad}word?",
        "One-time code: see your phone; one time code",
        "What is the API key?",
        "Mot de passe ?",
        "Wie lautet das Kennwort?",
        "\u{412}\u{432}\u{435}\u{434}\u{438}\u{442}\u{435} \u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}",
        "\u{8bf7}\u{8f93}\u{5165}\u{60a8}\u{7684}\u{5bc6}\u{7801}",
        "Enter yourPin now",
        "the security-code on the back",
        "P\u{391}SSW\u{39f}RD",
        "two factor code",
        "the keys to your account",
    ] {
        assert!(in_message(text), "{text}");
    }
    for text in [
        "Which city do you live in?",
        "Why?",
        "What now?",
        "Shipping address, please.",
        "In your opinion, is it ripe?",
        "Map in hand, walk on.",
        "Choose a keyboard layout",
        "How many monkeys?",
        "Wohin geht die Reise?",
        "Ort und Zeit",
    ] {
        assert!(!in_message(text), "{text}");
    }
    assert!(in_field("keyboard"), "in a field a key is one inside of a word, too");
}

/// The word with something between its letters, in any case, with letters that look like others.
fn disguised(word: &str, between: &'static [&'static str]) -> impl Strategy<Value = String> + use<> {
    let letters: Vec<char> = word.chars().collect();
    let choice = (any::<bool>(), 0..4_usize, proptest::sample::select(between));
    proptest::collection::vec(choice, letters.len()).prop_map(move |choices| {
        let mut out = String::new();
        for (letter, (upper, look, separator)) in letters.iter().zip(choices) {
            let letter = if upper { letter.to_ascii_uppercase() } else { *letter };
            out.push(match look {
                0 => wide(letter),
                1 => other(letter),
                _ => letter,
            });
            out.push_str(separator);
        }
        out
    })
}

/// The same letter as wide form.
fn wide(letter: char) -> char {
    char::from_u32(u32::from(letter) + 0xfee0).filter(|_| letter.is_ascii_alphabetic()).unwrap_or(letter)
}

/// A letter of another script that is taken for it.
fn other(letter: char) -> char {
    match letter {
        'a' => '\u{430}',
        'e' => '\u{435}',
        'o' => '\u{43e}',
        'p' => '\u{440}',
        'c' => '\u{441}',
        'i' => '\u{456}',
        's' => '\u{455}',
        'k' => '\u{3ba}',
        't' => '\u{442}',
        'n' => '\u{274}',
        'r' => '\u{280}',
        'A' => '\u{391}',
        'E' => '\u{395}',
        'O' => '\u{39f}',
        'P' => '\u{420}',
        'T' => '\u{422}',
        'K' => '\u{39a}',
        'S' => '\u{405}',
        'w' => '\u{1d21}',
        'd' => '\u{501}',
        other => other,
    }
}

const IN_NAMES: &[&str] =
    &["", "", "", "_", "-", ".", " ", "\u{200b}", "\u{ad}", "\u{2060}", "\u{301}", "__", "/"];
const IN_WORDS: &[&str] = &["", "", "", "_", "-", ".", "\u{200b}", "\u{ad}", "\u{feff}", "\u{301}"];

fn ascii_words() -> Vec<&'static str> {
    INSIDE
        .iter()
        .chain(KEYS)
        .chain(SHORT)
        .copied()
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
        .collect()
}

proptest! {
    /// ELI-008: separators, case and look-alikes change nothing about a name.
    #[test]
    fn a_disguise_never_changes_the_verdict_on_a_name(
        (plain, worn) in "[a-z]{0,14}".prop_flat_map(|word| (Just(word.clone()), disguised(&word, IN_NAMES)))
    ) {
        prop_assert_eq!(in_name(&plain), in_name(&worn), "{} as {}", plain, worn);
    }

    #[test]
    fn every_word_is_found_in_every_disguise(
        (word, before, after, worn) in (proptest::sample::select(ascii_words()), "[a-z]{0,4}", "[a-z]{0,4}")
            .prop_flat_map(|(word, before, after)| (Just(word), Just(before), Just(after), disguised(word, IN_NAMES)))
    ) {
        prop_assert!(in_name(&worn), "{} as {}", word, worn);
        if INSIDE.contains(&word) {
            let inside = format!("{before}{worn}{after}");
            prop_assert!(in_name(&inside), "{} in {}", word, inside);
        }
    }

    #[test]
    fn every_word_is_found_in_a_sentence_in_every_disguise(
        (word, worn) in proptest::sample::select(ascii_words())
            .prop_flat_map(|word| (Just(word), disguised(word, IN_WORDS)))
    ) {
        let sentence = format!("Please type your {worn} here");
        prop_assert!(in_message(&sentence), "{} as {}", word, worn);
    }
}
