//! A check as SARIF 2.1.0, which code reviews show beside the lines it is about.

use serde_json::{Value, json};
use toolgate_gateway::lock::{LOCK_FILE, Mismatch, SURFACE_DIR};

/// What each rule means, for the reader of the report.
const RULES: [(&str, &str); 4] = [
    ("plugin", "A plugin is not the one that was reviewed."),
    ("server", "A server is not the one that was reviewed."),
    ("definition", "A definition that a model sees is not the one that was reviewed."),
    ("surface", "A surface file does not hold what the lock says."),
];

/// One run with one result for each mismatch.
pub(super) fn log(mismatches: &[Mismatch]) -> Value {
    let rules: Vec<Value> = RULES
        .iter()
        .map(|(id, text)| json!({ "id": format!("toolgate/{id}"), "shortDescription": { "text": text } }))
        .collect();
    let results: Vec<Value> = mismatches.iter().map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "toolgate",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "results": results,
        }],
    })
}

fn result(mismatch: &Mismatch) -> Value {
    let file = match mismatch.about {
        "definition" | "surface" => {
            let server = mismatch.name.split('/').next().unwrap_or_default();
            format!("{SURFACE_DIR}/{server}.json")
        }
        _ => LOCK_FILE.to_owned(),
    };
    // Control characters of a server's words would reach the terminal or page that shows this.
    let text =
        toolgate_base::display::escape_multiline(&format!("{}\n{}", mismatch.sentence(), mismatch.diff));
    json!({
        "ruleId": format!("toolgate/{}", mismatch.about),
        "level": "error",
        "message": { "text": text.trim_end() },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": file },
            "region": { "startLine": 1 },
        } }],
    })
}
