//! What the person is told.

use super::{Call, reason};

fn plain() -> Call<'static> {
    Call { server: "github", tool: "create_issue", host_escape: false, destructive: None }
}

#[test]
fn the_question_names_server_and_tool() {
    let text = reason(&plain());
    assert!(text.contains("`github`") && text.contains("`create_issue`"), "{text}");
}

#[test]
fn a_server_that_drives_the_machine_and_a_destructive_tool_are_pointed_out() {
    let text = reason(&Call { host_escape: true, destructive: Some(true), ..plain() });
    assert!(text.contains("real machine") && text.contains("destroy"), "{text}");
}

#[test]
fn a_hint_that_says_harmless_adds_nothing() {
    let harmless = Call { destructive: Some(false), ..plain() };
    assert_eq!(reason(&harmless), reason(&plain()));
}
