use super::*;
use crate::testing::Home;

#[test]
fn a_file_is_trusted_as_it_is_and_no_other_way() {
    let home = Home::new();
    let file = home.write("work/toolgate.yaml", "personas: {}\n");
    assert_eq!(is_trusted(&home.user_dir(), &file).unwrap(), None);
    let written = record(&home.user_dir(), &file).unwrap();
    assert!(written.config.starts_with("sha256:") && written.dotenv.is_none());
    assert_eq!(is_trusted(&home.user_dir(), &file).unwrap(), Some(State::Trusted));
    home.write("work/.env", "A=1\n");
    assert!(matches!(is_trusted(&home.user_dir(), &file).unwrap(), Some(State::Changed(_))));
    record(&home.user_dir(), &file).unwrap();
    assert_eq!(is_trusted(&home.user_dir(), &file).unwrap(), Some(State::Trusted));
    assert!(forget(&home.user_dir(), &file).unwrap());
    assert_eq!(is_trusted(&home.user_dir(), &file).unwrap(), None);
    assert!(!forget(&home.user_dir(), &file).unwrap());
}

#[test]
fn the_same_bytes_elsewhere_are_not_trusted() {
    let home = Home::new();
    let file = home.write("work/toolgate.yaml", "personas: {}\n");
    let other = home.write("other/toolgate.yaml", "personas: {}\n");
    record(&home.user_dir(), &file).unwrap();
    assert_eq!(is_trusted(&home.user_dir(), &other).unwrap(), None);
    assert_eq!(
        is_trusted(&home.user_dir(), &home.path("other/../work/toolgate.yaml")).unwrap(),
        Some(State::Trusted)
    );
}

#[test]
fn a_damaged_or_newer_record_is_an_error_and_not_an_empty_one() {
    let home = Home::new();
    let file = home.write("work/toolgate.yaml", "personas: {}\n");
    for text in [
        "",
        "{",
        "[]",
        "{\"format\":1}",
        "{\"format\":2,\"configs\":{}}",
        "{\"format\":1,\"configs\":{},\"x\":1}",
    ] {
        home.write(".config/toolgate/trusted-configs", text);
        assert!(matches!(is_trusted(&home.user_dir(), &file), Err(ConfigError::State { .. })), "{text}");
        assert!(record(&home.user_dir(), &file).is_err(), "{text}");
    }
}

#[test]
fn the_first_format_is_read() {
    let home = Home::new();
    let file = home.write("work/toolgate.yaml", "personas: {}\n");
    let digest = Digest::of(b"personas: {}\n");
    let path = file.canonicalize().unwrap();
    home.write(
        ".config/toolgate/trusted-configs",
        &format!(
            "{{\"format\":1,\"configs\":{{\"{}\":{{\"config\":\"{digest}\",\"dotenv\":null}}}}}}",
            path.display()
        ),
    );
    assert_eq!(is_trusted(&home.user_dir(), &file).unwrap(), Some(State::Trusted));
}
