use proptest::prelude::*;

use super::{DefinitionError, DefinitionKind, definition_digest, surface_digest};
use crate::Digest;

fn tool(json: &str) -> Digest {
    definition_digest(DefinitionKind::Tool, json).unwrap()
}

#[test]
fn the_order_of_keys_and_of_the_listing_is_no_drift_pi_01() {
    let plain =
        r#"{"name":"a","description":"d","inputSchema":{"type":"object","properties":{"x":{},"y":{}}}}"#;
    let shuffled = r#"{ "inputSchema": {"properties": {"y": { }, "x": {}}, "type": "object"},
        "description": "d", "name": "a" }"#;
    assert_eq!(tool(plain), tool(shuffled));
    let one = (DefinitionKind::Tool, "a".to_owned(), tool(plain));
    let two = (DefinitionKind::Tool, "b".to_owned(), tool(r#"{"name":"b"}"#));
    assert_eq!(surface_digest(&[one.clone(), two.clone()]), surface_digest(&[two, one]));
}

#[test]
fn one_word_of_a_description_is_drift_pi_02() {
    assert_ne!(
        tool(r#"{"name":"a","description":"reads a file"}"#),
        tool(r#"{"name":"a","description":"reads any file"}"#)
    );
}

#[test]
fn raw_text_is_hashed_hidden_characters_included_se_01() {
    assert_ne!(tool(r#"{"name":"a"}"#), tool("{\"name\":\"a\u{200b}\"}"));
    assert_eq!(tool("{\"name\":\"a\u{200b}\"}"), tool(r#"{"name":"a\u200b"}"#));
}

#[test]
fn of_meta_only_the_ui_counts() {
    let bare = tool(r#"{"name":"a"}"#);
    for meta in ["{}", r#"{"version":1}"#, "null", "[]", r#"{"UI":1}"#] {
        assert_eq!(tool(&format!(r#"{{"name":"a","_meta":{meta}}}"#)), bare, "{meta}");
    }
    let ui = tool(r#"{"name":"a","_meta":{"ui":{"x":1},"version":1}}"#);
    assert_ne!(ui, bare);
    assert_eq!(ui, tool(r#"{"name":"a","_meta":{"version":2,"ui":{"x":1}}}"#));
    // Only the definition's own `_meta` is bookkeeping; one inside a schema is a name like any other.
    let nested =
        |n: u8| format!(r#"{{"name":"a","inputSchema":{{"properties":{{"_meta":{{"const":{n}}}}}}}}}"#);
    assert_ne!(tool(&nested(1)), tool(&nested(2)));
}

#[test]
fn sets_of_a_schema_have_no_order_and_data_has() {
    let schema = |text: &str| tool(&format!(r#"{{"name":"a","inputSchema":{text}}}"#));
    for (left, right) in [
        (r#"{"required":["a","b"]}"#, r#"{"required":["b","a","b"]}"#),
        (r#"{"type":["a","b"]}"#, r#"{"type":["b","a"]}"#),
        (r#"{"anyOf":[{"items":{"type":["a","b"]}}]}"#, r#"{"anyOf":[{"items":{"type":["b","a"]}}]}"#),
        (
            r#"{"$defs":{"default":{"required":["a","b"]}}}"#,
            r#"{"$defs":{"default":{"required":["b","a"]}}}"#,
        ),
    ] {
        assert_eq!(schema(left), schema(right), "{left} {right}");
    }
    for (left, right) in [
        (r#"{"enum":["a","b"]}"#, r#"{"enum":["b","a"]}"#),
        (r#"{"anyOf":[{},{"type":"a"}]}"#, r#"{"anyOf":[{"type":"a"},{}]}"#),
        (r#"{"default":{"required":["a","b"]}}"#, r#"{"default":{"required":["b","a"]}}"#),
        (r#"{"const":{"type":["a","b"]}}"#, r#"{"const":{"type":["b","a"]}}"#),
        (r#"{"x-own":{"required":["a","b"]}}"#, r#"{"x-own":{"required":["b","a"]}}"#),
        (r#"{"required":["a",1]}"#, r#"{"required":[1,"a"]}"#),
        (r#"{"type":"a"}"#, r#"{"type":["a"]}"#),
    ] {
        assert_ne!(schema(left), schema(right), "{left} {right}");
    }
    // Outside the schemas an array named like a set is a list.
    assert_ne!(tool(r#"{"name":"a","required":["a","b"]}"#), tool(r#"{"name":"a","required":["b","a"]}"#));
}

#[test]
fn kinds_do_not_share_digests_and_have_their_shapes() {
    let digests: std::collections::HashSet<Digest> = DefinitionKind::ALL
        .into_iter()
        .filter(|kind| *kind != DefinitionKind::Instructions)
        .map(|kind| definition_digest(kind, r#"{"name":"a"}"#).unwrap())
        .collect();
    assert_eq!(digests.len(), 4);
    assert_eq!(
        definition_digest(DefinitionKind::Prompt, "[]"),
        Err(DefinitionError::NotAnObject(DefinitionKind::Prompt))
    );
    assert_eq!(definition_digest(DefinitionKind::Instructions, "{}"), Err(DefinitionError::NotAString));
    assert!(definition_digest(DefinitionKind::Instructions, "\"x\"").is_ok());
    assert!(matches!(
        definition_digest(DefinitionKind::Tool, r#"{"name":"a","name":"b"}"#),
        Err(DefinitionError::Json(_))
    ));
    for kind in DefinitionKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
        assert_eq!(serde_json::to_string(&kind).unwrap(), format!("\"{kind}\""));
    }
    assert_eq!("x".parse::<DefinitionKind>(), Err(DefinitionError::UnknownKind));
}

#[test]
fn a_name_cannot_forge_another_line_of_a_surface() {
    let digest = Digest::of(b"x");
    let forged = vec![(DefinitionKind::Tool, format!("a\" {digest}\ntool \"b"), digest)];
    let honest =
        vec![(DefinitionKind::Tool, "a".to_owned(), digest), (DefinitionKind::Tool, "b".to_owned(), digest)];
    assert_ne!(surface_digest(&forged), surface_digest(&honest));
}

proptest! {
    #[test]
    fn surfaces_are_equal_exactly_if_their_definitions_are(
        left in proptest::collection::btree_set(("[a-b\"\n ]{0,3}", 0_u8..3), 0..4),
        right in proptest::collection::btree_set(("[a-b\"\n ]{0,3}", 0_u8..3), 0..4),
    ) {
        let surface = |set: &std::collections::BTreeSet<(String, u8)>| {
            let list: Vec<_> = set
                .iter()
                .map(|(name, n)| (DefinitionKind::Prompt, name.clone(), Digest::of(&[*n])))
                .collect();
            surface_digest(&list)
        };
        prop_assert_eq!(surface(&left) == surface(&right), left == right);
    }
}
