use super::*;

fn read(text: &str) -> Vec<(String, String)> {
    parse(text).unwrap().into_iter().map(|(name, value)| (name, value.expose().to_owned())).collect()
}

#[test]
fn lines_are_names_and_values() {
    let text = "# a comment\n\nA=1\nexport B = two words  # not part\nC='it # is $X'\nD=\"a\\nb\\\"c\\$\" # end\nE=\nF=a#b\r\n";
    let expected =
        [("A", "1"), ("B", "two words"), ("C", "it # is $X"), ("D", "a\nb\"c$"), ("E", ""), ("F", "a#b")];
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(read(text), expected);
}

#[test]
fn a_broken_line_is_named_by_number_alone_se_12() {
    for text in ["A=1\nsk-9f\n", "A=1\n1B=sk-9f\n", "A=1\nB=\"sk-9f\n", "A=1\nB='sk-9f' x\n"] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.line, 2, "{text}");
        assert!(!format!("{error:?}").contains("sk-9f"), "{text}");
    }
}

#[test]
fn what_is_written_is_read_back() {
    for value in
        ["", "plain", "with \"quotes\" and \\", "$HOME ${X} $$", "a\nb\r\tc", "  spaces  # x ", "ünïcode"]
    {
        let written = line("NAME", &Secret::new(value));
        assert_eq!(written.expose().lines().count(), 1);
        assert_eq!(read(written.expose()), [("NAME".to_owned(), value.to_owned())]);
    }
}
