//! MCP Apps (`io.modelcontextprotocol/ui`): which tools are for a model, which for the view of an app,
//! and by which name a view reaches the tools of its own server.
//!
//! **Contract.** A tool can name a view (`_meta.ui.resourceUri`, a resource of its server) and say whom
//! it is for (`_meta.ui.visibility`; both where it says nothing). A client that does not declare the
//! extension has no views, so all that it lists goes to a model: tools that are not for one do not exist
//! for it. A client that declares it lists them too and keeps them from its model, as the extension
//! wants. A view knows its server's own names and no others. So a tool that is for views alone is shown
//! by its own name, and every tool that is for views is found by it, where exactly one of the caller's
//! servers that have views has one of that name.
//!
//! **Threat.** A view is a page that a server wrote; through its host it calls what it can name. By an
//! own name it reaches one server, and never by one that another server has too. A tool for views alone
//! has no other name, so that no view reaches another server's. Whom a tool is for opens nothing: every
//! call goes on to `decide`.
//!
//! **Bounds.** All of this is read once for each definition, when it is listed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use toolgate_config::Server;
use toolgate_signing::DefinitionKind;
use toolgate_wire::edit;

use crate::abilities::Abilities;
use crate::caller::Caller;
use crate::surface::{Item, Surface};

/// The name of the extension among the capabilities of both sides.
pub(crate) const EXTENSION: &str = "io.modelcontextprotocol/ui";
/// Where a server or a client declares it, a JSON pointer.
pub(crate) const DECLARED: &str = "/extensions/io.modelcontextprotocol~1ui";
/// The content that a client with views must be able to show.
pub(crate) const VIEW_TYPE: &str = "text/html;profile=mcp-app";
/// Where a tool names its view; the second is how it was written before 2026.
pub(crate) const VIEW_OF_TOOL: [&str; 2] = ["/_meta/ui/resourceUri", "/_meta/ui~1resourceUri"];
const VISIBILITY: &str = "/_meta/ui/visibility";

/// Whom a tool is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience {
    /// It may be offered to a model.
    pub model: bool,
    /// The view of an app may call it.
    pub app: bool,
}

impl Audience {
    /// What a definition says nothing else about.
    pub(crate) const ALL: Self = Self { model: true, app: true };

    /// What a definition says. Anything but words of the extension names nobody: a tool is not offered
    /// to a model because its server could not spell.
    pub(crate) fn of(definition: &str) -> Self {
        let Some(said) = edit::get(definition, VISIBILITY) else { return Self::ALL };
        let words: Vec<String> = match edit::elements(said) {
            Ok(words) => words.into_iter().filter_map(edit::string).collect(),
            Err(_) => Vec::new(),
        };
        let names = |word: &str| words.iter().any(|said| said == word);
        Self { model: names("model"), app: names("app") }
    }

    fn is_app_only(self) -> bool {
        self.app && !self.model
    }
}

/// The views that a tool names: URIs of its server.
pub(crate) fn views_of(definition: &str) -> impl Iterator<Item = String> {
    VIEW_OF_TOOL.into_iter().filter_map(move |pointer| edit::get(definition, pointer).and_then(edit::string))
}

/// Whether what a client declared includes views, of the one kind there is.
pub(crate) fn shows_views(capabilities: &str) -> bool {
    let types = edit::get(capabilities, &format!("{DECLARED}/mimeTypes"));
    let types = types.and_then(|types| edit::elements(types).ok()).unwrap_or_default();
    types.into_iter().filter_map(edit::string).any(|kind| kind == VIEW_TYPE)
}

/// Whether a definition exists for this caller under the name that listings show it by.
pub(crate) fn is_for(caller: &Caller, item: &Item) -> bool {
    if item.kind != DefinitionKind::Tool || item.audience == Audience::ALL || item.audience.model {
        return true;
    }
    // In a merged listing a tool for views goes by its own name alone (`own_names`).
    caller.abilities.has(Abilities::VIEWS) && item.audience.app && caller.plain_names
}

