//! One entry of `servers`, or the body of a file of the managed layer (rows CFG-*).

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_base::Timeouts;
use toolgate_grants::Grants;

use crate::error::{Level, quoted};
use crate::node::Text;
use crate::places::Places;
use crate::server::{
    AdapterUse, Instance, Origin, Protocol, Questions, Restarts, Server, Shown, ToolFilter, Trust,
};

use super::fields::Fields;
use super::grants::{read_grants, without_values};
use super::{Item, Reader, keys};

mod transport;

pub(super) use transport::read_headers;

/// Prefixes of names that only built-in servers have (RSV-003, C36).
const RESERVED: [&str; 2] = ["__talond_", "__toolgate_"];

/// The format of a file of the managed layer that this version writes, and the newest it reads.
pub(crate) const FORMAT: u64 = 1;

/// Which layer an entry stands in.
pub(crate) enum Layer {
    Operator,
    /// The file, whose personas are named by `bind`.
    Managed(PathBuf),
}

/// Reads one entry and, for the managed layer, the personas it is bound to. `None`: a mistake, which
/// the reader has.
pub(crate) fn read_server(
    reader: &mut Reader<'_>,
    name: &Item,
    body: Item,
    layer: &Layer,
) -> Option<(Server, Vec<String>)> {
    let before = reader.problems.len();
    check_name(reader, name);
    let whole = Item { node: body.node.clone(), key: body.key.clone() };
    let mut fields = reader.fields(body, &keys::SERVER)?;
    let bind = read_layer(reader, &mut fields, layer);
    // Where the transport is wrong the rest is read all the same, so that one run shows every mistake.
    let mut server = Server::stdio(name.name(), "", Vec::new());
    server.held = whole.node.held();
    let transport = transport::read(reader, &mut fields, &whole, layer);
    let is_reachable = transport.is_some();
    if let Some(transport) = transport {
        (server.transport, server.missing_env, server.shown) = transport;
    }
    if let Layer::Managed(path) = layer {
        server.origin = Origin::Managed(path.clone());
    }
    read_plain(reader, &mut fields, &mut server);
    if let Some(item) = fields.take("timeouts") {
        server.timeouts = read_timeouts(reader, item);
    }
    if let Some(item) = fields.take("restarts") {
        server.restarts = read_restarts(reader, item);
    }
    if let Some(item) = fields.take("max_connections") {
        server.max_connections = reader.count(&item, 1, 65_536).unwrap_or(server.max_connections);
    }
    if let Some(item) = fields.take("tools") {
        server.tools = read_tools(reader, item);
    }
    server.questions = read_questions(reader, &mut fields);
    if let Some(item) = fields.take("trust") {
        server.trust = read_trust(reader, item);
    }
    if let Some(item) = fields.take("adapter") {
        server.adapter = read_adapter(reader, item, &mut server.shown);
    }
    (is_reachable && reader.problems.len() == before).then_some((server, bind))
}

fn check_name(reader: &mut Reader<'_>, name: &Item) {
    if let Some(prefix) = RESERVED.iter().find(|prefix| name.name().starts_with(**prefix)) {
        let what = format!("names that begin with `{prefix}` belong to built-in servers");
        reader.wrong(name, what, "choose another name");
    } else if let Err(error) = toolgate_labels::check_server_name(name.name()) {
        reader.wrong(name, error.to_string(), "use letters, digits, `.`, `_` and `-`, without `__`");
    }
}

/// The keys that only a managed file has.
fn read_layer(reader: &mut Reader<'_>, fields: &mut Fields, layer: &Layer) -> Vec<String> {
    let (bind, format) = (fields.take("bind"), fields.take("format"));
    if let Layer::Operator = layer {
        for item in [bind, format].into_iter().flatten() {
            let fix = "name the server under personas.<name>.servers";
            reader.wrong(&item, "only files under servers.d have this key", fix);
        }
        return Vec::new();
    }
    if let Some(item) = format {
        reader.number(&item, 1, FORMAT);
    }
    bind.map(|item| reader.texts(item)).unwrap_or_default()
}

