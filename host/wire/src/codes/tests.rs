//! Toolgate's own codes stay out of the protocol's range.

use super::*;

#[test]
fn own_codes_are_outside_the_reserved_range_and_have_distinct_words() {
    let words: Vec<_> = (1000..1100).filter_map(word).collect();
    let distinct: std::collections::HashSet<_> = words.iter().collect();
    assert_eq!((words.len(), distinct.len()), (11, 11));
    assert!((-32768..=-32000).all(|code| word(code).is_none()));
}

#[test]
fn only_the_three_codes_of_the_revision_mark_a_modern_server() {
    let modern: Vec<_> = (-32768..=-32000).filter(|code| is_modern_error(*code)).collect();
    assert_eq!(modern, [UNSUPPORTED_VERSION, MISSING_CLIENT_CAPABILITY, HEADER_MISMATCH]);
}