/// Whether views that this caller shows call by their servers' own names beside exposed ones.
pub(crate) fn has_own_names(caller: &Caller) -> bool {
    caller.abilities.has(Abilities::VIEWS) && !caller.plain_names
}

/// The one server whose view can mean a tool by this, its own name.
pub(crate) enum OwnNamed<'a> {
    /// None of the servers with views has one.
    Nobody,
    /// This one.
    One(&'a Arc<Server>),
    /// Several have one; nothing says whose view it is.
    Several(Vec<&'a str>),
}

/// Whom a view means by a name of its server's own.
pub(crate) fn own_named<'a>(surfaces: &'a [(Arc<Server>, Arc<Surface>)], name: &str) -> OwnNamed<'a> {
    let has = |surface: &Surface| {
        let item = surface.item(DefinitionKind::Tool, name);
        surface.has_views() && item.is_some_and(|item| item.audience.app)
    };
    let owners: Vec<&Arc<Server>> =
        surfaces.iter().filter(|(_, surface)| has(surface)).map(|(server, _)| server).collect();
    match owners.as_slice() {
        [] => OwnNamed::Nobody,
        &[only] => OwnNamed::One(only),
        several => OwnNamed::Several(several.iter().map(|server| server.name.as_str()).collect()),
    }
}

/// The tools for views alone that a merged listing shows by their own names: (server, name).
pub(crate) fn own_names<'a>(
    caller: &Caller,
    surfaces: &'a [(Arc<Server>, Arc<Surface>)],
) -> HashSet<(&'a str, &'a str)> {
    let mut owners: HashMap<&str, Vec<(&str, Audience)>> = HashMap::new();
    let mut exposed: HashSet<&str> = HashSet::new();
    if !has_own_names(caller) {
        return HashSet::new();
    }
    for (server, surface) in surfaces {
        for item in surface.of(DefinitionKind::Tool) {
            if item.audience.model {
                exposed.insert(&item.exposed);
            }
            if item.audience.app && surface.has_views() {
                owners.entry(&item.name).or_default().push((&server.name, item.audience));
            }
        }
    }
    let alone = owners.into_iter().filter_map(|(name, owners)| match owners.as_slice() {
        [(server, audience)] if audience.is_app_only() && !exposed.contains(name) => Some((*server, name)),
        _ => None,
    });
    alone.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_for_both_unless_it_says_otherwise_and_for_nobody_where_it_cannot_spell() {
        let of = |ui: &str| Audience::of(&format!(r#"{{"name":"t","_meta":{{"ui":{ui}}}}}"#));
        assert_eq!(Audience::of(r#"{"name":"t"}"#), Audience::ALL);
        assert_eq!(of(r#"{"resourceUri":"ui://v"}"#), Audience::ALL);
        assert_eq!(of(r#"{"visibility":["model","app"]}"#), Audience::ALL);
        assert_eq!(of(r#"{"visibility":["app"]}"#), Audience { model: false, app: true });
        assert_eq!(of(r#"{"visibility":["model"]}"#), Audience { model: true, app: false });
        let nobody = Audience { model: false, app: false };
        for odd in [r#"{"visibility":[]}"#, r#"{"visibility":"app"}"#, r#"{"visibility":["Model"]}"#] {
            assert_eq!(of(odd), nobody, "{odd}");
        }
    }

    #[test]
    fn a_client_shows_views_only_if_it_names_their_kind() {
        let declared = |settings: &str| {
            shows_views(&format!(r#"{{"extensions":{{"io.modelcontextprotocol/ui":{settings}}}}}"#))
        };
        assert!(declared(r#"{"mimeTypes":["text/plain","text/html;profile=mcp-app"]}"#));
        assert!(!declared("{}"));
        assert!(!declared(r#"{"mimeTypes":["text/html"]}"#));
        assert!(!shows_views("{}"));
    }
}
