use std::collections::BTreeSet;

use super::*;

/// Where each table stands in the schema.
fn places() -> Vec<(&'static str, &'static Keys)> {
    let server = "/properties/servers/additionalProperties";
    let at = |path: &str| -> &'static str { Box::leak(format!("{server}{path}").into_boxed_str()) };
    vec![
        ("", &keys::TOP),
        ("/properties/serve", &keys::SERVE),
        (at(""), &keys::SERVER),
        (at("/properties/timeouts"), &keys::TIMEOUTS),
        (at("/properties/restarts"), &keys::RESTARTS),
        (at("/properties/rate_limit"), &keys::RATE_LIMIT),
        (at("/properties/rateLimit"), &keys::RATE_LIMIT),
        (at("/properties/tools"), &keys::TOOLS),
        (at("/properties/trust"), &keys::TRUST),
        (at("/properties/adapter"), &keys::ADAPTER),
        (at("/properties/adapter/properties/grants"), &keys::GRANTS),
        ("/properties/personas/additionalProperties", &keys::PERSONA),
        ("/properties/personas/additionalProperties/properties/capabilities", &keys::CAPABILITIES),
        ("/properties/personas/additionalProperties/properties/approvals", &keys::PERSONA_APPROVALS),
        ("/properties/skills/additionalProperties", &keys::SKILL),
        ("/properties/permissions", &keys::PERMISSIONS),
        ("/properties/approvals", &keys::APPROVALS),
        ("/properties/approvals/properties/webhook", &keys::APPROVALS_WEBHOOK),
        ("/properties/pins", &keys::PINS),
        ("/properties/plugins", &keys::PLUGINS),
        ("/properties/plugins/properties/trust/items", &keys::TRUST_RULE),
        ("/properties/plugins/properties/trust/items/properties/any_of", &keys::ANY_OF),
        ("/properties/plugins/properties/indexes/items", &keys::INDEX),
        ("/properties/plugins/properties/hosts/items", &keys::HOST),
        ("/properties/plugins/properties/load/items", &keys::LOAD),
        ("/properties/plugins/properties/load/items/properties/grants", &keys::GRANTS),
        ("/properties/audit", &keys::AUDIT),
        ("/properties/audit/properties/sinks/items", &keys::SINK),
    ]
}

#[test]
fn the_schema_has_the_keys_the_reader_accepts_and_no_other() {
    let schema = Config::json_schema();
    for (path, table) in places() {
        let block = schema.pointer(path).unwrap_or_else(|| panic!("{path}"));
        assert_eq!(block["additionalProperties"], false, "{path}");
        let published: BTreeSet<&str> =
            block["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let accepted: BTreeSet<&str> = table
            .known
            .iter()
            .copied()
            .filter(|key| !keys::MANAGED_ONLY.contains(key))
            .chain(table.aliases.iter().map(|(alias, _)| *alias))
            .collect();
        assert_eq!(published, accepted, "{path}");
        for (key, value) in block["properties"].as_object().unwrap() {
            assert!(value["description"].as_str().is_some_and(|text| !text.is_empty()), "{path}/{key}");
        }
    }
}

#[test]
fn every_closed_block_of_the_schema_is_one_of_the_readers() {
    fn closed(value: &Value, count: &mut usize) {
        if let Some(object) = value.as_object() {
            *count += usize::from(object.get("additionalProperties") == Some(&json!(false)));
            object.values().for_each(|value| closed(value, count));
        }
    }
    let mut count = 0;
    closed(&Config::json_schema(), &mut count);
    let aliases = places().iter().filter(|(_, table)| table.aliases.is_empty()).count();
    assert!(count >= aliases && count == places().len(), "{count} closed blocks, {} tables", places().len());
}

#[test]
fn the_reader_refuses_every_key_the_schema_does_not_have() {
    for (path, _) in places().into_iter().take(2) {
        let text = if path.is_empty() { "nokey: 1\n" } else { "serve: {nokey: 1}\n" };
        assert!(crate::testing::refusal(text).contains("unknown key `nokey`"));
    }
}
