//! Field report PR-11: an id comes back with the type and value it had.

use std::collections::HashSet;

use super::*;

#[test]
fn pr_11_every_id_goes_out_as_it_came_in() {
    for raw in [
        r#""1""#,
        "1",
        r#""init-1""#,
        "9007199254740993",
        "123456789012345678901234567890",
        "-7",
        "0",
        "1.0",
        r#""""#,
    ] {
        let id = Id::from_json(raw).unwrap();
        assert_eq!(id.to_json(), raw);
        assert_eq!(serde_json::to_string(&id).unwrap(), raw);
        assert_eq!(serde_json::from_str::<Id>(raw).unwrap(), id);
    }
}

#[test]
fn pr_11_ids_of_different_type_or_value_differ() {
    let ids = ["1", r#""1""#, "2", "9007199254740993", "9007199254740992", r#""""#];
    let distinct: HashSet<_> = ids.iter().map(|raw| Id::from_json(raw).unwrap()).collect();
    assert_eq!(distinct.len(), ids.len());
}

#[test]
fn the_same_value_in_another_spelling_is_the_same_id() {
    let same = |a, b| assert_eq!(Id::from_json(a), Id::from_json(b));
    same(r#""a""#, r#""\u0061""#);
    same("7", "7.0");
    same("0", "-0");
    assert_eq!(Id::number(7), Id::from_json("7").unwrap());
}

#[test]
fn what_is_neither_integer_nor_string_is_no_id() {
    for raw in ["null", "true", "1.5", "1e3", "[]", "{}", "", "-", "01", "1.", "+1", "\"a"] {
        assert_eq!(Id::from_json(raw), None, "{raw}");
        assert!(serde_json::from_str::<Id>(raw).is_err(), "{raw}");
    }
}
