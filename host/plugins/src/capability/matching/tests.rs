use super::*;

fn settings() -> Document {
    Document::new(
        r#"{"names":["exact","a*","*z","x*y*z","*","*"],"roots":["/data","/home/me/./work/"],"bad":["rel"],"no":7}"#,
    )
}

fn first(list: &[&str], value: &str) -> Option<u32> {
    Patterns::compile(&list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()).first(value)
}

#[test]
fn the_first_pattern_that_matches_the_whole_value_wins() {
    let list = ["exact", "a*", "*z", "x*y*w"];
    assert_eq!(first(&list, "exact"), Some(0));
    assert_eq!(first(&list, "exactly"), None);
    assert_eq!(first(&list, "abz"), Some(1));
    assert_eq!(first(&list, "z"), Some(2));
    assert_eq!(first(&list, "x..y..w"), Some(3));
    assert_eq!(first(&list, "xw"), None);
    assert_eq!(first(&["a*a"], "a"), None);
    assert_eq!(first(&["a*a"], "aa"), Some(0));
    assert_eq!(first(&["**"], ""), Some(0));
    assert_eq!(first(&["a.c"], "abc"), None);
}

#[test]
fn paths_are_resolved_before_they_are_compared() {
    let roots = Roots::compile(&["/data".to_owned(), "/home/me/./work/".to_owned()]).unwrap();
    let at = |path| roots.resolve(path);
    assert_eq!(at("/data/a/../b//c/."), Some("/data/b/c".to_owned()));
    assert_eq!(at("notes.txt"), Some("/data/notes.txt".to_owned()));
    assert_eq!(at(""), Some("/data".to_owned()));
    assert_eq!(at("/home/me/work/x"), Some("/home/me/work/x".to_owned()));
    for outside in [
        "/data/../etc/passwd",
        "../etc/passwd",
        "/data-old/x",
        "/",
        "/etc",
        "/data/\0",
        "/home/me",
        "a/../../data2",
    ] {
        assert_eq!(at(outside), None, "{outside:?}");
    }
    assert_eq!(at("../data/x"), Some("/data/x".to_owned()));
    assert_eq!(Roots::compile(&[]).unwrap().resolve("/data"), None);
    assert!(Roots::compile(&["relative".to_owned()]).is_err());
}

#[test]
fn lists_are_compiled_once_for_each_pointer() {
    let compiled = Compiled::<Patterns>::default();
    let mut times = 0;
    for _ in 0..3 {
        let list = compiled.get(&settings(), "/names", |list| {
            times += 1;
            Ok(Patterns::compile(list))
        });
        assert_eq!(list.unwrap().first("exact"), Some(0));
    }
    assert_eq!(times, 1);
    assert!(compiled.get(&settings(), "/no", |list| Ok(Patterns::compile(list))).is_err());
    assert!(compiled.get(&settings(), "names", |list| Ok(Patterns::compile(list))).is_err());
    assert_eq!(
        compiled.get(&settings(), "/absent", |list| Ok(Patterns::compile(list))).unwrap().first("x"),
        None
    );
    for number in 0..200 {
        let _ = compiled.get(&settings(), &format!("/{number}"), |list| Ok(Patterns::compile(list)));
    }
    assert!(compiled.0.read().unwrap().len() <= MAX_COMPILED);
}

#[test]
fn labels_cover_as_the_rest_of_toolgate_says() {
    assert_eq!(label_covers("mcp.call:github/*", "mcp.call:github/create_issue").ok(), Some(true));
    assert_eq!(label_covers("mcp.call:github", "mcp.call:gitlab/create_issue").ok(), Some(false));
    assert!(matches!(label_covers("", "mcp.call:github"), Err(Error::Invalid(_))));
}

#[test]
fn hidden_text_is_found_in_strings_and_names_se_01() {
    let found =
        hidden::findings("{\"a\":[\"clean\",\"z\\u200bw\"],\"b\u{202e}\":1,\"t\":\"\u{e0068}\u{e0069}\"}");
    let places: Vec<_> =
        found.iter().map(|finding| (finding.pointer.as_str(), finding.kind.as_str())).collect();
    assert_eq!(places, [("/a/1", "zero-width"), ("/b\u{202e}", "bidi"), ("/t", "tag")]);
    assert_eq!(found.first().map(|finding| finding.code_points.clone()), Some(vec!["U+200B".to_owned()]));
    assert_eq!(found.get(2).and_then(|finding| finding.decoded.clone()).as_deref(), Some("hi"));
    assert_eq!(hidden::findings("not json \u{200b}").len(), 1);
    let many = format!("[{}]", vec!["\"\u{200b}\""; 500].join(","));
    assert_eq!(hidden::findings(&many).len(), 64);
}