fn read_plain(reader: &mut Reader<'_>, fields: &mut Fields, server: &mut Server) {
    if let Some(item) = fields.take("enabled") {
        server.enabled = reader.flag(&item).unwrap_or(true);
    }
    if let Some(item) = fields.take("protocol") {
        let choices =
            [("auto", Protocol::Auto), ("legacy", Protocol::Legacy), ("2026-07-28", Protocol::Modern)];
        server.protocol = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("instance") {
        let choices = [
            ("per-caller", Instance::PerCaller),
            ("session", Instance::Session),
            ("shared", Instance::Shared),
        ];
        server.instance = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("rate_limit") {
        server.rate_limit = read_rate_limit(reader, item);
    }
    if let Some(item) = fields.take("description") {
        server.description = reader.filled(&item).map(|text| text.value);
    }
}

/// `rate_limit: { requests_per_minute: N }`; no entry is no limit (design, section 9; row RL-004).
fn read_rate_limit(reader: &mut Reader<'_>, item: Item) -> Option<NonZeroU32> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::RATE_LIMIT)?;
    let Some(item) = fields.take("requests_per_minute") else {
        reader.wrong(
            &whole,
            "`requests_per_minute` is missing",
            "write rate_limit: { requests_per_minute: 60 }",
        );
        return None;
    };
    let number = reader.number(&item, 1, 1_000_000)?;
    u32::try_from(number).ok().and_then(NonZeroU32::new)
}

/// What becomes of the server's own questions; `refuse` and `prompt` are what is not written.
fn read_questions(reader: &mut Reader<'_>, fields: &mut Fields) -> Questions {
    const LEAST: Duration = Duration::from_millis(1);
    let mut questions = Questions::default();
    if let Some(item) = fields.take("elicitation") {
        let choices = [("prompt", false), ("auto_decline", true)];
        questions.auto_decline = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("elicitation_timeout") {
        questions.timeout = reader.duration(&item, LEAST).unwrap_or(questions.timeout);
    }
    let slots = [
        ("sampling", &mut questions.sampling),
        ("roots", &mut questions.roots),
        ("logging", &mut questions.logging),
    ];
    for (key, slot) in slots {
        if let Some(item) = fields.take(key) {
            *slot = reader.choice(&item, &[("refuse", false), ("forward", true)]).unwrap_or_default();
        }
    }
    questions
}

fn read_timeouts(reader: &mut Reader<'_>, item: Item) -> Timeouts {
    const LEAST: Duration = Duration::from_millis(1);
    let mut timeouts = Timeouts::default();
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let Some(mut fields) = reader.fields(item, &keys::TIMEOUTS) else { return timeouts };
    for (key, slot) in [
        ("init", &mut timeouts.init),
        ("call", &mut timeouts.call),
        ("probe", &mut timeouts.probe),
        ("max_total", &mut timeouts.max_total),
        ("task_lost", &mut timeouts.task_lost),
    ] {
        if let Some(item) = fields.take(key) {
            *slot = reader.duration(&item, LEAST).unwrap_or(*slot);
        }
    }
    if timeouts.call > timeouts.max_total {
        reader.wrong(&whole, "`call` is longer than `max_total`", "raise max_total, or lower call");
    }
    timeouts
}

fn read_restarts(reader: &mut Reader<'_>, item: Item) -> Restarts {
    const LEAST: Duration = Duration::from_millis(1);
    let mut restarts = Restarts::default();
    let Some(mut fields) = reader.fields(item, &keys::RESTARTS) else { return restarts };
    for (key, slot) in
        [("first", &mut restarts.first), ("longest", &mut restarts.longest), ("within", &mut restarts.within)]
    {
        if let Some(item) = fields.take(key) {
            *slot = reader.duration(&item, LEAST).unwrap_or(*slot);
        }
    }
    if let Some(item) = fields.take("starts") {
        restarts.starts = reader.count(&item, 1, 1_000).unwrap_or(restarts.starts);
    }
    restarts
}

fn read_tools(reader: &mut Reader<'_>, item: Item) -> ToolFilter {
    let mut tools = ToolFilter::default();
    let Some(mut fields) = reader.fields(item, &keys::TOOLS) else { return tools };
    if let Some(item) = fields.take("allow") {
        let place = Item { node: item.node.clone(), key: item.key.clone() };
        tools.allow = reader.texts(item);
        if tools.allow.is_empty() {
            let text =
                "an empty list allows every tool; to hide tools, list them under deny, or set enabled: false";
            reader.notice(Level::Info, &place, text);
        }
    }
    if let Some(item) = fields.take("deny") {
        tools.deny = reader.texts(item);
    }
    tools
}

fn read_trust(reader: &mut Reader<'_>, item: Item) -> Trust {
    let mut trust = Trust::default();
    let Some(mut fields) = reader.fields(item, &keys::TRUST) else { return trust };
    if let Some(item) = fields.take("auto_approve_tools") {
        trust.auto_approve_tools = reader.texts(item);
    }
    if let Some(item) = fields.take("pinned_tool_hash")
        && let Some(text) = reader.filled(&item)
    {
        if text.value.parse::<toolgate_signing::Digest>().is_ok() {
            trust.pinned_tool_hash = Some(text.value);
        } else {
            let fix = "write sha256: and 64 hexadecimal digits, as `toolgate mcp pin` prints it";
            reader.wrong(&item, "no digest", fix);
        }
    }
    if let Some(item) = fields.take("host_escape") {
        trust.host_escape = reader.flag(&item).unwrap_or_default();
    }
    trust
}

fn read_adapter(reader: &mut Reader<'_>, item: Item, shown: &mut Shown) -> Option<AdapterUse> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::ADAPTER)?;
    let Some(named) = fields.take("plugin") else {
        reader.wrong(&whole, "`plugin` is missing", "name the adapter, such as toolgate/filesystem");
        return None;
    };
    let Text { value: plugin, .. } = reader.filled(&named)?;
    if !super::is_plugin_name(&plugin) {
        let what = format!("{} is no name of a plugin", quoted(&plugin));
        reader.wrong(&named, what, "write owner/name, such as toolgate/filesystem");
        return None;
    }
    let mut settings_places = Places::default();
    let settings_json = match fields.take("settings") {
        Some(item) => {
            settings_places = reader.places(&item);
            let (settings, display) = reader.object(&item)?;
            shown.settings = Some(display);
            settings.to_string()
        }
        None => "{}".to_owned(),
    };
    let mut granted = Grants::default();
    if let Some(item) = fields.take("grants") {
        shown.grants = reader.object(&item).map(|(_, display)| without_values(display));
        granted = read_grants(reader, item);
    }
    Some(AdapterUse { plugin, settings_json, settings_places, granted })
}
