use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::{exposed_name, exposed_prefix};

const MAX: usize = 49;

fn is_accepted(name: &str, max: usize) -> bool {
    (1..=max).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

#[test]
fn clean_names_are_joined_and_stay_as_they_are() {
    assert_eq!(exposed_name("fs", "read_file", MAX), "fs__read_file");
    assert_eq!(exposed_name("my-server_1", "get__all", MAX), "my-server_1__get__all");
    let longest = "t".repeat(MAX - 4);
    assert_eq!(exposed_name("fs", &longest, MAX).len(), MAX);
}

#[test]
fn names_that_models_refuse_become_names_they_take_pr_05() {
    let long = "x".repeat(70);
    let names: HashSet<String> = [("eu.weather", "get/fore.cast"), ("eu.weather", long.as_str())]
        .into_iter()
        .map(|(server, tool)| exposed_name(server, tool, MAX))
        .collect();
    assert_eq!(names.len(), 2);
    for name in &names {
        assert!(is_accepted(name, MAX), "{name}");
        assert!(name.starts_with("eu_weather__"), "{name}");
    }
}

#[test]
fn the_same_pair_always_has_the_same_name_pr_07() {
    // The name is part of what clients store in their settings: it must not change between releases.
    assert_eq!(exposed_name("eu.weather", "get/fore.cast", MAX), "eu_weather__get_fore_cast_dfe7a8d13e");
    assert_eq!(exposed_name("", "", MAX), exposed_name("", "", MAX));
}

#[test]
fn names_that_differ_only_in_their_odd_characters_stay_apart_se_14() {
    let names: HashSet<String> = ["demo.read", "demo/read", "demo read", "demo__read"]
        .into_iter()
        .map(|tool| exposed_name("srv", tool, MAX))
        .collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn no_tool_takes_the_name_of_another_servers_tool_se_16() {
    let trusted = exposed_name("fs", "read_file", MAX);
    assert_eq!(trusted, "fs__read_file");
    for (server, tool) in [
        ("evil", "fs__read_file"),
        ("evil", "read_file"),
        ("fs_", "read_file"),
        ("fs", "_read_file"),
        ("fs__read", "file"),
        ("", "fs__read_file"),
        ("fs__read_file", ""),
        ("f", "s__read_file"),
    ] {
        assert_ne!(exposed_name(server, tool, MAX), trusted, "{server} {tool}");
    }
}

#[test]
fn a_tool_cannot_name_itself_like_a_digested_one() {
    let digested = exposed_name("a", "b.c", MAX);
    let imitation = digested.strip_prefix("a__").unwrap();
    assert_ne!(exposed_name("a", imitation, MAX), digested);
    // Ten characters after an underscore that are not all lowercase hex are an ordinary name.
    assert_eq!(exposed_name("a", "get_0123456789a", MAX), "a__get_0123456789a");
    assert_eq!(exposed_name("a", "get_0123456ABC", MAX), "a__get_0123456ABC");
    assert_ne!(exposed_name("a", "get_0123456abc", MAX), "a__get_0123456abc");
    assert_ne!(exposed_name("a", "0123456789", MAX), "a__0123456789");
}

#[test]
fn a_long_server_leaves_room_for_the_tool() {
    let name = exposed_name(&"s".repeat(64), "create_issue", MAX);
    assert!(name.contains("create_issue"), "{name}");
    assert_eq!(name.len(), MAX);
}

#[test]
fn any_length_gives_a_name_of_that_length() {
    for max in 0..80 {
        let name = exposed_name("some.server", "some/tool", max);
        assert!(is_accepted(&name, max.max(1)), "{max}: {name}");
    }
}

/// Names made of the pieces that a forger would use.
fn adversarial() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "_",
        "__",
        ".",
        "/",
        " ",
        "-",
        "é",
        "fs",
        "read_file",
        "_0123456789",
        "_abcdef0123",
        "中文",
        "\u{200b}",
        "",
    ]);
    proptest::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn unequal_pairs_have_unequal_names(
        pairs in proptest::collection::vec((adversarial(), adversarial()), 2..200),
        max in prop::sample::select(vec![24, 49, 64]),
    ) {
        let mut seen: HashMap<String, (String, String)> = HashMap::new();
        for pair in pairs {
            let name = exposed_name(&pair.0, &pair.1, max);
            prop_assert!(is_accepted(&name, max), "{name}");
            let first = seen.entry(name).or_insert_with(|| pair.clone());
            prop_assert_eq!(&*first, &pair);
        }
    }

    #[test]
    fn a_tool_named_like_any_exposed_name_gets_another(
        server in adversarial(), tool in adversarial(), other in adversarial(), max in 12_usize..65,
    ) {
        let name = exposed_name(&server, &tool, max);
        if (&other, &name) != (&server, &tool) {
            prop_assert_ne!(exposed_name(&other, &name, max), name.clone());
        }
        // Splitting the exposed name at any place and offering the halves as a pair does not give it back,
        // unless the halves are the pair it was made from.
        for (at, _) in name.match_indices("__") {
            let (left, right) = (&name[..at], &name[at + 2..]);
            if (left, right) != (server.as_str(), tool.as_str()) {
                prop_assert_ne!(exposed_name(left, right, max), name.clone());
            }
        }
    }

    #[test]
    fn any_text_at_all_gives_an_accepted_name(server in any::<String>(), tool in any::<String>(), max in 1_usize..65) {
        prop_assert!(is_accepted(&exposed_name(&server, &tool, max), max));
    }
}

#[test]
fn every_exposed_name_begins_with_the_prefix_of_its_server() {
    let long = "s".repeat(64);
    for server in ["fix", "a.b", "a_", "__", "-", long.as_str()] {
        for tool in ["t", "read file", "_x", "\u{fc}", "deadbeef00", &"t".repeat(200), ""] {
            for max in [5, 11, 12, 13, 20, 49, 64] {
                let name = exposed_name(server, tool, max);
                let prefix = exposed_prefix(server, max);
                assert!(name.starts_with(&prefix), "{name} of {server} and {tool}, at most {max}: {prefix}");
            }
        }
    }
}
