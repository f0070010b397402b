//! What a model is told of its servers: a word of Toolgate's own, then each server's instructions under
//! its name (design.md 9a, "Merging").
//!
//! Threat: instructions are a server's words in a place that models obey. They are pinned like a tool,
//! pass the hook list (which blocks or strips hidden text), stand under the name of the server that
//! wrote them, and are capped.

use std::fmt::Write as _;
use std::sync::Arc;

use toolgate_config::Server;
use toolgate_signing::DefinitionKind;
use toolgate_wire::edit;

use crate::Gateway;
use crate::caller::Caller;
use crate::decide::Ruling;
use crate::find::offers;
use crate::redact;
use crate::surface::{Item, Surface};

/// The most that one server says, in bytes; of a server that is shown alone, no cap but the message's.
const MOST_OF_ONE: usize = 256 * 1024;
/// The most that all say together, in bytes.
const MOST_OF_ALL: usize = 1024 * 1024;

impl Gateway {
    /// Text for the model about the servers of this caller, as far as it is known without waiting
    /// ([`Gateway::offers`] has waited a little for servers that were never seen).
    pub fn instructions(&self, caller: &Caller) -> Option<String> {
        let surfaces = self.known_surfaces(caller);
        if caller.plain_names {
            return surfaces
                .iter()
                .find_map(|(server, surface)| self.instructions_of(caller, server, surface));
        }
        let servers = self.servers_of(caller);
        if servers.is_empty() {
            return None;
        }
        let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
        let mut text = format!(
            "Tools of these MCP servers, each named <server>__<tool>: {}. A call may answer that a \
             person has to approve it first; then tell your user how, and repeat the same call.",
            names.join(", ")
        );
        for (server, surface) in &surfaces {
            let Some(said) = self.instructions_of(caller, server, surface) else { continue };
            let room = MOST_OF_ONE.min(MOST_OF_ALL.saturating_sub(text.len()));
            let (kept, cut) = cut(&said, room);
            let _ = write!(text, "\n\nInstructions of server `{}`:\n{kept}", server.name);
            if cut > 0 {
                let _ = write!(text, "\n[{cut} more bytes of server `{}` are left out]", server.name);
            }
        }
        Some(text)
    }

    fn instructions_of(&self, caller: &Caller, server: &Server, surface: &Surface) -> Option<String> {
        let item = surface.of(DefinitionKind::Instructions).find(|item| offers(server, item))?;
        let items: [&Arc<Item>; 1] = [item];
        let facts = self.list_facts(caller, server, surface, &items);
        let verdict = self.list_verdicts(caller, server, &facts).pop()?;
        if verdict.ruling == Ruling::Deny {
            tracing::debug!(server = %server.name, reason = %verdict.reason, "its instructions are hidden");
            return None;
        }
        let text = redact::redact(item.definition.text(), &verdict.redactions);
        match text {
            Ok(text) => edit::string(&text),
            Err(error) => {
                tracing::warn!(server = %server.name, %error, "its instructions are hidden: a change failed");
                None
            }
        }
    }
}

/// The longest beginning of whole characters within `room` bytes, and how many bytes were cut.
fn cut(text: &str, room: usize) -> (&str, usize) {
    if text.len() <= room {
        return (text, 0);
    }
    let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (text.get(..end).unwrap_or_default(), text.len() - end)
}
