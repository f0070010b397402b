//! The whole `tools/list` of a server, made of whatever pages it sends.
//!
//! The threats: a cursor that never ends (PR-01), one bad definition that hides all others
//! (PR-18), a definition that two readers would read differently. Pages are bounded by
//! `max_pages`; a definition is dropped alone, with its name and the reason.

use std::collections::HashSet;

use serde_json::value::RawValue;
use toolgate_wire::door::{self, DoorError};
use toolgate_wire::{Limits as DoorLimits, Outcome, edit};

use crate::ask::Failure;
use crate::connection::{Core, RequestOptions};
use crate::error::{RequestError, quote};

/// What a server lists.
#[derive(Debug, Default)]
pub struct ToolListing {
    /// The usable definitions, each as the server wrote it, in its order, names unique.
    pub tools: Vec<Box<RawValue>>,
    /// Name and reason of each definition that was left out.
    pub dropped: Vec<(String, String)>,
    /// What was odd about the listing itself.
    pub warnings: Vec<String>,
}

/// One page as far as it can be used.
#[derive(Debug, Default)]
struct Page {
    tools: Vec<String>,
    dropped: Vec<(String, String)>,
    next: Option<String>,
}

/// Follows the pages and judges every definition.
pub(crate) async fn list(core: &Core) -> Result<ToolListing, RequestError> {
    let mut listing = ToolListing::default();
    if !core.declares("/tools") {
        return Ok(listing);
    }
    let mut names = HashSet::new();
    let mut cursors: HashSet<String> = HashSet::new();
    let mut cursor: Option<String> = None;
    for _ in 0..core.hub.limits.max_pages {
        let page = fetch(core, cursor.as_deref()).await?;
        let repeats = page.next.as_ref().is_some_and(|next| cursors.contains(next));
        listing.dropped.extend(page.dropped);
        for tool in page.tools {
            listing.take(tool, &mut names, repeats);
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

/// One request; a reply that fails the door is searched for definitions that do not.
async fn fetch(core: &Core, cursor: Option<&str>) -> Result<Page, RequestError> {
    let server = || core.hub.server.clone();
    let params = cursor.map(|cursor| format!(r#"{{"cursor":{cursor}}}"#));
    let params = params.map(edit::raw).transpose().map_err(|error| RequestError::BadReply {
        server: server(),
        detail: format!("its cursor cannot be sent back: {error}"),
    })?;
    let outcome = core.request("tools/list", params.as_deref(), RequestOptions::default()).await;
    match outcome {
        Ok(Outcome::Result(result)) => page(result.get()).ok_or_else(|| RequestError::BadReply {
            server: server(),
            detail: "the reply to tools/list has no list of tools".to_owned(),
        }),
        Ok(Outcome::Error(error)) => Err(RequestError::BadReply {
            server: server(),
            detail: format!("tools/list failed with error {}: {}", error.code, quote(&error.message, 200)),
        }),
        Err(Failure { error, raw: Some(raw) }) => salvage(&raw, core.hub.limits.door()).ok_or(error),
        Err(Failure { error, raw: None }) => Err(error),
    }
}

/// A result that passed the door.
fn page(result: &str) -> Option<Page> {
    let tools = edit::elements(edit::get(result, "/tools")?).ok()?;
    Some(Page {
        tools: tools.into_iter().map(str::to_owned).collect(),
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

/// A reply that failed the door because of some of its tools: those are left out, by name. Any
/// defect outside of a definition, and what cannot be read at all, stays a failure of the page.
fn salvage(raw: &[u8], limits: DoorLimits) -> Option<Page> {
    const TOOLS: &str = "/result/tools";
    let survey = door::survey(raw, &limits).ok()?;
    let mut faults: Vec<(usize, &DoorError)> = Vec::new();
    for defect in &survey.defects {
        let place = defect.pointer.strip_prefix(TOOLS)?.strip_prefix('/')?;
        let index = place.split('/').next()?.parse().ok()?;
        faults.push((index, defect));
    }
    let tools = edit::elements(edit::get(survey.text, TOOLS)?).ok()?;
    let mut page = Page { next: next_cursor(edit::get(survey.text, "/result")?), ..Page::default() };
    for (index, tool) in tools.into_iter().enumerate() {
        match faults.iter().find(|(at, _)| *at == index) {
            Some((_, fault)) => page.dropped.push((shown_name(tool, index), fault.to_string())),
            None => page.tools.push(tool.to_owned()),
        }
    }
    Some(page)
}

impl ToolListing {
    /// Adds a definition that can be used. On a repeated page a known name is what is expected,
    /// and not worth a word.
    fn take(&mut self, tool: String, names: &mut HashSet<String>, repeated: bool) {
        let shown = shown_name(&tool, self.tools.len() + self.dropped.len());
        match usable_name(&tool) {
            Err(reason) => self.dropped.push((shown, reason)),
            Ok(name) if names.contains(&name) => {
                if !repeated {
                    self.warnings
                        .push(format!("the tool `{shown}` is listed twice; the first definition counts"));
                }
            }
            Ok(name) => match edit::raw(tool) {
                Ok(raw) => {
                    names.insert(name);
                    self.tools.push(raw);
                }
                Err(error) => self.dropped.push((shown, error.to_string())),
            },
        }
    }
}

/// The name of a definition, or why it cannot be offered.
fn usable_name(tool: &str) -> Result<String, String> {
    if !tool.starts_with('{') {
        return Err("it is no object".to_owned());
    }
    let name = edit::get(tool, "/name").and_then(edit::string).unwrap_or_default();
    if name.is_empty() {
        return Err("it has no name".to_owned());
    }
    let schema = edit::get(tool, "/inputSchema").ok_or("it has no inputSchema")?;
    let is_object = edit::get(schema, "/type").and_then(edit::string).is_some_and(|kind| kind == "object");
    if !schema.starts_with('{') || !is_object {
        return Err(
            "its inputSchema is no schema of an object (`\"type\": \"object\"` is missing)".to_owned()
        );
    }
    Ok(name)
}

/// A name for a report: the definition's own, made visible, or its place in the list.
fn shown_name(tool: &str, index: usize) -> String {
    let name = edit::get(tool, "/name").and_then(edit::string).unwrap_or_default();
    if name.is_empty() { format!("#{index}") } else { quote(&name, 100) }
}

#[cfg(test)]
mod tests;
