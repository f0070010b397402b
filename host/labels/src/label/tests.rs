use proptest::prelude::*;

use super::{Label, LabelError, MAX_LABEL, Pattern};

fn covers(pattern: &str, label: &str) -> bool {
    Pattern::parse(pattern).unwrap().covers(&Label::parse(label).unwrap())
}

#[test]
fn every_label_of_the_documented_example_parses_cap_005_cap_006() {
    for text in [
        "memory.access:thread",
        "net.http:egress",
        "channel.send:my-telegram",
        "schedule.manage:own",
        "subagent.invoke",
        "subagent.background",
        "db.query:own",
        "fs.read",
        "fs.write",
        "mcp.call:github/create_issue",
        "mcp.call:files/a/b: c",
    ] {
        let label = Label::parse(text).unwrap();
        assert_eq!(label.to_string(), text);
        assert_eq!(Pattern::parse(text).unwrap().as_str(), text);
        assert!(covers(text, text), "{text}");
    }
}

#[test]
fn the_parts_are_domain_action_and_scope() {
    let label = Label::parse("mcp.call:files/a/b: c").unwrap();
    assert_eq!((label.domain(), label.action(), label.scope()), ("mcp", "call", Some("files/a/b: c")));
    assert_eq!(Label::parse("fs.read").unwrap().scope(), None);
    assert_eq!(
        Label::new("mcp", "call", "github/x").unwrap(),
        Label::for_server("call", "github", "x").unwrap()
    );
    assert_eq!(Label::new("fs", "read", "").unwrap().as_str(), "fs.read");
}

#[test]
fn a_wildcard_scope_covers_any_scope_cap_020() {
    assert!(covers("channel.send:*", "channel.send:my-telegram"));
    assert!(covers("channel.send:*", "channel.send:a/b"));
    assert!(covers("mcp.call:*", "mcp.call:github/create_issue"));
    assert!(!covers("channel.send:*", "channel.read:my-telegram"));
    assert!(!covers("channel.send:*", "channels.send:my-telegram"));
    assert!(!covers("subagent.invoke:*", "subagent.invoke"));
}

#[test]
fn a_name_covers_that_name_only_cap_021_ft_06() {
    assert!(covers("channel.send:my-telegram", "channel.send:my-telegram"));
    for other in [
        "channel.send:my-telegram2",
        "channel.send:my-tele",
        "channel.send:My-Telegram",
        "channel.send:my-telegram ",
        "channel.send:my-telegram/x",
        "channel.send",
    ] {
        assert!(!covers("channel.send:my-telegram", other), "{other}");
    }
    assert!(!covers("persona.send", "persona.send:x"));
    assert!(!covers("persona.send:x", "persona.send"));
}

#[test]
fn cap_009_cap_010_a_channel_is_named_or_all_are_meant() {
    assert!(covers("channel.send:team", "channel.send:team"));
    assert!(!covers("channel.send:team", "channel.send:other"));
    assert!(!covers("channel.send:team", "channel.send:team-2"));
    assert!(covers("channel.send:*", "channel.send:team") && covers("channel.send:*", "channel.send:other"));
}

#[test]
fn cap_011_cap_012_cap_013_cap_014_the_scope_says_whose_and_no_label_stands_for_another() {
    let labels = ["schedule.manage:own", "memory.access:thread", "net.http:egress", "db.query:own"];
    for (number, label) in labels.iter().enumerate() {
        for (other, asked) in labels.iter().enumerate() {
            assert_eq!(covers(label, asked), number == other, "{label} {asked}");
        }
        let (whole, _) = label.split_once(':').unwrap();
        assert!(!covers(label, whole) && !covers(label, &format!("{whole}:all")), "{label}");
    }
}

#[test]
fn cap_015_cap_016_cap_017_cap_018_a_label_without_scope_is_that_one_action() {
    let labels = ["subagent.invoke", "subagent.background", "fs.read", "fs.write"];
    for (number, label) in labels.iter().enumerate() {
        for (other, asked) in labels.iter().enumerate() {
            assert_eq!(covers(label, asked), number == other, "{label} {asked}");
        }
        assert!(!covers(label, &format!("{label}:anything")), "{label}");
    }
}

#[test]
fn cap_019_a_wildcard_sends_to_every_persona_and_opens_nothing_else() {
    assert!(
        covers("persona.send:*", "persona.send:coder") && covers("persona.send:*", "persona.send:writer")
    );
    assert!(!covers("persona.send:*", "persona.list:coder"));
    assert!(!covers("persona.send:coder", "persona.send:writer"));
}

