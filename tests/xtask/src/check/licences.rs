//! Every package has a licence that the project may ship with.

use crate::check::Finding;
use crate::metadata::{Metadata, Package};

/// SPDX ids, exceptions spelt with their `WITH`.
const ALLOWED: [&str; 15] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Every package of both workspaces whose licence is absent or not allowed.
pub(super) fn check(host: &Metadata, guests: &Metadata) -> Vec<Finding> {
    host.resolved().chain(guests.resolved()).filter_map(of_package).collect()
}

fn of_package(package: &Package) -> Option<Finding> {
    let place = format!("{} {}", package.name, package.version);
    let Some(licence) = &package.license else {
        let file = package.license_file.as_deref().unwrap_or("none");
        return Some(Finding::new(place, format!("states no SPDX licence (license-file: {file})")));
    };
    (!allowed(licence))
        .then(|| Finding::new(place, format!("licence `{licence}` is not among those allowed")))
}

/// Whether an SPDX expression can be met with allowed licences alone. The old `MIT/Apache-2.0`
/// means OR.
fn allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let met = either(&mut words);
    met && words.peek().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

/// One or more terms joined by OR, which binds least.
fn either(words: &mut Words) -> bool {
    let mut met = both(words);
    while words.next_if_eq(&"OR").is_some() {
        met |= both(words);
    }
    met
}

/// One or more terms joined by AND.
fn both(words: &mut Words) -> bool {
    let mut met = term(words);
    while words.next_if_eq(&"AND").is_some() {
        met &= term(words);
    }
    met
}

/// A licence, with its exception, or an expression in parentheses.
fn term(words: &mut Words) -> bool {
    match words.next() {
        Some("(") => {
            let met = either(words);
            words.next_if_eq(&")").is_some() && met
        }
        Some(id) if words.next_if_eq(&"WITH").is_some() => {
            words.next().is_some_and(|exception| ALLOWED.contains(&format!("{id} WITH {exception}").as_str()))
        }
        Some(id) => ALLOWED.contains(&id),
        None => false,
    }
}

#[cfg(test)]
mod tests;
