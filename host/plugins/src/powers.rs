//! What a release may do, in plain words, and how far one may do more than another.
//!
//! Contract: the words come from the signed statement alone, whose imports and exports are compared with
//! the binary when it is loaded. Each power has a key; a release widens another if it has a key more or
//! a larger limit. What is only described differently widens nothing.

use std::collections::BTreeMap;

use toolgate_signing::{Access, Kind, Release};

use crate::limits::Limits;
use crate::meaning;

/// One thing that a plugin may do.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Power {
    /// What it is about: `import`, `hook`, `decision`, `http`, `secret`, `kv`, `files`, `host setting`,
    /// `server` or `limit`.
    pub about: &'static str,
    /// A sentence for the operator. Names in it come from the author and are escaped by whoever prints.
    pub words: String,
}

/// Everything that a release may do, by a key that two releases can be compared by.
pub fn powers(release: &Release) -> BTreeMap<String, Power> {
    let mut all = BTreeMap::new();
    let mut add = |key: String, about: &'static str, words: String| {
        all.insert(key, Power { about, words });
    };
    for import in &release.imports {
        let words = meaning::of_interface(import)
            .map_or_else(|| format!("use the interface {import}"), str::to_owned);
        add(format!("import {}", plain(import)), "import", words);
    }
    for export in &release.exports {
        let words = meaning::of_interface(export)
            .map_or_else(|| format!("be asked at {}", short(export)), str::to_owned);
        add(format!("hook {}", plain(export)), "hook", words);
    }
    for decision in &release.decisions {
        let words = meaning::of_decision(decision).unwrap_or(decision);
        add(format!("decision {decision}"), "decision", words.to_owned());
    }
    capabilities(release, &mut add);
    for pointer in &release.settings_hosts {
        add(
            format!("settings-host {pointer}"),
            "host setting",
            format!("reach the host that your settings name at {pointer}"),
        );
    }
    if release.kind == Kind::Adapter {
        for server in &release.servers {
            add(format!("server {server}"), "server", format!("change arguments and results of {server}"));
        }
    }
    all
}

/// What `new` may do and `old` may not, in words; nothing where it may do no more.
pub fn widening(old: &Release, new: &Release) -> Vec<Power> {
    let (before, after) = (powers(old), powers(new));
    let mut wider: Vec<Power> =
        after.into_iter().filter(|(key, _)| !before.contains_key(key)).map(|(_, power)| power).collect();
    for ((what, unit, was), (_, _, is)) in numbers(old).into_iter().zip(numbers(new)) {
        if is > was {
            wider.push(Power { about: "limit", words: format!("{what}: {is} {unit} instead of {was}") });
        }
    }
    wider
}

/// The limits that the host gives: what is asked for beyond them is not given and widens nothing.
fn numbers(release: &Release) -> [(&'static str, &'static str, u128); 4] {
    let limits = Limits::clamped(release);
    [
        ("memory", "bytes", limits.memory as u128),
        ("one host call", "bytes", limits.host_bytes as u128),
        ("running time of a call", "ms", limits.call.as_millis()),
        ("running time of a start", "ms", limits.init.as_millis()),
    ]
}

fn capabilities(release: &Release, add: &mut dyn FnMut(String, &'static str, String)) {
    let asked = &release.capabilities;
    for (label, http) in &asked.http {
        for host in &http.hosts {
            for method in &http.methods {
                let words = format!("send {} requests to {host} (`{label}`)", method.to_uppercase());
                add(format!("http {label} {method} {host}"), "http", words);
            }
        }
        let bytes = http.max_response.unwrap_or(0);
        if bytes > 0 {
            add(
                format!("http {label} response {bytes:020}"),
                "http",
                format!("read answers of up to {bytes} bytes (`{label}`)"),
            );
        }
    }
    for (label, secret) in &asked.secrets {
        for host in &secret.send_to {
            let words = format!("send the secret `{label}` ({}) to {host}", secret.purpose);
            add(format!("secret {label} {host}"), "secret", words);
        }
        if secret.reveal {
            add(
                format!("reveal {label}"),
                "secret",
                format!("SEE the secret `{label}` ({})", secret.purpose),
            );
        }
    }
    for (label, kv) in &asked.kv {
        let words = format!("keep up to {} bytes in `{label}`", kv.max_bytes);
        add(format!("kv {label} {:020}", kv.max_bytes), "kv", words);
    }
    for (label, files) in &asked.files {
        let what = match files.access {
            Access::Read => "read",
            Access::Write => "read and CHANGE",
        };
        add(
            format!("files {label} {what}"),
            "files",
            format!("{what} files in the directory that you bind to `{label}`"),
        );
    }
}

/// Without the version: a newer version of an interface that was there is not a power more.
fn plain(name: &str) -> &str {
    name.split('@').next().unwrap_or(name)
}

fn short(name: &str) -> &str {
    plain(name).rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests;
