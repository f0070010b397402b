use proptest::prelude::*;

use super::*;

#[test]
fn known_times_read_and_write() {
    for (text, seconds) in [
        ("1970-01-01T00:00:00Z", 0),
        ("2000-02-29T23:59:59Z", 951_868_799),
        ("2026-11-29T12:00:00Z", 1_795_953_600),
        ("2100-03-01T00:00:00Z", 4_107_542_400),
        ("9999-12-31T23:59:59Z", END - 1),
    ] {
        assert_eq!(text.parse::<Time>().unwrap().seconds(), seconds, "{text}");
        assert_eq!(Time::from_seconds(seconds).to_string(), text);
    }
}

#[test]
fn other_spellings_and_days_that_do_not_exist_are_refused() {
    for text in [
        "",
        "2026-11-29",
        "2026-11-29T12:00:00+00:00",
        "2026-11-29t12:00:00z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:00:60Z",
        "1969-12-31T23:59:59Z",
        "+026-01-01T00:00:00Z",
        "2026-01-01T00:00:00Z ",
        "２026-01-01T00:00:00Z",
    ] {
        assert!(text.parse::<Time>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn every_second_comes_back(seconds in 0..END) {
        prop_assert_eq!(Time::from_seconds(seconds).to_string().parse(), Ok(Time::from_seconds(seconds)));
    }

    #[test]
    fn any_text_is_judged_without_a_panic(text in "\\PC{0,24}") {
        if let Ok(time) = text.parse::<Time>() {
            prop_assert_eq!(time.to_string(), text);
        }
    }
}
