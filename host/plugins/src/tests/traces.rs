//! What an author learns of a guest that ended in a trap.

use toolgate_plugins::{Decision, FaultKind, Hook};

use super::guests::{Source, component, facts, policy};

/// Looks up `/title` in the arguments, writes a line of this level to the log, and traps.
fn panics_after_a_look(level: u32) -> Decision {
    let guest = component(&Source {
        imports: &["documents", "log"],
        exports: &["call-hook"],
        core_imports: r#"
            (import "toolgate:plugin/requests@0.1.0" "[method]request.document" (func $document (param i32 i32)))
            (import "toolgate:plugin/documents@0.1.0" "[method]document.text" (func $text (param i32 i32 i32 i32)))
            (import "toolgate:plugin/log@0.1.0" "write" (func $log (param i32 i32 i32)))"#,
        body: &format!(
            r#"(data (i32.const 1024) "/title") (data (i32.const 1100) "panicked at src/lib.rs:7:5:\nno such row")
            (func (export "toolgate:plugin/call-hook@0.1.0#check") (param i32) (result i32)
              (call $document (local.get 0) (i32.const 64))
              (call $text (i32.load (i32.const 68)) (i32.const 1024) (i32.const 6) (i32.const 80))
              (call $log (i32.const {level}) (i32.const 1100) (i32.const 39))
              unreachable)"#
        ),
    });
    policy(&guest).check(Hook::Call, &facts())
}

#[test]
fn a_panic_reaches_the_author_with_its_message_the_hook_and_the_pointer_it_read_last() {
    let Decision::Deny { fault: Some(fault), .. } = panics_after_a_look(3) else { panic!("it must deny") };
    assert_eq!(fault.kind, FaultKind::Trap);
    for part in ["in `call`", "`/title`", "panicked at src/lib.rs:7:5: no such row"] {
        assert!(fault.detail.contains(part), "{part} is missing in: {fault}");
    }
}

#[test]
fn only_a_line_of_level_error_is_taken_for_a_panic() {
    let Decision::Deny { fault: Some(fault), .. } = panics_after_a_look(2) else { panic!("it must deny") };
    assert!(!fault.detail.contains("no such row"), "{fault}");
    assert!(fault.detail.contains("`/title`"), "{fault}");
}
