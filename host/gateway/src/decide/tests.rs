//! The combination of decisions; how real policies are asked is tested with real components, on the
//! built binary.

use super::*;

fn said(plugin: &str, decision: Decision) -> PolicyDecision {
    PolicyDecision {
        plugin: plugin.into(),
        digest: Digest::of(plugin.as_bytes()),
        fallback: false,
        monitored: false,
        decision,
    }
}

fn allow() -> PolicyDecision {
    said("a", Decision::Allow { reason: "allowed".into() })
}

fn ask() -> PolicyDecision {
    said("b", Decision::Ask { reason: "asked".into() })
}

fn deny() -> PolicyDecision {
    said("c", Decision::Deny { reason: "denied".into(), fault: None })
}

fn abstain() -> PolicyDecision {
    said("d", Decision::Abstain)
}

fn redact() -> PolicyDecision {
    said("e", Decision::Redact(Redaction::HiddenText))
}

fn facts() -> Arc<Facts> {
    Arc::new(Facts { persona: "p".into(), server: "s".into(), ..Facts::default() })
}

// FM-14
#[test]
fn deny_wins_over_ask_and_ask_over_allow_in_any_order() {
    assert_eq!(combine(Hook::Call, vec![allow(), ask(), deny()]).ruling, Ruling::Deny);
    assert_eq!(combine(Hook::Call, vec![deny(), ask(), allow()]).ruling, Ruling::Deny);
    let asked = combine(Hook::Call, vec![allow(), abstain(), ask()]);
    assert_eq!((asked.ruling, asked.by.as_deref()), (Ruling::Ask, Some("b")));
    assert_eq!(combine(Hook::Call, vec![abstain(), allow()]).ruling, Ruling::Allow);
}

#[test]
fn what_nobody_allows_is_denied_by_the_host() {
    for hook in Hook::ALL.into_iter().filter(|hook| *hook != Hook::Result) {
        let verdict = combine(hook, vec![abstain(), abstain()]);
        assert_eq!((verdict.ruling, verdict.by), (Ruling::Deny, None), "{hook:?}");
    }
}

#[test]
fn with_no_policy_loaded_nothing_passes() {
    let binding = Binding::of(&["s".to_owned()], "s", None, None);
    let verdict = decide(&PluginSet::default(), &binding, Hook::Call, &facts());
    assert_eq!(verdict.ruling, Ruling::Deny);
    let listed = decide_list(&PluginSet::default(), &binding, &[facts(), facts()]);
    assert_eq!(listed.iter().map(|verdict| verdict.ruling).collect::<Vec<_>>(), [Ruling::Deny, Ruling::Deny]);
}

#[test]
fn scp_002_a_server_that_is_not_bound_is_refused_before_any_policy_is_asked() {
    let bound = ["s".to_owned()];
    for binding in [
        Binding::of(&[], "s", None, None),
        Binding::of(&bound, "t", None, None),
        Binding::of(&bound, "s", Some("t"), None),
    ] {
        let verdict = decide(&PluginSet::default(), &binding, Hook::Call, &facts());
        assert_eq!(verdict.ruling, Ruling::Deny);
        assert!(
            verdict.decisions.is_empty() && verdict.reason.contains("has no server"),
            "{}",
            verdict.reason
        );
    }
}

#[test]
fn a_redaction_is_no_permission_and_rides_along_with_one() {
    assert_eq!(combine(Hook::List, vec![redact()]).ruling, Ruling::Deny);
    let shown = combine(Hook::List, vec![allow(), redact()]);
    assert_eq!((shown.ruling, shown.redactions.len()), (Ruling::Allow, 1));
}

#[test]
fn a_result_passes_unless_a_policy_takes_it_back_and_cannot_be_asked_about() {
    assert_eq!(combine(Hook::Result, vec![abstain()]).ruling, Ruling::Allow);
    assert_eq!(combine(Hook::Result, vec![ask()]).ruling, Ruling::Deny);
    assert_eq!(combine(Hook::Result, vec![deny()]).ruling, Ruling::Deny);
}
