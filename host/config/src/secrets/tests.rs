use super::*;
use crate::testing::{Home, config, set_mode};

#[test]
fn secrets_are_set_cleared_and_listed_without_their_values() {
    let home = Home::new();
    let dir = home.user_dir();
    assert!(names(&dir).unwrap().is_empty());
    set(&dir, "B", &Secret::new("two\nlines")).unwrap();
    set(&dir, "A", &Secret::new("sk-9f")).unwrap();
    set(&dir, "B", &Secret::new("again")).unwrap();
    assert_eq!(names(&dir).unwrap(), ["A", "B"]);
    assert_eq!(read(&dir).unwrap()["B"].expose(), "again");
    assert!(clear(&dir, "A").unwrap());
    assert!(!clear(&dir, "A").unwrap());
    assert_eq!(names(&dir).unwrap(), ["B"]);
    assert!(set(&dir, "1X", &Secret::new("x")).is_err());
    assert!(set(&dir, "X", &Secret::new("a\0b")).is_err());
}

#[test]
fn what_the_operator_wrote_beside_them_stays() {
    let home = Home::new();
    home.write(".config/toolgate/secrets.env", "# mine\nA=1\n\nB=2\n");
    set(&home.user_dir(), "A", &Secret::new("3")).unwrap();
    let text = std::fs::read_to_string(path(&home.user_dir())).unwrap();
    assert_eq!(text, "# mine\n\nB=2\nA=\"3\"\n");
}

#[test]
fn a_file_that_cannot_be_read_is_not_overwritten() {
    let home = Home::new();
    let file = home.write(".config/toolgate/secrets.env", "sk-9f\n");
    let told = set(&home.user_dir(), "A", &Secret::new("x")).unwrap_err().to_string();
    assert!(told.contains("secrets.env:1:1") && !told.contains("sk-9f"), "{told}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "sk-9f\n");
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_read_is_refused_and_a_new_one_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    set(&home.user_dir(), "A", &Secret::new("x")).unwrap();
    let file = path(&home.user_dir());
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    set_mode(&file, 0o640);
    let told = home.load().unwrap_err().to_string();
    assert!(told.contains("chmod 600"), "{told}");
}

#[test]
fn secrets_fill_variables_sec_010_sec_014() {
    let home =
        Home::with_config("servers: {a: {url: https://h/mcp, headers: {Authorization: \"Bearer ${T}\"}}}\n");
    set(&home.user_dir(), "T", &Secret::new("sk-9f")).unwrap();
    let loaded = home.load().unwrap();
    let crate::Transport::StreamableHttp { headers, .. } = &loaded.servers["a"].transport else { panic!() };
    assert_eq!(headers[0].1.expose(), "Bearer sk-9f");
    assert!(config("personas: {}\n").variables.is_empty());
}
