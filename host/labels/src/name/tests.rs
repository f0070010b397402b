use super::{NameError, check_server_name};

#[test]
fn plain_names_are_taken() {
    for name in
        ["github", "eu.weather", "my-server_2", "0", "A.b-C_d", "console", "toolgates", &"x".repeat(64)]
    {
        assert_eq!(check_server_name(name), Ok(()), "{name}");
    }
}

#[test]
fn names_that_reach_elsewhere_are_refused_se_09() {
    use NameError::{Character, Empty, Reserved, Separator, Start, TooLong};
    let long = "x".repeat(300);
    let cases = [
        ("", Empty),
        ("../../x", Start('.')),
        ("..", Start('.')),
        ("/abs", Start('/')),
        ("_x", Start('_')),
        ("-x", Start('-')),
        ("a/b", Character('/')),
        ("a\0b", Character('\0')),
        ("a b", Character(' ')),
        ("a\u{200b}b", Character('\u{200b}')),
        ("näme", Character('ä')),
        ("a__b", Separator),
        ("a___b", Separator),
        (long.as_str(), TooLong(300)),
        ("CON", Reserved("CON".to_owned())),
        ("nul.txt", Reserved("nul.txt".to_owned())),
        ("COM1", Reserved("COM1".to_owned())),
        ("toolgate", Reserved("toolgate".to_owned())),
        ("Toolgate-agents", Reserved("Toolgate-agents".to_owned())),
    ];
    for (name, expected) in cases {
        assert_eq!(check_server_name(name), Err(expected), "{name:?}");
    }
}

#[test]
fn messages_show_no_control_character_se_03() {
    let message = check_server_name("a\u{1b}[2J").unwrap_err().to_string();
    assert!(!message.contains('\u{1b}'), "{message}");
}
