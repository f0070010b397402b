//! One whole listing of a server (tools, prompts, resources or templates), made of whatever pages it
//! sends.
//!
//! The threats: a cursor that never ends (PR-01), one bad definition that hides all others
//! (PR-18), a definition that two readers would read differently. Pages are bounded by
//! `max_pages`; a definition is dropped alone, with its name and the reason.

use std::collections::HashSet;

use serde_json::value::RawValue;
use toolgate_wire::door::{self, DoorError};
use toolgate_wire::envelope::Era;
use toolgate_wire::{Limits as DoorLimits, ListKind, Outcome, codes, edit, headers};

use crate::ask::Failure;
use crate::connection::{Core, RequestOptions};
use crate::error::{RequestError, quote};
use crate::link::Link;

/// What a server lists of one kind.
#[derive(Debug)]
pub struct Listing {
    /// Of which kind.
    pub kind: ListKind,
    /// The usable definitions, each as the server wrote it, in its order, keys unique.
    pub items: Vec<Box<RawValue>>,
    /// Key and reason of each definition that was left out.
    pub dropped: Vec<(String, String)>,
    /// What was odd about the listing itself.
    pub warnings: Vec<String>,
    /// Whether `x-mcp-header` has to be right.
    headers: bool,
}

/// One page as far as it can be used.
#[derive(Debug, Default)]
struct Page {
    items: Vec<String>,
    dropped: Vec<(String, String)>,
    next: Option<String>,
}

/// Follows the pages and judges every definition.
pub(crate) async fn list(core: &Core, kind: ListKind) -> Result<Listing, RequestError> {
    let mut listing = Listing::new(kind, repeats_arguments(core));
    if !core.declares(&format!("/{}", kind.capability())) {
        return Ok(listing);
    }
    let mut names = HashSet::new();
    let mut cursors: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..core.hub.limits.max_pages {
        let page = fetch(core, kind, cursor.as_deref()).await?;
        let repeats = page.next.as_ref().is_some_and(|next| cursors.contains(next));
        listing.dropped.extend(page.dropped);
        for item in page.items {
            listing.take(item, &mut names, repeats);
        }
        let Some(next) = page.next else {
            return Ok(listing);
        };
        if repeats {
            listing.warnings.push(format!(
                "the server repeats the cursor {} for ever; the listing ends there",
                quote(&next, 60)
            ));
            return Ok(listing);
        }
        cursors.insert(next.clone());
        cursor = Some(next);
    }
    listing.warnings.push(format!(
        "the listing has more than {} pages; the rest is not shown",
        core.hub.limits.max_pages
    ));
    Ok(listing)
}

/// Whether arguments are repeated in headers on this connection, so that a schema must say it rightly.
fn repeats_arguments(core: &Core) -> bool {
    core.hello.era == Era::Modern && matches!(core.link, Link::Http(_))
}

/// One request; a reply that fails the door is searched for definitions that do not.
async fn fetch(core: &Core, kind: ListKind, cursor: Option<&str>) -> Result<Page, RequestError> {
    let server = || core.hub.server.clone();
    let params = cursor.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
    let params = params.map(edit::raw).transpose().map_err(|error| RequestError::BadReply {
        server: server(),
        detail: format!("its cursor cannot be sent back: {error}"),
    })?;
    let method = kind.method();
    let outcome = core.request(method, params.as_deref(), RequestOptions::default()).await;
    match outcome {
        Ok(Outcome::Result(result)) => page(kind, result.get()).ok_or_else(|| RequestError::BadReply {
            server: server(),
            detail: format!("the reply to {method} has no list `{}`", kind.member()),
        }),
        // Resources and templates share a capability, and many servers have only one of the two.
        Ok(Outcome::Error(error)) if error.code == codes::METHOD_NOT_FOUND && is_half(kind) => {
            Ok(Page::default())
        }
        Ok(Outcome::Error(error)) => Err(RequestError::BadReply {
            server: server(),
            detail: format!(
                "{method} failed with error {}: {}",
                error.code,
                core.hub.quote(&error.message, 200)
            ),
        }),
        Err(Failure { error, raw: Some(raw) }) => salvage(kind, &raw, core.hub.limits.door()).ok_or(error),
        Err(Failure { error, raw: None }) => Err(error),
    }
}

fn is_half(kind: ListKind) -> bool {
    matches!(kind, ListKind::Resources | ListKind::Templates)
}

/// A result that passed the door.
fn page(kind: ListKind, result: &str) -> Option<Page> {
    let items = edit::elements(edit::get(result, &format!("/{}", kind.member()))?).ok()?;
    Some(Page {
        items: items.into_iter().map(str::to_owned).collect(),
        dropped: Vec::new(),
        next: next_cursor(result),
    })
}

