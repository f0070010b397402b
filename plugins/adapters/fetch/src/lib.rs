//! Limits what a fetch server may be asked for, and turns the HTML that it gives into text.
//!
//! Settings: `{"tools": ["fetch"], "url": "/url", "length": "/max_length", "schemes": ["https"],
//! "hosts": ["*.example.com"], "max_length": 20000, "max_text": 65536, "html": "text"}`; that is the
//! default, but for `hosts`, which is every host. The URL has to be one that every reader takes
//! alike: a scheme of the list, a host, perhaps a port, and no user name, control character,
//! backslash or blank. A host that is an address of this machine, of a private network or of a link,
//! or a name that only such networks know, is refused in each of its spellings. The length that is
//! asked for is cut to `max_length`, and set where it is missing.
//!
//! On the result every text that is HTML becomes its words (`html: keep` leaves it), without
//! scripts, styles and comments, and every text is cut to `max_text` bytes, which it then says.
//!
//! What remains: this adapter resolves no name, so a public name that leads to a private address
//! passes; the server's own checks have to stop that.

mod address;
mod html;

use serde::Deserialize;
use toolgate_sdk::adapter::Change;
use toolgate_sdk::{Adapter, Document, Edit, Error, Request, document, settings};

/// The adapter `toolgate/fetch`.
pub struct Fetch {
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    tools: Vec<String>,
    url: String,
    length: String,
    schemes: Vec<String>,
    hosts: Option<Vec<String>>,
    max_length: u64,
    max_text: usize,
    html: Html,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Html {
    Text,
    Keep,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tools: vec!["fetch".to_owned()],
            url: "/url".to_owned(),
            length: "/max_length".to_owned(),
            schemes: vec!["https".to_owned()],
            hosts: None,
            max_length: 20_000,
            max_text: 64 << 10,
            html: Html::Text,
        }
    }
}

impl Adapter for Fetch {
    fn configure() -> Result<Self, Error> {
        Ok(Self { settings: settings::parse()? })
    }

    fn arguments(&self, request: &Request) -> Change {
        if !self.settings.tools.contains(&request.name()) {
            return Change::Unchanged;
        }
        let Some(arguments) = request.document() else {
            return Change::Fail("this tool needs a URL".to_owned());
        };
        match self.asked(&arguments) {
            Ok(edits) if edits.is_empty() => Change::Unchanged,
            Ok(edits) => Change::Patch(edits),
            Err(why) => Change::Fail(why),
        }
    }

    fn content(&self, request: &Request) -> Change {
        if !self.settings.tools.contains(&request.name()) {
            return Change::Unchanged;
        }
        let Some(result) = request.document() else { return Change::Unchanged };
        match self.given(&result) {
            Ok(edits) if edits.is_empty() => Change::Unchanged,
            Ok(edits) => Change::Patch(edits),
            Err(fault) => Change::Fail(format!("the result cannot be read: {fault}")),
        }
    }
}

impl Fetch {
    /// The edits that make a request one that may be sent, or why it may not.
    fn asked(&self, arguments: &Document) -> Result<Vec<Edit>, String> {
        let unread = |fault: Error| format!("the arguments cannot be read: {fault}");
        let url = arguments.text(&self.settings.url).map_err(unread)?;
        let url = url.ok_or_else(|| format!("this tool needs a URL, a string at {}", self.settings.url))?;
        address::check(&url, &self.settings.schemes, self.settings.hosts.as_deref())?;
        let length =
            document::parse::<serde_json::Value>(arguments, &self.settings.length).map_err(unread)?;
        Ok(self.cut_length(length.as_ref()).into_iter().collect())
    }

    fn cut_length(&self, asked: Option<&serde_json::Value>) -> Option<Edit> {
        let most = self.settings.max_length;
        if asked.and_then(serde_json::Value::as_u64).is_some_and(|asked| asked <= most) {
            return None;
        }
        Some(Edit { pointer: self.settings.length.clone(), value: Some(most.to_string()) })
    }

    /// The edits that make words of what came back.
    fn given(&self, result: &Document) -> Result<Vec<Edit>, Error> {
        let mut edits = Vec::new();
        for pointer in result.strings("/content")?.into_iter().filter(|pointer| pointer.ends_with("/text")) {
            if let Some(text) = result.text(&pointer)? {
                let changed = self.reworked(&text);
                if let Some(changed) = changed {
                    let value = Some(serde_json::Value::String(changed).to_string());
                    edits.push(Edit { pointer, value });
                }
            }
        }
        Ok(edits)
    }

    /// A text as the client gets it; none where it stays as it is.
    fn reworked(&self, text: &str) -> Option<String> {
        let words = (self.settings.html == Html::Text && html::is_html(text)).then(|| html::to_text(text));
        let now = words.as_deref().unwrap_or(text);
        if now.len() <= self.settings.max_text {
            return words;
        }
        let mut end = self.settings.max_text;
        while !now.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        let kept = now.get(..end).unwrap_or_default();
        Some(format!("{kept}\n[cut by Toolgate: {} of {} bytes]", kept.len(), now.len()))
    }
}

toolgate_sdk::adapter!(Fetch);

#[cfg(test)]
mod tests;
