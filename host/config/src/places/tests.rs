//! Pointers and the places they stand at.

use std::path::PathBuf;

use super::Places;
use crate::node;

#[test]
fn a_pointer_leads_to_the_line_of_its_key_and_to_what_is_around_what_is_not_written() {
    let tree = node::parse("deny:\n  - a\n  - b\nlimits: { most: 3, \"a/b\": 1 }\n").unwrap();
    let places = Places::of(PathBuf::from("toolgate.yaml"), "plugins.load[0].settings", &tree);
    let at = |pointer: &str| places.place(pointer).map(|place| (place.line, place.column)).unwrap();
    assert_eq!(at(""), (1, 1));
    assert_eq!(at("/deny/1"), (3, 5));
    assert_eq!(at("/limits/most"), (4, 11));
    assert_eq!(at("/limits/a~1b"), (4, 20));
    assert_eq!(at("/limits/least"), (4, 1));
    assert_eq!(places.place("/deny/1").unwrap().key, "plugins.load[0].settings.deny.1");
    let alone = Places::of_text(PathBuf::from("--settings"), "settings", "{\"deny\": [1,\n 2]}");
    assert_eq!(alone.place("/deny/1").unwrap().to_string(), "--settings:2:2: settings.deny.1");
    assert_eq!(Places::of_text(PathBuf::from("--settings"), "settings", "{").place("/deny"), None);
    assert_eq!(Places::default().place("/deny"), None);
}
