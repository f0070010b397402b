use super::{Kind, Limits, Release, check};
use crate::Capabilities;

/// A release that breaks no rule.
pub(crate) fn example() -> Release {
    Release {
        name: "toolgate/ask".to_owned(),
        version: semver::Version::new(0, 1, 0),
        sequence: 1,
        kind: Kind::Policy,
        world: "toolgate:plugin/policy@0.1.0".to_owned(),
        imports: vec!["toolgate:plugin/log@0.1.0".to_owned()],
        exports: vec!["toolgate:plugin/call-hook@0.1.0".to_owned()],
        capabilities: Capabilities::default(),
        decisions: vec!["ask".to_owned(), "deny".to_owned()],
        limits: Limits { memory_bytes: 1 << 20, call_ms: 5, init_ms: 50, host_bytes: 1 << 16 },
        min_host: semver::Version::new(0, 1, 0),
        servers: Vec::new(),
        settings_hosts: Vec::new(),
        settings_schema: None,
        readme: None,
        sbom: None,
        sources: None,
        toolchain: "rustc 1.95.0".to_owned(),
        previous: None,
        published: "2026-11-29T12:00:00Z".to_owned(),
    }
}

/// The field of the first rule that `change` makes the example break.
fn broken(change: impl FnOnce(&mut Release)) -> Option<&'static str> {
    let mut release = example();
    change(&mut release);
    check(&release).err().map(|broken| broken.field)
}

#[test]
fn the_example_breaks_no_rule() {
    assert_eq!(broken(|_| {}), None);
    assert_eq!(broken(|r| r.published = "2028-02-29T23:59:59Z".to_owned()), None);
    assert_eq!(broken(|r| r.name = "a/b".to_owned()), None);
    assert_eq!(
        broken(|r| {
            r.kind = Kind::Adapter;
            r.decisions.clear();
            r.servers = vec!["github".to_owned()];
        }),
        None
    );
}

#[test]
fn names_times_and_lists_have_their_shapes() {
    for name in [
        "",
        "a",
        "/a",
        "a/",
        "a/b/c",
        "A/b",
        "a/-b",
        "a/b-",
        "a/b.c",
        "a /b",
        "ä/b",
        &format!("a/{}", "b".repeat(64)),
    ] {
        assert_eq!(broken(|r| r.name = name.to_owned()), Some("name"), "{name}");
    }
    for published in [
        "2026-11-29T12:00:00",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "2026-11-29T24:00:00Z",
        "2026-11-29T12:60:00Z",
        "2026-11-29T12:00:60Z",
        "2026-11-29t12:00:00z",
        " 2026-11-29T12:00:00Z",
        "٢٠٢٦-11-29T12:00:00Z",
    ] {
        assert_eq!(broken(|r| r.published = published.to_owned()), Some("published"), "{published}");
    }
    let list = |items: &[&str]| items.iter().map(ToString::to_string).collect::<Vec<String>>();
    assert_eq!(broken(|r| r.exports = list(&["b", "a"])), Some("exports"));
    assert_eq!(broken(|r| r.exports = list(&["a", "a"])), Some("exports"));
    assert_eq!(broken(|r| r.decisions = list(&["abstain"])), Some("decisions"));
    assert_eq!(broken(|r| r.decisions = list(&["allow", "ask", "deny", "redact"])), None);
}
