//! The words by which a form asks for a secret, in the languages that forms are most often written in, and the
//! letters that are taken for others. Each is read as a form is: accents, case and look-alikes do not count.

/// Words that mean a secret wherever they stand, inside of another word too.
#[rustfmt::skip]
pub(super) const INSIDE: &[&str] = &[
    // English, and what programs say.
    "password", "passwd", "passphrase", "passcode", "passkey", "secret", "token", "credential", "pwd", "cvv", "cvc",
    "apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "masterkey", "sshkey", "licensekey",
    "recoverykey", "mnemonic", "seedphrase", "seedwords", "securitycode", "verificationcode", "confirmationcode",
    "authenticationcode", "authcode", "authorizationcode", "accesscode", "logincode", "signincode", "smscode",
    "onetimecode", "recoverycode", "backupcode", "entrycode", "pincode", "pinnumber", "cardnumber", "creditcard",
    "debitcard", "cardverification", "socialsecurity", "sessionid", "sessioncookie", "authcookie", "bearer",
    "connectionstring", "keystore", "totp", "2fa", "twofactor",
    // German.
    "passwort", "kennwort", "losungswort", "geheim", "zugangsdaten", "zugangscode", "anmeldedaten",
    "sicherheitscode", "bestatigungscode", "best\u{e4}tigungscode", "kartennummer", "pr\u{fc}fziffer",
    // French.
    "motdepasse", "motdepass", "phrasedepasse", "codesecret", "codedacces", "jeton", "identifiants",
    "num\u{e9}rodecarte",
    // Spanish and Portuguese.
    "contrase\u{f1}a", "clave", "secreto", "credencia", "senha", "palavrapasse", "segredo", "c\u{f3}digodeacceso",
    "c\u{f3}digodeverificaci\u{f3}n", "n\u{fa}merodetarjeta",
    // Italian and Romanian.
    "parola", "segreto", "credenzial", "codicesegreto",
    // Dutch and the Nordic languages.
    "wachtwoord", "toegangscode", "l\u{f6}senord", "passord", "adgangskode", "kodeord", "hemlig", "hemmelig",
    "salasana",
    // Polish, Czech, Hungarian, Turkish.
    "has\u{142}o", "tajne", "heslo", "jelsz\u{f3}", "\u{15f}ifre",
    // Indonesian and Vietnamese.
    "katasandi", "m\u{1ead}tkh\u{1ea9}u",
    // Russian and Ukrainian, Greek.
    "\u{43f}\u{430}\u{440}\u{43e}\u{43b}\u{44c}", "\u{43f}\u{430}\u{440}\u{43e}\u{43b}", "\u{441}\u{435}\u{43a}\u{440}\u{435}\u{442}",
    "\u{442}\u{43e}\u{43a}\u{435}\u{43d}", "\u{43f}\u{438}\u{43d}\u{43a}\u{43e}\u{434}",
    "\u{3ba}\u{3c9}\u{3b4}\u{3b9}\u{3ba}\u{3cc}\u{3c2}", "\u{3c3}\u{3c5}\u{3bd}\u{3b8}\u{3b7}\u{3bc}\u{3b1}\u{3c4}\u{3b9}\u{3ba}",
    // Chinese, Japanese, Korean.
    "\u{5bc6}\u{7801}", "\u{5bc6}\u{78bc}", "\u{53e3}\u{4ee4}", "\u{5bc6}\u{94a5}", "\u{5bc6}\u{9470}", "\u{4ee4}\u{724c}",
    "\u{51ed}\u{8bc1}", "\u{9a8c}\u{8bc1}\u{7801}", "\u{9a57}\u{8b49}\u{78bc}",
    "\u{30d1}\u{30b9}\u{30ef}\u{30fc}\u{30c9}", "\u{6697}\u{8a3c}", "\u{8a8d}\u{8a3c}\u{30b3}\u{30fc}\u{30c9}", "\u{79d8}\u{5bc6}",
    "\u{30c8}\u{30fc}\u{30af}\u{30f3}",
    "\u{be44}\u{bc00}\u{bc88}\u{d638}", "\u{c554}\u{d638}", "\u{d1a0}\u{d070}", "\u{c778}\u{c99d}\u{bc88}\u{d638}",
    // Arabic, Hebrew, Hindi, Thai.
    "\u{643}\u{644}\u{645}\u{629}\u{627}\u{644}\u{645}\u{631}\u{648}\u{631}", "\u{643}\u{644}\u{645}\u{629}\u{627}\u{644}\u{633}\u{631}",
    "\u{5e1}\u{5d9}\u{5e1}\u{5de}\u{5d4}", "\u{92a}\u{93e}\u{938}\u{935}\u{930}\u{94d}\u{921}",
    "\u{e23}\u{e2b}\u{e31}\u{e2a}\u{e1c}\u{e48}\u{e32}\u{e19}",
];

