use super::*;

#[test]
fn a_duration_is_a_number_and_a_unit() {
    for (text, milliseconds) in
        [("500ms", 500), ("60s", 60_000), ("5m", 300_000), ("2h", 7_200_000), ("0s", 0)]
    {
        assert_eq!(parse(text).unwrap().as_millis(), milliseconds, "{text}");
    }
    for text in
        ["", "60", "s", "1.5s", "-1s", "60 s", "60S", "1d", "60sec", "99999999999999999999s", "721h", "９s"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_is_shown_is_read_back() {
    for text in ["500ms", "60s", "90s", "15m", "2h", "1500ms"] {
        assert_eq!(parse(&show(parse(text).unwrap())), parse(text), "{text}");
    }
    assert_eq!(show(Duration::from_mins(1)), "1m");
}
