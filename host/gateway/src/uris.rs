//! URIs of resources: which server is meant, and how a URI that two servers claim is told apart.
//!
//! Most URIs pass as they are. One that two servers of a caller list is shown rewritten for both, as
//! `<scheme>://toolgate.<server>/<rest>`, where `<rest>` is all that follows the scheme's colon: the
//! scheme stays (a client knows `ui:` by it), a template still expands, and the original can be read
//! back (design.md 9a, "Merging").
//!
//! Threat: a server that lists a URI of that form to be taken for another. Such a URI is always
//! rewritten itself, so that what a client sees names the server that listed it.
//!
//! Bounds: templates are matched in time proportional to the product of both lengths, and not at all
//! above [`MAX_URI`] bytes.

use std::collections::{HashMap, HashSet};

/// Longest URI that is compared with templates, in bytes.
const MAX_URI: usize = 8 * 1024;
/// Begins the authority of a rewritten URI.
const AUTHORITY: &str = "toolgate.";
/// Stands for the scheme of what a server lists as a URI and is none.
const SCHEMELESS: &str = "x-toolgate";

/// The URIs (and templates) that more than one server of a caller lists.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    twice: HashSet<String>,
}

impl Claims {
    /// Finds them in `(server, uri)` pairs.
    pub(crate) fn among<'a>(listed: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut owners: HashMap<&str, &str> = HashMap::new();
        let mut twice = HashSet::new();
        for (server, uri) in listed {
            if *owners.entry(uri).or_insert(server) != server {
                twice.insert(uri.to_owned());
            }
        }
        Self { twice }
    }

    /// Whether no URI has to be told apart by its text alone.
    pub(crate) fn none(&self) -> bool {
        self.twice.is_empty()
    }

    /// The URI as a client sees it; `None` where it stays.
    pub(crate) fn rewritten(&self, server: &str, uri: &str) -> Option<String> {
        rewritten_where(self.twice.contains(uri), server, uri)
    }
}

/// The URI as a client sees it, where it is known whether two servers list it; `None` where it stays.
pub(crate) fn rewritten_where(twice: bool, server: &str, uri: &str) -> Option<String> {
    (twice || is_rewritten(uri)).then(|| rewrite(server, uri))
}

/// Server and original URI of a rewritten one.
pub(crate) fn original(uri: &str) -> Option<(&str, String)> {
    let (scheme, rest) = uri.split_once("://")?;
    let (server, rest) = rest.strip_prefix(AUTHORITY)?.split_once('/')?;
    let original = if scheme == SCHEMELESS { rest.to_owned() } else { format!("{scheme}:{rest}") };
    Some((server, original))
}

fn is_rewritten(uri: &str) -> bool {
    original(uri).is_some()
}

/// The form that names its server.
pub(crate) fn rewrite(server: &str, uri: &str) -> String {
    match uri.split_once(':') {
        Some((scheme, rest)) => format!("{scheme}://{AUTHORITY}{server}/{rest}"),
        None => format!("{SCHEMELESS}://{AUTHORITY}{server}/{uri}"),
    }
}

/// Whether a URI template (RFC 6570) can expand to a URI. Without an operator an expression stands for
/// any text without `/`, with one for any text.
pub(crate) fn matches(template: &str, uri: &str) -> bool {
    if template.len() > MAX_URI || uri.len() > MAX_URI {
        return false;
    }
    let uri = uri.as_bytes();
    // The ends of all prefixes of the URI that what was read of the template can expand to.
    let mut ends = vec![false; uri.len() + 1];
    if let Some(first) = ends.first_mut() {
        *first = true;
    }
    let mut rest = template;
    while !rest.is_empty() {
        let (literal, expression, after) = next_part(rest);
        ends = after_literal(&ends, uri, literal.as_bytes());
        if let Some(expression) = expression {
            ends = after_expression(&ends, uri, expression);
        }
        rest = after;
    }
    ends.last().copied().unwrap_or(false)
}

/// The literal before the next expression, the expression, and what follows.
fn next_part(template: &str) -> (&str, Option<&str>, &str) {
    let Some((literal, rest)) = template.split_once('{') else {
        return (template, None, "");
    };
    match rest.split_once('}') {
        Some((expression, after)) => (literal, Some(expression), after),
        None => (template, None, ""),
    }
}

fn after_literal(ends: &[bool], uri: &[u8], literal: &[u8]) -> Vec<bool> {
    let mut next = vec![false; ends.len()];
    for (at, _) in ends.iter().enumerate().filter(|(_, reached)| **reached) {
        if uri.get(at..).is_some_and(|rest| rest.starts_with(literal))
            && let Some(slot) = next.get_mut(at + literal.len())
        {
            *slot = true;
        }
    }
    next
}

fn after_expression(ends: &[bool], uri: &[u8], expression: &str) -> Vec<bool> {
    let any = expression.starts_with(['+', '#', '.', '/', ';', '?', '&']);
    let mut next = ends.to_vec();
    let mut open = false;
    for (at, slot) in next.iter_mut().enumerate() {
        let passes =
            at.checked_sub(1).and_then(|last| uri.get(last)).is_some_and(|byte| any || *byte != b'/');
        open = (open && passes) || *slot;
        *slot = open;
    }
    next
}

#[cfg(test)]
mod tests;
