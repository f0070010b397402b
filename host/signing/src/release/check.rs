//! The rules for the values in a release. Each refusal names the field.

use super::{Kind, Release};

/// The decisions there are, beside abstaining, which needs no authority.
const DECISIONS: [&str; 4] = ["allow", "ask", "deny", "redact"];

/// Longest name of a plugin's namespace, and of the plugin in it.
const MAX_NAME_PART: usize = 63;

/// A field of a release whose value breaks a rule.
pub(crate) struct Broken {
    /// The field, as it is written.
    pub(crate) field: &'static str,
    /// The rule.
    pub(crate) rule: &'static str,
}

/// Checks every field that its type alone does not.
pub(crate) fn check(release: &Release) -> Result<(), Broken> {
    let policy = release.kind == Kind::Policy;
    let adapter = release.kind == Kind::Adapter;
    let rules = [
        ("name", is_plugin_name(&release.name), "`namespace/name` of lowercase letters, digits and `-`"),
        ("sequence", release.sequence > 0, "at least 1"),
        (
            "world",
            is_interface(&release.world),
            "a WIT name with its version, as `toolgate:plugin/policy@0.1.0`",
        ),
        ("imports", is_set(&release.imports), "sorted, each once"),
        ("exports", is_set(&release.exports), "sorted, each once"),
        ("servers", is_set(&release.servers), "sorted, each once"),
        ("servers", adapter || release.servers.is_empty(), "empty unless the kind is adapter"),
        ("decisions", is_set(&release.decisions), "sorted, each once"),
        (
            "decisions",
            release.decisions.iter().all(|d| DECISIONS.contains(&d.as_str())),
            "allow, ask, deny, redact",
        ),
        ("decisions", policy || release.decisions.is_empty(), "empty unless the kind is policy"),
        ("settings_hosts", is_set(&release.settings_hosts), "sorted, each once"),
        ("settings_hosts", release.settings_hosts.iter().all(|p| p.starts_with('/')), "RFC 6901 pointers"),
        ("toolchain", !release.toolchain.is_empty(), "not empty"),
        ("published", is_instant(&release.published), "a UTC time as `2026-11-29T12:00:00Z`"),
    ];
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        Some((field, _, rule)) => Err(Broken { field, rule }),
        None => Ok(()),
    }
}

fn is_plugin_name(name: &str) -> bool {
    let part = |part: &str| {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        (1..=MAX_NAME_PART).contains(&part.len())
            && part.bytes().all(plain)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    name.split_once('/').is_some_and(|(namespace, name)| part(namespace) && part(name))
}

fn is_interface(name: &str) -> bool {
    name.split_once('@').is_some_and(|(path, version)| {
        path.contains(':') && path.contains('/') && semver::Version::parse(version).is_ok()
    })
}

fn is_set(list: &[String]) -> bool {
    list.is_sorted_by(|left, right| left < right)
}

/// `YYYY-MM-DDTHH:MM:SSZ` with each number in its range.
fn is_instant(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    let number = |from: usize, to: usize| text.get(from..to).and_then(|digits| digits.parse::<u32>().ok());
    let within = |from: usize, least: u32, most: u32| {
        number(from, from + 2).is_some_and(|value| (least..=most).contains(&value))
    };
    let days = match (number(0, 4), number(5, 7)) {
        (Some(year), Some(2)) if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        (_, Some(2)) => 28,
        (_, Some(4 | 6 | 9 | 11)) => 30,
        _ => 31,
    };
    shape == "0000-00-00T00:00:00Z"
        && within(5, 1, 12)
        && within(8, 1, days)
        && within(11, 0, 23)
        && within(14, 0, 59)
        && within(17, 0, 59)
}