/// The cursor as JSON text, which goes back as it came. An empty text is the end for servers that
/// do not leave it out.
fn next_cursor(result: &str) -> Option<String> {
    let cursor = edit::get(result, "/nextCursor")?;
    (cursor.starts_with('"') && cursor != "\"\"").then(|| cursor.to_owned())
}

/// A reply that failed the door because of some of its entries: those are left out, by name. Any
/// defect outside of a definition, and what cannot be read at all, stays a failure of the page.
fn salvage(kind: ListKind, raw: &[u8], limits: DoorLimits) -> Option<Page> {
    let list = format!("/result/{}", kind.member());
    let survey = door::survey(raw, &limits).ok()?;
    let mut faults: Vec<(usize, &DoorError)> = Vec::new();
    for defect in &survey.defects {
        let place = defect.pointer.strip_prefix(&list)?.strip_prefix('/')?;
        let index = place.split('/').next()?.parse().ok()?;
        faults.push((index, defect));
    }
    let items = edit::elements(edit::get(survey.text, &list)?).ok()?;
    let mut page = Page { next: next_cursor(edit::get(survey.text, "/result")?), ..Page::default() };
    for (index, item) in items.into_iter().enumerate() {
        match faults.iter().find(|(at, _)| *at == index) {
            Some((_, fault)) => page.dropped.push((shown_name(kind, item, index), fault.to_string())),
            None => page.items.push(item.to_owned()),
        }
    }
    Some(page)
}

impl Listing {
    fn new(kind: ListKind, headers: bool) -> Self {
        Self { kind, items: Vec::new(), dropped: Vec::new(), warnings: Vec::new(), headers }
    }

    /// Adds a definition that can be used. On a repeated page a known name is what is expected,
    /// and not worth a word.
    fn take(&mut self, item: String, names: &mut HashSet<String>, repeated: bool) {
        let shown = shown_name(self.kind, &item, self.items.len() + self.dropped.len());
        match usable_name(self.kind, &item, self.headers) {
            Err(reason) => self.dropped.push((shown, reason)),
            Ok(name) if names.contains(&name) => self.take_again(&name, &item, shown, repeated),
            Ok(name) => match edit::raw(item) {
                Ok(raw) => {
                    names.insert(name);
                    self.items.push(raw);
                }
                Err(error) => self.dropped.push((shown, error.to_string())),
            },
        }
    }

    /// A second definition under a known name. The same once more is one; another one leaves both out:
    /// nobody could say which of them a call is about, and only one of them was looked at.
    fn take_again(&mut self, name: &str, item: &str, shown: String, repeated: bool) {
        let key = self.kind.key();
        let is_it =
            |have: &RawValue| edit::get(have.get(), key).and_then(edit::string).as_deref() == Some(name);
        let same = self.items.iter().find(|have| is_it(have)).map(|have| have.get() == item);
        match same {
            Some(true) if repeated => {}
            Some(true) => {
                let noun = self.kind.noun();
                self.warnings.push(format!("the {noun} `{shown}` is listed twice"));
            }
            Some(false) => {
                self.items.retain(|have| !is_it(have));
                self.dropped.push((shown, "it is listed twice, with different definitions".to_owned()));
            }
            // Left out already, with its reason.
            None => {}
        }
    }
}

/// The key of a definition, or why it cannot be offered.
fn usable_name(kind: ListKind, item: &str, repeated: bool) -> Result<String, String> {
    if !item.starts_with('{') {
        return Err("it is no object".to_owned());
    }
    let name = edit::get(item, kind.key()).and_then(edit::string).unwrap_or_default();
    if name.is_empty() {
        return Err(format!("it has no {}", kind.key().trim_start_matches('/')));
    }
    if kind == ListKind::Tools {
        let schema = check_schema(item)?;
        if repeated {
            // A call whose headers cannot be made rightly would be refused, or read differently on the way.
            headers::annotations(schema).map_err(|error| error.to_string())?;
        }
    }
    Ok(name)
}

fn check_schema(tool: &str) -> Result<&str, String> {
    let schema = edit::get(tool, "/inputSchema").ok_or("it has no inputSchema")?;
    let is_object = edit::get(schema, "/type").and_then(edit::string).is_some_and(|kind| kind == "object");
    if !schema.starts_with('{') || !is_object {
        return Err(
            "its inputSchema is no schema of an object (`\"type\": \"object\"` is missing)".to_owned()
        );
    }
    Ok(schema)
}

/// A name for a report: the definition's own, made visible, or its place in the list.
fn shown_name(kind: ListKind, item: &str, index: usize) -> String {
    let name = edit::get(item, kind.key()).and_then(edit::string).unwrap_or_default();
    if name.is_empty() { format!("#{index}") } else { quote(&name, 100) }
}

#[cfg(test)]
mod tests;
