use crate::testing::Home;

fn masked(entry: &str, secrets: &[(&str, &str)], text: &str) -> String {
    let mut home = Home::with_config(&format!("servers:\n  a: {entry}\n"));
    for (name, value) in secrets {
        home.set(name, value);
    }
    home.load().unwrap().servers["a"].without_secrets(text)
}

// SEC-006
#[test]
fn sec_006_a_short_secret_goes_where_it_is_a_word_and_a_short_setting_stays() {
    let entry = "{command: x, env: {DOOR_PIN: \"4711\", DEBUG: \"1\", LEVEL: info}}";
    let text = "pin=4711 (4711) 47110 x4711 4711_ port 1 at level info";
    assert_eq!(masked(entry, &[], text), "pin=*** (***) 47110 x4711 4711_ port 1 at level info");
    let entry = "{command: x, args: [\"${CODE_TOKEN}\", \"${MODE}\"]}";
    assert_eq!(masked(entry, &[("CODE_TOKEN", "ab12"), ("MODE", "fast")], "ab12,fast"), "***,fast");
    let entry = "{url: \"https://x.example/\", headers: {Authorization: \"Basic a:b\", X-Mode: on}}";
    assert_eq!(masked(entry, &[], "refused a:b, on"), "refused ***, on");
}

#[test]
fn whoever_cuts_has_to_keep_the_longest_value() {
    let home = Home::with_config("servers:\n  a: {command: x, env: {K: \"0123456789\\\"x\", L: abcdefg}}\n");
    let config = home.load().unwrap();
    let masking = config.servers["a"].masking();
    // As JSON writes it, it is longer by one.
    assert_eq!(masking.longest(), 13);
    assert!(!format!("{masking:?}").contains("0123"));
}