#[test]
fn a_server_covers_all_its_tools_and_no_other_server() {
    for pattern in ["mcp.call:github", "mcp.call:github/*"] {
        assert!(covers(pattern, "mcp.call:github/create_issue"), "{pattern}");
        assert!(covers(pattern, "mcp.call:github/a/b"), "{pattern}");
        assert!(!covers(pattern, "mcp.call:github2/create_issue"), "{pattern}");
        assert!(!covers(pattern, "mcp.call:git/hub"), "{pattern}");
        assert!(!covers(pattern, "mcp.read:github/create_issue"), "{pattern}");
    }
    assert!(covers("mcp.connect:github", "mcp.connect:github"));
    assert!(!covers("mcp.connect:github/*", "mcp.connect:github"));
    assert!(covers("mcp.call:github/a", "mcp.call:github/a"));
    assert!(!covers("mcp.call:github/a", "mcp.call:github/a/b"));
    assert!(!covers("mcp.call:github/a", "mcp.call:github"));
}

#[test]
fn names_that_look_alike_are_different_labels_se_14() {
    let granted = "mcp.call:fs/demo.read";
    for other in ["demo/read", "demo read", "demo__read", "Demo.read", "demo.read "] {
        assert!(!covers(granted, &format!("mcp.call:fs/{other}")), "{other}");
    }
}

#[test]
fn what_does_not_parse_is_an_error_and_says_why_ft_12() {
    let shape = |text: &str| matches!(Label::parse(text), Err(LabelError::Shape(_)));
    assert!(shape("") && shape("mcp") && shape("mcp:call") && shape("a.b.c:d"));
    let word = |text: &str| matches!(Label::parse(text), Err(LabelError::Word(_)));
    assert!(word("Mcp.call") && word(".call") && word("mcp.") && word("mcp .call") && word("*.call"));
    for text in ["a.b:", "a.b:/x", "a.b:x/", "a.b:/"] {
        assert_eq!(Label::parse(text), Err(LabelError::EmptyScope), "{text}");
        assert_eq!(Pattern::parse(text), Err(LabelError::EmptyScope), "{text}");
    }
    assert_eq!(Pattern::parse("a.b:/*"), Err(LabelError::EmptyScope));
    for text in ["a.b:x*", "a.b:*x", "a.b:x/y*", "a.b:*/x", "a.b:*/*", "a.b:x/y/*", "a.b:**"] {
        assert_eq!(Pattern::parse(text), Err(LabelError::Wildcard), "{text}");
    }
    assert_eq!(Label::parse("mcp.call:*"), Err(LabelError::Wildcard));
    assert_eq!(Label::for_server("call", "x", "*"), Err(LabelError::Wildcard));
    assert_eq!(Label::parse("a.b:c\u{1b}d"), Err(LabelError::Control(0x1b)));
    assert_eq!(
        Label::parse(&format!("a.b:{}", "x".repeat(MAX_LABEL))),
        Err(LabelError::TooLong(MAX_LABEL + 4))
    );
    let message = Label::parse("bad\u{1b}[2J").unwrap_err().to_string();
    assert!(!message.contains('\u{1b}'), "{message}");
}

#[test]
fn parts_cannot_be_shifted_through_the_constructors() {
    assert!(Label::new("mcp.call:x", "y", "z").is_err());
    assert!(Label::new("mcp", "call:x", "z").is_err());
    assert!(Label::for_server("call", "a/b", "c").is_err());
}

proptest! {
    /// One grammar for both types (FT-04): a text is a label exactly if it is a pattern without `*`.
    #[test]
    fn labels_and_patterns_agree_on_the_grammar(text in "[a-c.:/* _A-]{0,12}|[a-c]{1,2}\\.[a-c]{1,2}(:[a-c/* .:]{0,6})?") {
        let as_label = Label::parse(&text);
        let as_pattern = Pattern::parse(&text);
        if text.contains('*') {
            prop_assert!(as_label.is_err());
        } else {
            prop_assert_eq!(as_label.is_ok(), as_pattern.is_ok());
            if let (Ok(label), Ok(pattern)) = (as_label, as_pattern) {
                prop_assert!(pattern.covers(&label));
                prop_assert_eq!(label.to_string(), text);
            }
        }
    }

    /// Outside the wildcards and the domain `mcp` nothing covers anything but itself.
    #[test]
    fn a_plain_pattern_covers_only_itself(left in "[ab]\\.[ab](:[ab/]{1,3})?", right in "[ab]\\.[ab](:[ab/]{1,3})?") {
        if let (Ok(pattern), Ok(label)) = (Pattern::parse(&left), Label::parse(&right)) {
            prop_assert_eq!(pattern.covers(&label), left == right);
        }
    }

    #[test]
    fn any_tool_name_without_star_or_control_has_a_label(tool in "[^*\\p{Cc}]{1,40}") {
        let label = Label::for_server("call", "github", &tool).unwrap();
        prop_assert!(Pattern::parse("mcp.call:github/*").unwrap().covers(&label));
        prop_assert!(!Pattern::parse("mcp.call:git").unwrap().covers(&label));
    }
}
