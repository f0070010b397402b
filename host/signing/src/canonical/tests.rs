use proptest::prelude::*;

use super::{CanonicalError, MAX_DEPTH, canonical_json};

fn canonical(json: &str) -> String {
    canonical_json(json).unwrap()
}

#[test]
fn one_number_has_one_text_and_another_number_another() {
    for spelling in ["1", "1.0", "1e0", "10e-1", "0.1E+1", "100.00e-2"] {
        assert_eq!(canonical(spelling), "1", "{spelling}");
    }
    let different = [
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "9007199254740993.5",
        "123456789012345678901234567890",
        "123456789012345678901234567891",
        "1e400",
        "1e401",
        "-1e400",
        "1e-400",
        "5e-324",
        "4.9e-324",
        "0.1000000000000000055511151231257827",
        "0.1",
        "0",
    ];
    let texts: std::collections::HashSet<String> = different.iter().map(|number| canonical(number)).collect();
    assert_eq!(texts.len(), different.len(), "{texts:?}");
}

#[test]
fn numbers_are_printed_as_ecmascript_prints_them() {
    // The finite samples of RFC 8785, appendix B, in the spelling of seventeen digits.
    for (literal, expected) in [
        ("4.9406564584124654e-324", "4.9406564584124654e-324"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("-1.7976931348623157E+308", "-1.7976931348623157e+308"),
        ("9.9999999999999970e22", "9.999999999999997e+22"),
        ("1e+23", "1e+23"),
        ("1.0000000000000001e+23", "1.0000000000000001e+23"),
        ("999999999999999700000.0", "999999999999999700000"),
        ("999999999999999900000.0", "999999999999999900000"),
        ("1.0e21", "1e+21"),
        ("9.999999999999997e-7", "9.999999999999997e-7"),
        ("0.0000010", "0.000001"),
        ("333333333.33333320", "333333333.3333332"),
        ("333333333.33333325", "333333333.33333325"),
        ("333333333.3333334", "333333333.3333334"),
        ("-0.0000033333333333333333", "-0.0000033333333333333333"),
        ("1424953923781206.2", "1424953923781206.2"),
        // Eighteen digits: more than any printer of doubles writes, so it keeps its text.
        ("1424953923781206.25", "1424953923781206.25"),
    ] {
        assert_eq!(canonical(literal), expected, "{literal}");
    }
}

#[test]
fn errors_say_where() {
    assert_eq!(canonical_json("[1,]"), Err(CanonicalError::Syntax { offset: 3, expected: "a value" }));
    assert_eq!(
        canonical_json(r#"[{"a":1,"\u0061":2}]"#),
        Err(CanonicalError::DuplicateKey { offset: 1, key: "a".to_owned() })
    );
    assert_eq!(canonical_json(r#"["\ud800"]"#), Err(CanonicalError::LoneSurrogate { offset: 2 }));
    let deep = "[".repeat(MAX_DEPTH + 1);
    assert_eq!(canonical_json(&deep), Err(CanonicalError::TooDeep { offset: MAX_DEPTH }));
    let message = canonical_json("{\"a\\u001b\":1,\"a\\u001b\":1}").unwrap_err().to_string();
    assert!(!message.contains('\u{1b}'), "{message}");
}

#[test]
fn a_large_flat_document_is_read_in_reasonable_time() {
    let members: Vec<String> =
        (0..200_000).map(|i| format!("\"k{}\":[{i}.5e3]", (i * 7919) % 200_000)).collect();
    let text = format!("{{{}}}", members.join(","));
    assert!(canonical(&text).len() > 1_000_000);
    assert!(canonical_json(&"9".repeat(1_000_000)).is_ok());
    assert!(canonical_json(&format!("0.{}1", "0".repeat(1_000_000))).is_ok());
}

/// A JSON value as text with members in the order given, and the same value written another way.
fn spelled_twice() -> impl Strategy<Value = (String, String)> {
    let leaf = prop_oneof![
        Just(("null".to_owned(), " null".to_owned())),
        any::<i64>().prop_map(|n| (n.to_string(), format!("\n{n}\t"))),
        any::<i32>().prop_map(|n| (n.to_string(), format!("{n}.0"))),
        any::<f64>()
            .prop_filter("finite", |x| x.is_finite())
            .prop_map(|x| (format!("{x:e}"), format!(" {x:E}"))),
        any::<String>().prop_map(|text| {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped: String =
                text.encode_utf16().fold(String::new(), |all, unit| format!("{all}\\u{unit:04X}"));
            (plain, format!("\"{escaped}\""))
        }),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let object =
            proptest::collection::btree_map("[a-c\u{e9}\u{fb33}\u{1f600}]{0,3}", inner.clone(), 0..5);
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(|elements| {
                let (left, right): (Vec<_>, Vec<_>) = elements.into_iter().unzip();
                (format!("[{}]", left.join(",")), format!("[ {}\r]", right.join(" , ")))
            }),
            object.prop_map(|members| {
                let name = |name: &str| serde_json::to_string(name).unwrap();
                let left: Vec<_> = members.iter().map(|(n, (v, _))| format!("{}:{v}", name(n))).collect();
                let right: Vec<_> =
                    members.iter().rev().map(|(n, (_, v))| format!("{} : {v}", name(n))).collect();
                (format!("{{{}}}", left.join(",")), format!(" {{{}\n}}", right.join("\t,")))
            }),
        ]
    })
}

proptest! {
    /// PI-01: order of members, white space and escapes do not count.
    #[test]
    fn two_spellings_of_a_value_have_one_canonical_form((left, right) in spelled_twice()) {
        prop_assert_eq!(canonical_json(&left), canonical_json(&right));
    }

    #[test]
    fn the_canonical_form_is_json_of_the_same_value_and_its_own_canonical_form((text, _) in spelled_twice()) {
        let once = canonical(&text);
        prop_assert_eq!(canonical(&once), once.clone());
        let before: serde_json::Value = serde_json::from_str(&text).unwrap();
        let after: serde_json::Value = serde_json::from_str(&once).unwrap();
        // A whole number read from `1.0` and from `1` is one value here and two for serde.
        prop_assert_eq!(canonical(&before.to_string()), canonical(&after.to_string()));
    }

    #[test]
    fn every_double_is_printed_so_that_it_reads_back(bits in any::<u64>()) {
        let double = f64::from_bits(bits);
        prop_assume!(double.is_finite());
        let text = canonical(&format!("{double:e}"));
        // Adding zero turns the negative zero, which has no spelling of its own, into the other.
        let expected = (double + 0.0).to_bits();
        prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), expected);
        let spelled_out = canonical(&format!("{double:.16e}"));
        prop_assert_eq!(spelled_out.parse::<f64>().unwrap().to_bits(), expected);
    }

    #[test]
    fn integers_that_differ_stay_different(left in "-?[1-9][0-9]{0,30}", right in "-?[1-9][0-9]{0,30}") {
        prop_assert_eq!(canonical(&left) == canonical(&right), left == right);
    }

    /// Up to 15 digits and within the exponents of normal doubles no two decimals are mistaken for each other.
    #[test]
    fn short_decimals_agree_exactly_if_they_are_equal(
        left in 1_u64..1_000_000_000_000_000, shift in 0_u32..5, exponent in -280_i32..280, right in 1_u64..1_000_000_000_000_000,
    ) {
        let left = left / 100_000;
        let shifted = left * 10_u64.pow(shift);
        let one = format!("{left}.0e{exponent}");
        let other = format!("{shifted}e{}", exponent - i32::try_from(shift).unwrap());
        prop_assert_eq!(canonical(&one), canonical(&other));
        prop_assert_eq!(canonical(&format!("{right}.0e{exponent}")) == canonical(&one), left == right);
    }

    #[test]
    fn any_text_is_read_as_serde_reads_it_or_refused(text in "[\\[\\]{}:,\"a\\\\u0e1.+ -]{0,24}") {
        let ours = canonical_json(&text);
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match ours {
            // Beyond the doubles serde refuses what we keep.
            Ok(canonical) => prop_assert!(theirs.is_ok() || canonical.contains(['e', 'E'])),
            Err(CanonicalError::Syntax { .. }) => prop_assert!(theirs.is_err()),
            Err(_) => {}
        }
    }
}
