//! One server under two names (rows DED-001, TRB-006; conflict C31).
//!
//! Contract: of two remote entries of one persona that reach the same URL with the same headers and are
//! alike in everything else but their name, the second is left out for that persona, and a warning names
//! both. Entries that differ in anything (credential, filter, trust, adapter) are meant, so both stay and
//! a warning says that they are one server; two that start one command are two processes and stay too. The
//! operator's own entries come before those of the managed layer, then the order is that of the names.

use std::collections::BTreeMap;

use toolgate_net::Url;

use crate::error::{Level, Notice};
use crate::persona::Persona;
use crate::server::{Origin, Server, Transport};

#[cfg(test)]
mod tests;

/// Leaves out what a persona would have twice.
pub(crate) fn leave_out(
    servers: &BTreeMap<String, Server>,
    personas: &mut BTreeMap<String, Persona>,
    notices: &mut Vec<Notice>,
) {
    for persona in personas.values_mut() {
        let mut own: Vec<&Server> = persona
            .all_servers()
            .filter_map(|name| servers.get(name))
            .filter(|server| server.enabled && server.accepted)
            .collect();
        own.sort_by_key(|server| (server.origin != Origin::Operator, &server.name));
        own.dedup_by_key(|server| &server.name);
        let mut kept: Vec<(&Server, Place<'_>)> = Vec::new();
        let mut skipped = Vec::new();
        for server in own {
            let place = Place::of(&server.transport);
            let Some((first, _)) = kept.iter().find(|(_, known)| *known == place) else {
                kept.push((server, place));
                continue;
            };
            let skips = is_remote(server) && are_alike(first, server);
            notices.push(notice(&persona.name, first, server, skips));
            if skips {
                skipped.push(server.name.clone());
            } else {
                kept.push((server, place));
            }
        }
        for name in skipped {
            persona.leave_out(&name);
        }
    }
}

fn notice(persona: &str, first: &Server, second: &Server, skips: bool) -> Notice {
    let (one, other) = (&first.name, &second.name);
    let text = match (is_remote(second), skips) {
        (true, true) => format!(
            "servers {one} and {other} reach the same URL in the same way, so {other} is skipped for persona \
             {persona}; remove one of them"
        ),
        (true, false) => format!(
            "servers {one} and {other} of persona {persona} reach the same URL; both stay, because their \
             entries differ"
        ),
        (false, _) => format!(
            "servers {one} and {other} of persona {persona} start the same command in the same way; both stay, \
             as two processes"
        ),
    };
    Notice::new(if skips { Level::Warning } else { Level::Info }, None, text)
}

fn is_remote(server: &Server) -> bool {
    !matches!(server.transport, Transport::Stdio { .. })
}

/// Where an entry leads, and as which caller.
#[derive(PartialEq)]
enum Place<'a> {
    /// A command with its arguments, variables and directory.
    Command(&'a Transport),
    /// The URL as it is resolved, and the headers in one order.
    Url(String, Vec<(String, &'a str)>),
}

impl<'a> Place<'a> {
    fn of(transport: &'a Transport) -> Self {
        let (Transport::StreamableHttp { url, headers } | Transport::Sse { url, headers }) = transport else {
            return Self::Command(transport);
        };
        let url = Url::parse(url).map_or_else(|_| url.clone(), String::from);
        let mut headers: Vec<(String, &str)> =
            headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.expose())).collect();
        headers.sort();
        Self::Url(url, headers)
    }
}

fn are_alike(one: &Server, other: &Server) -> bool {
    let rest = |server: &Server| (server.protocol, server.instance, server.questions, server.rate_limit);
    one.transport.name() == other.transport.name()
        && rest(one) == rest(other)
        && one.timeouts == other.timeouts
        && one.tools == other.tools
        && one.trust == other.trust
        && one.adapter == other.adapter
}
