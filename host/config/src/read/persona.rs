//! `personas`.

use std::collections::BTreeMap;

use toolgate_labels::Pattern;

use crate::error::Place;
use crate::persona::{Capabilities, CutAsks, Persona, PersonaApprovals};

use super::sections::Binding;
use super::{Item, Reader, keys};

/// Longest persona name, in bytes.
const LONGEST_NAME: usize = 64;

/// Where a persona names a skill.
pub(crate) struct Enabled {
    pub(crate) skill: String,
    pub(crate) place: Place,
}

/// Reads every persona, and where each names a server or a skill.
pub(crate) fn read_personas(
    reader: &mut Reader<'_>,
    item: Item,
) -> (BTreeMap<String, Persona>, Vec<Binding>, Vec<Enabled>) {
    let mut personas = BTreeMap::new();
    let (mut bindings, mut enabled) = (Vec::new(), Vec::new());
    for (name, body) in reader.entries(item) {
        if !is_persona_name(name.name()) {
            let fix = "use 1 to 64 letters, digits, `.`, `_` or `-`, and begin with a letter or digit";
            reader.wrong(&name, "no name for a persona", fix);
            continue;
        }
        let persona = read_persona(reader, name.name(), body, &mut bindings, &mut enabled);
        personas.insert(persona.name.clone(), persona);
    }
    (personas, bindings, enabled)
}

/// Whether a persona may have this name: it stands in URLs, labels and audit rows.
pub(crate) fn is_persona_name(name: &str) -> bool {
    name.len() <= LONGEST_NAME
        && name.bytes().enumerate().all(|(index, byte)| {
            byte.is_ascii_alphanumeric() || (index > 0 && matches!(byte, b'.' | b'_' | b'-'))
        })
        && !name.is_empty()
}

fn read_persona(
    reader: &mut Reader<'_>,
    name: &str,
    body: Item,
    bindings: &mut Vec<Binding>,
    enabled: &mut Vec<Enabled>,
) -> Persona {
    let mut persona = Persona::named(name);
    let Some(mut fields) = reader.fields(body, &keys::PERSONA) else { return persona };
    if let Some(item) = fields.take("servers") {
        for entry in reader.list(item) {
            let Some(server) = reader.filled(&entry) else { continue };
            let place = reader.place(entry.node.line, entry.node.column, &entry.key);
            if persona.servers.contains(&server.value) {
                reader.wrong(&entry, "this server is in the list twice", "keep one of the two");
                continue;
            }
            bindings.push(Binding {
                persona: name.to_owned(),
                server: server.value.clone(),
                label: None,
                place,
            });
            persona.servers.push(server.value);
        }
    }
    if let Some(item) = fields.take("skills") {
        for entry in reader.list(item) {
            let Some(skill) = reader.filled(&entry) else { continue };
            let place = reader.place(entry.node.line, entry.node.column, &entry.key);
            if persona.skills.contains(&skill.value) {
                reader.wrong(&entry, "this skill is in the list twice", "keep one of the two");
                continue;
            }
            enabled.push(Enabled { skill: skill.value.clone(), place });
            persona.skills.push(skill.value);
        }
    }
    if let Some(item) = fields.take("capabilities") {
        persona.capabilities = read_capabilities(reader, item, name, bindings);
    }
    if let Some(item) = fields.take("approvals") {
        persona.approvals = read_approvals(reader, item);
    }
    persona
}

fn read_capabilities(
    reader: &mut Reader<'_>,
    item: Item,
    persona: &str,
    bindings: &mut Vec<Binding>,
) -> Option<Capabilities> {
    let mut fields = reader.fields(item, &keys::CAPABILITIES)?;
    let mut patterns = |reader: &mut Reader<'_>, item: Option<Item>| {
        item.map(|item| read_patterns(reader, item, persona, bindings)).unwrap_or_default()
    };
    let allow = patterns(reader, fields.take("allow"));
    let require_approval = patterns(reader, fields.take("require_approval"));
    Some(Capabilities { allow, require_approval })
}

/// A label that cannot be read is an error and never skipped (FT-12).
fn read_patterns(
    reader: &mut Reader<'_>,
    item: Item,
    persona: &str,
    bindings: &mut Vec<Binding>,
) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for entry in reader.list(item) {
        let Some(text) = reader.filled(&entry) else { continue };
        match Pattern::parse(&text.value) {
            Ok(pattern) => {
                if let Some(server) = pattern.server() {
                    bindings.push(Binding {
                        persona: persona.to_owned(),
                        server: server.to_owned(),
                        label: Some(pattern.to_string()),
                        place: reader.place(entry.node.line, entry.node.column, &entry.key),
                    });
                }
                patterns.push(pattern);
            }
            Err(error) => {
                let fix =
                    "a label is `domain.action:scope`, such as mcp.call:github or mcp.call:github/get_issue";
                reader.wrong(&entry, error.to_string(), fix);
            }
        }
    }
    patterns
}

fn read_approvals(reader: &mut Reader<'_>, item: Item) -> PersonaApprovals {
    let mut approvals = PersonaApprovals::default();
    let Some(mut fields) = reader.fields(item, &keys::PERSONA_APPROVALS) else { return approvals };
    if let Some(item) = fields.take("in_client") {
        approvals.in_client = reader.flag(&item);
    }
    if let Some(item) = fields.take("cut") {
        let choices = [("cli", CutAsks::Cli), ("ask", CutAsks::Ask)];
        approvals.cut = reader.choice(&item, &choices).unwrap_or_default();
    }
    approvals
}
