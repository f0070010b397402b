//! What of a document stays in a recording.

use toolgate_config::Server;

use super::{clean, file_name};

fn cleaned(text: &str) -> String {
    clean(&Server::stdio("notes", "notes-server", Vec::new()), text)
}

#[test]
fn what_is_named_or_begins_like_a_secret_is_taken_out_and_every_other_byte_stays() {
    let text = r#"{"q":"cats", "n":123456789012345678901234567890,"password":"hunter22","a":[{"api_key":"k-1234"}],"t":"ghp_0123456789"}"#;
    let expected = r#"{"q":"cats", "n":123456789012345678901234567890,"password":"***","a":[{"api_key":"***"}],"t":"***"}"#;
    assert_eq!(cleaned(text), expected);
}

#[test]
fn a_schema_that_describes_a_password_keeps_its_words() {
    let text = r#"{"properties":{"password":{"type":"string","description":"the password"}}}"#;
    assert_eq!(cleaned(text), text);
}

#[test]
fn a_name_of_a_tool_leads_out_of_no_directory() {
    assert_eq!(file_name("../../etc/passwd"), ".._.._etc_passwd");
    assert_eq!(file_name("read_note"), "read_note");
}
