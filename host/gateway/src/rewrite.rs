//! The places in payloads that Toolgate changes, in one table: where a request names what it is about,
//! and where a result names resources. Everything else of a payload stays the text it was
//! (design.md 3.1).
//!
//! Bounds: one splice for each request; a result is looked into only where it has a member `uri`.

use toolgate_store::Deed;
use toolgate_wire::edit;

/// Where a request names what it is about; of a completion it depends on the kind of its reference.
pub(crate) fn subject_pointer(deed: Deed, params: &str) -> &'static str {
    match deed {
        Deed::Call | Deed::Prompt => "/name",
        Deed::Read | Deed::Subscribe => "/uri",
        Deed::Complete if is_prompt(params) => "/ref/name",
        Deed::Complete => "/ref/uri",
    }
}

/// Whether a completion is about an argument of a prompt.
pub(crate) fn is_prompt(params: &str) -> bool {
    edit::get(params, "/ref/type").and_then(edit::string).as_deref() == Some("ref/prompt")
}

/// Where results name resources; `*` stands for every element of an array.
const RESULT_URIS: [&[&str]; 5] = [
    &["contents", "*", "uri"],
    &["content", "*", "uri"],
    &["content", "*", "resource", "uri"],
    &["messages", "*", "content", "uri"],
    &["messages", "*", "content", "resource", "uri"],
];

/// The result with the URIs that this caller knows; `None` where nothing changes. `known` gives the URI
/// in place of a server's own, where they differ.
pub(crate) fn result_uris(result: &str, known: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut edits: Vec<(String, String)> = Vec::new();
    for path in RESULT_URIS {
        collect(result, String::new(), path, &mut |pointer, uri| {
            if let Some(new) = known(uri) {
                edits.push((pointer, edit::quote(&new)));
            }
        });
    }
    if edits.is_empty() {
        return None;
    }
    let edits: Vec<(&str, Option<&str>)> =
        edits.iter().map(|(pointer, value)| (pointer.as_str(), Some(value.as_str()))).collect();
    edit::set_all(result, &edits).ok()
}

/// Walks one path of the table.
fn collect(here: &str, pointer: String, path: &[&str], found: &mut dyn FnMut(String, &str)) {
    let Some((step, rest)) = path.split_first() else {
        if let Some(uri) = edit::string(here) {
            found(pointer, &uri);
        }
        return;
    };
    if *step == "*" {
        let Ok(elements) = edit::elements(here) else { return };
        for (index, element) in elements.into_iter().enumerate() {
            collect(element, format!("{pointer}/{index}"), rest, found);
        }
    } else if let Some(next) = edit::get(here, &format!("/{step}")) {
        collect(next, format!("{pointer}/{step}"), rest, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uris::Claims;

    #[test]
    fn uris_of_a_result_are_rewritten_where_two_servers_claim_them_and_nowhere_else() {
        let claims = Claims::among([("a", "x://1"), ("b", "x://1")].into_iter());
        let result = r#"{"content":[{"type":"text","text":"x://1"},{"type":"resource_link","uri":"x://1","n":1.50},{"type":"resource","resource":{"uri":"x://2"}}]}"#;
        assert_eq!(
            result_uris(result, &|uri| claims.rewritten("a", uri)).unwrap(),
            result.replace(r#""uri":"x://1""#, r#""uri":"x://toolgate.a///1""#)
        );
        assert!(result_uris(result, &|_| None).is_none());
        let read = r#"{"contents":[{"uri":"x://1","text":""}]}"#;
        let read = result_uris(read, &|uri| claims.rewritten("a", uri)).unwrap();
        assert!(read.contains("toolgate.a///1"));
    }
}
