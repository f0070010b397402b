use super::*;

const GOOD: &str = r#"{"name":"good","inputSchema":{"type":"object"}}"#;

fn take_all(tools: &[&str]) -> Listing {
    let mut listing = Listing::new(ListKind::Tools, true);
    let mut names = HashSet::new();
    for tool in tools {
        listing.take((*tool).to_owned(), &mut names, false);
    }
    listing
}

/// PR-18
#[test]
fn a_bad_definition_is_left_out_alone_and_named() {
    let listing = take_all(&[
        GOOD,
        r#"{"name":"any-of","inputSchema":{"anyOf":[{"type":"object"}]}}"#,
        r#"{"name":"none"}"#,
        r#"{"inputSchema":{"type":"object"}}"#,
        r#"{"name":"flag","inputSchema":true}"#,
        "7",
    ]);
    assert_eq!(listing.items.len(), 1);
    let names: Vec<&str> = listing.dropped.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["any-of", "none", "#3", "flag", "#5"]);
    assert!(listing.dropped.iter().all(|(_, reason)| !reason.is_empty()));
}

#[test]
fn two_tools_with_one_name_are_one_if_they_are_the_same_and_none_if_they_differ() {
    let listing = take_all(&[GOOD, GOOD]);
    assert_eq!((listing.items.len(), listing.dropped.len()), (1, 0));
    assert!(listing.warnings[0].contains("good"), "{:?}", listing.warnings);
    let other = r#"{"name":"good","title":"x","inputSchema":{"type":"object"}}"#;
    let listing = take_all(&[GOOD, other, GOOD]);
    assert!(listing.items.is_empty(), "{:?}", listing.items);
    assert_eq!(listing.dropped.len(), 1);
    assert!(listing.dropped[0].1.contains("different definitions"), "{:?}", listing.dropped);
}

#[test]
fn a_definition_that_fails_the_door_is_cut_out_of_its_page() {
    let raw = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{GOOD},{{"name":"twice","name":"evil","inputSchema":{{"type":"object"}}}}],"nextCursor":"c"}}}}"#
    );
    let page = salvage(ListKind::Tools, raw.as_bytes(), DoorLimits::default()).unwrap();
    assert_eq!(page.items, [GOOD]);
    assert_eq!(page.dropped.len(), 1);
    assert!(page.dropped[0].1.contains("/result/tools/1/name"), "{:?}", page.dropped);
    assert_eq!(page.next.as_deref(), Some("\"c\""));
}

#[test]
fn a_defect_outside_of_a_definition_is_not_cut_out() {
    let raw = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{GOOD}],"tools":[]}}}}"#);
    assert!(salvage(ListKind::Tools, raw.as_bytes(), DoorLimits::default()).is_none());
}

#[test]
fn a_tool_whose_arguments_cannot_be_repeated_in_headers_is_left_out_where_they_are() {
    let bad = r#"{"name":"bad","inputSchema":{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}}"#;
    let listing = take_all(&[GOOD, bad]);
    assert_eq!(listing.items.len(), 1);
    assert_eq!(listing.dropped[0].0, "bad");
    assert!(listing.dropped[0].1.contains("x-mcp-header"), "{:?}", listing.dropped);
    let mut elsewhere = Listing::new(ListKind::Tools, false);
    elsewhere.take(bad.to_owned(), &mut HashSet::new(), false);
    assert_eq!(elsewhere.items.len(), 1, "{:?}", elsewhere.dropped);
}
