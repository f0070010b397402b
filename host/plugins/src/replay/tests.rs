//! Documents, and what guests answer to them.

use std::sync::Arc;

use serde_json::json;
use toolgate_signing::Kind;

use super::{Moment, Recorded, compare, replay, trial};
use crate::tests::guests::{call_policy, facts, release, says};
use crate::{Admission, DecisionSet, Hook, HostOptions, Outcome, PluginHost};

fn ask(component: &[u8], documents: &[Recorded]) -> Vec<Outcome> {
    let host = PluginHost::new(HostOptions::default()).unwrap();
    let verified = trial(&release(Kind::Policy, component), component).unwrap();
    let admission = Admission { decisions: DecisionSet::ALL, ..Admission::default() };
    replay(&host, component, &verified, &admission, documents).unwrap()
}

fn call(name: &str) -> Recorded {
    Recorded::new(name, Moment::Policy(Hook::Call), facts())
}

#[test]
fn a_document_keeps_every_fact_and_every_byte_of_what_it_is_about() {
    let mut about = (*facts()).clone();
    about.document = Some(crate::Document::new(r#"{"n":123456789012345678901234567890,"x":  [1,2]}"#));
    about.pin = crate::PinState::Differs;
    about.destructive_hint = Some(true);
    let written = Recorded::new("one", Moment::Arguments, Arc::new(about.clone())).to_text().unwrap();
    let read = Recorded::parse("one", &written).unwrap();
    assert_eq!(read.moment(), &Moment::Arguments);
    assert_eq!(format!("{:?}", read.facts()), format!("{:?}", Arc::new(about)));
}

#[test]
fn a_document_of_another_format_with_an_unknown_member_or_hook_is_refused() {
    for (text, word) in [
        (r#"{"format":2,"hook":"call"}"#, "format 2"),
        (r#"{"format":1,"hook":"call","reqest":{}}"#, "reqest"),
        (r#"{"format":1,"hook":"calls"}"#, "no hook"),
        (r#"{"format":1,"hook":"search"}"#, "input"),
        (r#"{"format":1,"hook":"call","request":{"pin":"fine"}}"#, "fine"),
    ] {
        let error = Recorded::parse("one", text).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("one"), "{error}");
    }
}

#[test]
fn a_plugin_answers_the_documents_that_it_is_asked_about_and_no_others() {
    let documents = [call("a"), Recorded::new("b", Moment::Arguments, facts())];
    let outcomes = ask(&call_policy(&says(3)), &documents);
    assert_eq!(outcomes[0].answer, Some(json!({ "decision": "deny", "reason": "yes" })));
    assert_eq!((&outcomes[1].answer, &outcomes[1].fault), (&None, &None));
}

#[test]
fn a_fault_is_told_and_does_not_speak_for_the_documents_after_it() {
    let documents: Vec<Recorded> = (0..7).map(|number| call(&number.to_string())).collect();
    for outcome in ask(&call_policy("unreachable"), &documents) {
        assert_eq!(outcome.answer.as_ref().unwrap()["fault"], "trap", "{outcome:?}");
    }
}

#[test]
fn two_versions_are_compared_document_by_document() {
    let documents = [call("a"), Recorded::new("b", Moment::Arguments, facts())];
    let (old, new) = (ask(&call_policy(&says(3)), &documents), ask(&call_policy(&says(1)), &documents));
    let differences = compare(&old, &new);
    assert_eq!(differences.len(), 1);
    assert_eq!(differences[0].name, "a");
    assert_eq!(differences[0].new, Some(json!({ "decision": "allow", "reason": "yes" })));
    assert!(compare(&old, &old).is_empty());
}
