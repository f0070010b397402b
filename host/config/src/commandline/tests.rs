use super::*;

#[test]
fn words_are_split_as_a_posix_shell_does() {
    let cases: [(&str, &[&str]); 5] = [
        ("node /path/index.js", &["node", "/path/index.js"]),
        ("  npx   -y  pkg ", &["npx", "-y", "pkg"]),
        ("'my server' --name \"a b\" c\\ d", &["my server", "--name", "a b", "c d"]),
        ("x ''", &["x", ""]),
        ("a | b && c", &["a", "|", "b", "&&", "c"]),
    ];
    for (text, words) in cases {
        assert_eq!(split(text).unwrap(), words, "{text}");
    }
    assert!(split("a 'b").is_err());
    assert!(split("  ").is_err());
}

#[test]
fn paths_count_from_the_file_and_the_tilde_is_home_fp_20() {
    let (base, home) = (Path::new("/etc/tg"), Some(Path::new("/home/u")));
    for (text, path) in [
        (".", "/etc/tg"),
        ("./data", "/etc/tg/data"),
        ("data/x", "/etc/tg/data/x"),
        ("/abs", "/abs"),
        ("~/x", "/home/u/x"),
        ("~", "/home/u"),
        ("~other/x", "/etc/tg/~other/x"),
    ] {
        assert_eq!(resolve(text, base, home), Path::new(path), "{text}");
    }
    assert_eq!(resolve_program("npx", base, home), "npx");
    assert_eq!(resolve_program("./run.sh", base, home), "/etc/tg/run.sh");
}