/// Keys: a secret in the name and the texts of a field; in a sentence only as a word of its own.
pub(super) const KEYS: &[&str] = &[
    "key",
    "schl\u{fc}ssel",
    "schluessel",
    "llave",
    "chave",
    "chiave",
    "sleutel",
    "nyckel",
    "n\u{f8}kkel",
    "klucz",
    "anahtar",
    "\u{43a}\u{43b}\u{44e}\u{447}",
];

/// Short words: at an end of a name, and as a word of its own in a text.
pub(super) const SHORT: &[&str] = &[
    "pin",
    "pass",
    "pw",
    "otp",
    "mfa",
    "ssn",
    "jwt",
    "puk",
    "tan",
    "csc",
    "mdp",
    "cookie",
    "psswd",
    "passwrd",
    "\u{43f}\u{438}\u{43d}",
];

/// Harmless words that begin or end with a short one.
pub(super) const BENIGN: &[&str] = &[
    "ping", "pink", "pint", "pinned", "spin", "pine", "opinion", "passeng", "passag", "passiv", "passing",
    "compass", "bypass", "surpass", "passport", "tang", "tank", "instan", "distan", "business", "address",
    "process", "access", "class", "session", "assn",
];

/// Letters that are taken for others, beside those of [`toolgate_base::lookalike`] and what decomposes.
pub(super) const ALIKE: &[(char, &str)] = &[
    ('\u{df}', "ss"),
    ('\u{e6}', "ae"),
    ('\u{c6}', "ae"),
    ('\u{153}', "oe"),
    ('\u{152}', "oe"),
    ('\u{f8}', "o"),
    ('\u{d8}', "o"),
    ('\u{142}', "l"),
    ('\u{141}', "l"),
    ('\u{111}', "d"),
    ('\u{110}', "d"),
    ('\u{127}', "h"),
    ('\u{f0}', "d"),
    ('\u{18f}', "e"),
    ('\u{1dd}', "e"),
    ('\u{259}', "e"),
    ('\u{199}', "k"),
    ('\u{1a5}', "p"),
    ('\u{253}', "b"),
    ('\u{257}', "d"),
    ('\u{269}', "i"),
    ('\u{26a}', "i"),
    ('\u{27e}', "r"),
    ('\u{282}', "s"),
    ('\u{28b}', "v"),
    ('\u{262}', "g"),
    ('\u{274}', "n"),
    ('\u{280}', "r"),
    ('\u{28f}', "y"),
    ('\u{299}', "b"),
    ('\u{29c}', "h"),
    ('\u{29f}', "l"),
    ('\u{1d00}', "a"),
    ('\u{1d04}', "c"),
    ('\u{1d05}', "d"),
    ('\u{1d07}', "e"),
    ('\u{1d0a}', "j"),
    ('\u{1d0b}', "k"),
    ('\u{1d0d}', "m"),
    ('\u{1d0f}', "o"),
    ('\u{1d18}', "p"),
    ('\u{1d1b}', "t"),
    ('\u{1d1c}', "u"),
    ('\u{1d20}', "v"),
    ('\u{1d21}', "w"),
    ('\u{1d22}', "z"),
    ('\u{a730}', "f"),
    ('\u{a731}', "s"),
    // Cyrillic
    ('\u{43a}', "k"),
    ('\u{442}', "t"),
    ('\u{43c}', "m"),
    ('\u{432}', "b"),
    ('\u{43d}', "h"),
    ('\u{43f}', "n"),
    ('\u{433}', "r"),
    ('\u{4af}', "y"),
    ('\u{461}', "w"),
    ('\u{475}', "v"),
    // Greek
    ('\u{3c4}', "t"),
    ('\u{3b5}', "e"),
    ('\u{3b7}', "n"),
    ('\u{3c9}', "w"),
    ('\u{3bc}', "u"),
    ('\u{3b2}', "b"),
    ('\u{3c2}', "\u{3c3}"),
    // Cherokee
    ('\u{13aa}', "a"),
    ('\u{13f4}', "b"),
    ('\u{13df}', "c"),
    ('\u{13a0}', "d"),
    ('\u{13ac}', "e"),
    ('\u{13c0}', "g"),
    ('\u{13bb}', "h"),
    ('\u{13ab}', "j"),
    ('\u{13e6}', "k"),
    ('\u{13de}', "l"),
    ('\u{13b7}', "m"),
    ('\u{13e2}', "p"),
    ('\u{13a1}', "r"),
    ('\u{13da}', "s"),
    ('\u{13a2}', "t"),
    ('\u{13d9}', "v"),
    ('\u{13b3}', "w"),
    ('\u{13c3}', "z"),
];
