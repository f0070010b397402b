//! What the server offers: the same tools, prompts and resources as its siblings in other SDKs.

use std::sync::Arc;

use rmcp::model::{
    CallToolResult, ContentBlock, ElicitRequestParams, JsonObject, Prompt, PromptArgument, Resource,
    ResourceContents, ResourceTemplate, Tool,
};
use serde_json::{Value, json};

/// An image of one pixel, as base64 text.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYAAAAAIAAeIhvDMAAAAASUVORK5CYII=";

/// All tools, with the one that comes later where it is there.
pub(crate) fn tools(grown: bool) -> Vec<Tool> {
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let none = json!({ "type": "object", "properties": {} });
    let numbers = json!({
        "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "integer" } },
        "required": ["a", "b"],
    });
    let total = json!({
        "type": "object", "properties": { "total": { "type": "integer" } }, "required": ["total"],
    });
    let count = json!({
        "type": "object", "properties": { "count": { "type": "integer" } }, "required": ["count"],
    });
    let mut tools = vec![
        tool("echo", "Gives back its text.", text("text")),
        tool("sum", "Adds two numbers.", numbers).with_raw_output_schema(object(total)),
        tool("pieces", "One piece of each kind.", none.clone()),
        tool("fail", "Fails as tools fail.", none.clone()),
        tool("steps", "Says how far it is.", count),
        tool("ask", "Asks why.", none.clone()),
        tool("job", "Takes its time.", none.clone()),
        tool("touch", "Says that a resource changed.", text("uri")),
        tool("grow", "Adds a tool, or takes it away again.", none.clone()),
        tool("hang", "Runs until it is cancelled.", text("key")),
        tool("ended", "How a hanging call ended.", text("key")),
    ];
    if grown {
        tools.push(tool("grown", "A tool that came later.", none));
    }
    tools
}

/// One piece of content of each kind.
pub(crate) fn pieces() -> CallToolResult {
    CallToolResult::success(vec![
        ContentBlock::text("a text"),
        ContentBlock::image(PIXEL, "image/png"),
        ContentBlock::resource_link(Resource::new("matrix://static", "static").with_mime_type("text/plain")),
        ContentBlock::embedded_text("matrix://item/1", "item 1"),
    ])
}

/// What the tool `ask` asks.
pub(crate) fn question() -> Result<ElicitRequestParams, serde_json::Error> {
    serde_json::from_value(json!({
        "mode": "form",
        "message": "Why is that?",
        "requestedSchema": {
            "type": "object",
            "properties": { "reason": { "type": "string", "description": "In a few words." } },
            "required": ["reason"],
        },
    }))
}

/// All prompts.
pub(crate) fn prompts() -> Vec<Prompt> {
    let who = PromptArgument::new("who").with_description("Whom to greet.").with_required(true);
    vec![Prompt::new("greet", Some("Greets somebody."), Some(vec![who]))]
}

/// All resources.
pub(crate) fn resources() -> Vec<Resource> {
    vec![Resource::new("matrix://static", "static").with_mime_type("text/plain")]
}

/// All templates.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    vec![ResourceTemplate::new("matrix://item/{id}", "item").with_mime_type("text/plain")]
}

/// What a URI holds.
pub(crate) fn contents(uri: &str) -> Option<ResourceContents> {
    let text = match uri.strip_prefix("matrix://")?.split_once('/') {
        None if uri == "matrix://static" => "the static text".to_owned(),
        Some(("item", id)) => format!("item {id}"),
        _ => return None,
    };
    Some(ResourceContents::TextResourceContents {
        uri: uri.to_owned(),
        mime_type: Some("text/plain".to_owned()),
        text,
        meta: None,
    })
}

fn tool(name: &'static str, description: &'static str, schema: Value) -> Tool {
    Tool::new(name, description, object(schema))
}

fn object(value: Value) -> Arc<JsonObject> {
    match value {
        Value::Object(object) => Arc::new(object),
        _ => Arc::default(),
    }
}
