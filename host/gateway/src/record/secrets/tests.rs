//! What of a document stays in a recording.

use toolgate_config::Server;

use super::super::file_name;
use super::cleaned;

fn clean(text: &str) -> String {
    cleaned(&Server::stdio("notes", "notes-server", Vec::new()), text)
}

#[test]
fn what_is_named_or_begins_like_a_secret_is_taken_out_and_every_other_byte_stays() {
    let text = r#"{"q":"cats", "n":123456789012345678901234567890,"password":"hunter22","a":[{"api_key":"k-1234"}],"t":"ghp_0123456789"}"#;
    let expected = r#"{"q":"cats", "n":123456789012345678901234567890,"password":"***","a":[{"api_key":"***"}],"t":"***"}"#;
    assert_eq!(clean(text), expected);
}

#[test]
fn a_token_in_the_middle_of_a_text_is_taken_out_and_the_words_around_it_stay() {
    for (text, expected) in [
        ("use ghp_0123456789abcdef, please", "use ***, please"),
        ("it is (ghp_0123456789abcdef).", "it is (***)."),
        ("curl -H \\\"Authorization: Bearer abc.def-1\\\" x", "curl -H \\\"Authorization: Bearer ***\\\" x"),
        ("GET /x?api_key=abcd&q=cats", "GET /x?api_key=***&q=cats"),
        ("password: 'my secret phrase', user: me", "password: '***', user: me"),
        ("token=${PW}", "token=***{PW}"),
        ("PASSWORD = hunter22 and more", "PASSWORD = *** and more"),
        ("at https://me:hunter22@example.com/x", "at https://***@example.com/x"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln is one", "*** is one"),
        ("the password of the house", "the password of the house"),
        ("a token: yes", "a token: ***"),
        ("Basic training for all", "Basic training for all"),
        ("send Basic bWU6aHVudGVyMjI", "send Basic ***"),
        ("sk-1 is short", "sk-1 is short"),
    ] {
        assert_eq!(clean(&format!("[\"{text}\"]")), format!("[\"{expected}\"]"));
    }
}

#[test]
fn digits_under_the_name_of_a_secret_are_one_and_a_count_of_tokens_is_none() {
    let text =
        r#"{"password":"12345678","passwd":9876,"secrets":["abc",7],"max_tokens":4096,"token_count":"12"}"#;
    let expected =
        r#"{"password":"***","passwd":0,"secrets":["***",0],"max_tokens":4096,"token_count":"12"}"#;
    assert_eq!(clean(text), expected);
}

#[test]
fn json_inside_a_text_is_looked_at_as_json() {
    let text = r#"{"content":[{"type":"text","text":"{\"user\":\"me\", \"password\":\"hunter22\",\"t\":\"x ghp_0123456789\"}"}]}"#;
    let expected =
        r#"{"content":[{"type":"text","text":"{\"user\":\"me\", \"password\":\"***\",\"t\":\"x ***\"}"}]}"#;
    assert_eq!(clean(text), expected);
    // Deeper than anybody nests on purpose, it is gone whole.
    let mut deep = r#"{"password":"hunter22"}"#.to_owned();
    for _ in 0..7 {
        deep = serde_json::json!({ "in": deep }).to_string();
    }
    assert!(!clean(&deep).contains("hunter22"));
}

#[test]
fn a_private_key_is_taken_out_whole() {
    let text = r#"{"a":"it is -----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----\n"}"#;
    assert_eq!(clean(text), r#"{"a":"***"}"#);
}

#[test]
fn a_schema_that_describes_a_password_keeps_its_words() {
    let text = r#"{"properties":{"password":{"type":"string","description":"the password"}}}"#;
    assert_eq!(clean(text), text);
}

#[test]
fn a_name_of_a_tool_leads_out_of_no_directory() {
    assert_eq!(file_name("../../etc/passwd"), ".._.._etc_passwd");
    assert_eq!(file_name("read_note"), "read_note");
}
