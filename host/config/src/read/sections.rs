//! The top of the file and its small blocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::commandline::resolve;
use crate::error::{Place, Problem, quoted};
use crate::model::{Approvals, Audit, FirstUse, Pins, Plugins, Serve};
use crate::node::{Node, Value};
use crate::permissions::{Permissions, read_permissions};
use crate::persona::Persona;
use crate::server::Server;

use super::persona::Enabled;
use super::skills::Skills;
use super::{Item, Layer, Reader, keys, read_server};

/// What the operator's file says, before the layers are put together.
#[derive(Default)]
pub(crate) struct Top {
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) missing_is_error: bool,
    /// `None`: not said, which means on.
    pub(crate) managed: Option<bool>,
    pub(crate) serve: Serve,
    pub(crate) servers: BTreeMap<String, Server>,
    /// `None`: the file has no `personas`.
    pub(crate) personas: Option<BTreeMap<String, Persona>>,
    /// Which persona names which server, and where; checked once every layer is known.
    pub(crate) bindings: Vec<Binding>,
    pub(crate) skills: Skills,
    pub(crate) permissions: Permissions,
    pub(crate) approvals: Approvals,
    pub(crate) pins: Pins,
    pub(crate) plugins: Plugins,
    pub(crate) audit: Audit,
}

/// One name in `personas.<name>.servers`.
pub(crate) struct Binding {
    pub(crate) persona: String,
    pub(crate) server: String,
    /// The label that names it, where that is no binding but a list of `capabilities`.
    pub(crate) label: Option<String>,
    pub(crate) place: Place,
}

/// Reads the operator's file. Mistakes are in the reader.
pub(crate) fn read_top(reader: &mut Reader<'_>, node: Node) -> Top {
    let mut top = Top::default();
    let mut enabled = Vec::new();
    let Some(mut fields) = reader.fields(Item { node, key: String::new() }, &keys::TOP) else {
        return top;
    };
    if let Some(item) = fields.take("data_dir") {
        top.data_dir =
            reader.filled(&item).map(|text| resolve(&text.value, &reader.base, reader.home.as_deref()));
    }
    if let Some(item) = fields.take("on_missing_env") {
        top.missing_is_error = reader.choice(&item, &[("warn", false), ("error", true)]).unwrap_or_default();
    }
    if let Some(item) = fields.take("managed") {
        top.managed = read_switch(reader, &item);
    }
    if let Some(item) = fields.take("serve") {
        top.serve = read_serve(reader, item);
    }
    if let Some(item) = fields.take("servers") {
        top.servers = read_servers(reader, item);
    }
    if let Some(item) = fields.take("personas") {
        let (personas, bindings, named) = super::persona::read_personas(reader, item);
        top.personas = Some(personas);
        top.bindings = bindings;
        enabled = named;
    }
    if let Some(item) = fields.take("skills") {
        top.skills = super::skills::read_skills(reader, item, &top.servers);
    }
    refuse_unknown_skills(reader, &enabled, &top);
    if let Some(item) = fields.take("permissions") {
        let of_skills = top.skills.servers.iter().map(|server| server.name.as_str());
        let known: Vec<&str> = top.servers.keys().map(String::as_str).chain(of_skills).collect();
        top.permissions = read_permissions(reader, item, &known);
    }
    if let Some(item) = fields.take("approvals") {
        top.approvals = super::approvals::read_approvals(reader, item);
    }
    if let Some(item) = fields.take("pins") {
        top.pins = read_pins(reader, item);
    }
    if let Some(item) = fields.take("plugins") {
        top.plugins = super::plugins::read_plugins(reader, item);
    }
    if let Some(item) = fields.take("audit") {
        top.audit = super::audit::read_audit(reader, item);
    }
    top
}

/// A skill that is not there is a spelling mistake: with it, servers would be missing in silence.
fn refuse_unknown_skills(reader: &mut Reader<'_>, enabled: &[Enabled], top: &Top) {
    let known: Vec<&str> = top.skills.skills.keys().map(String::as_str).collect();
    for named in enabled.iter().filter(|named| !top.skills.skills.contains_key(&named.skill)) {
        let what = format!("no skill {} stands under `skills`", quoted(&named.skill));
        let fix = super::did_you_mean(&named.skill, &known);
        reader.problems.push(Problem { place: named.place.clone(), what, fix });
    }
}

/// `on` and `off`, which are text in YAML 1.2, and the booleans people write for them.
pub(super) fn read_switch(reader: &mut Reader<'_>, item: &Item) -> Option<bool> {
    if let Value::Bool(flag) = item.node.value {
        return Some(flag);
    }
    reader.choice(item, &[("on", true), ("off", false)])
}

fn read_servers(reader: &mut Reader<'_>, item: Item) -> BTreeMap<String, Server> {
    let mut servers: BTreeMap<String, Server> = BTreeMap::new();
    for (name, body) in reader.entries(item) {
        let lower = name.name().to_lowercase();
        if let Some(other) = servers.keys().find(|known| known.to_lowercase() == lower) {
            let what = format!("this name differs from `{other}` only in case");
            reader.wrong(&name, what, "rename one; labels and file names would not tell them apart");
            continue;
        }
        if let Some((server, _)) = read_server(reader, &name, body, &Layer::Operator) {
            servers.insert(server.name.clone(), server);
        }
    }
    servers
}

fn read_serve(reader: &mut Reader<'_>, item: Item) -> Serve {
    let mut serve = Serve::default();
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let Some(mut fields) = reader.fields(item, &keys::SERVE) else { return serve };
    if let Some(item) = fields.take("listen")
        && let Some(text) = reader.filled(&item)
    {
        match parse_listen(&text.value) {
            Some(address) => serve.listen = address,
            None => reader.wrong(
                &item,
                "no address to listen on",
                "write an IP address and a port, such as 127.0.0.1:8848 or [::1]:8848",
            ),
        }
    }
    if let Some(item) = fields.take("allowed_hosts") {
        serve.allowed_hosts = reader.texts(item);
    }
    if let Some(item) = fields.take("allowed_origins") {
        serve.allowed_origins = reader.texts(item);
    }
    if let Some(item) = fields.take("keep_alive") {
        serve.keep_alive = reader.duration(&item, Duration::from_secs(1)).unwrap_or(serve.keep_alive);
    }
    for (key, slot) in [
        ("head_timeout", &mut serve.head_timeout),
        ("session_idle", &mut serve.session_idle),
        ("idle_exit", &mut serve.idle_exit),
    ] {
        if let Some(item) = fields.take(key) {
            *slot = reader.duration(&item, Duration::from_millis(100)).unwrap_or(*slot);
        }
    }
    for (key, least, most, slot) in [
        ("max_sessions", 1, 65_536, &mut serve.max_sessions),
        ("max_sessions_per_token", 1, 65_536, &mut serve.max_sessions_per_token),
        ("max_running", 1, 65_536, &mut serve.max_running),
        // Room for one reply of the largest size, at least.
        ("max_unread_mib", 17, 65_536, &mut serve.max_unread_mib),
        ("max_unread_total_mib", 64, 65_536, &mut serve.max_unread_total_mib),
        ("max_tool_name", 16, 128, &mut serve.max_tool_name),
    ] {
        if let Some(item) = fields.take(key) {
            *slot = reader.count(&item, least, most).unwrap_or(*slot);
        }
    }
    if let Some(item) = fields.take("behind_proxy") {
        serve.behind_proxy = reader.flag(&item).unwrap_or_default();
    }
    if let Some(refusal) = serve.refusal(serve.listen) {
        reader.wrong(&whole, refusal, "");
    }
    serve
}

/// `localhost` is a word for 127.0.0.1 here; other names are not resolved while a file is read.
fn parse_listen(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix("localhost:") {
        Some(port) => port.parse().ok().map(|port| SocketAddr::from(([127, 0, 0, 1], port))),
        None => text.parse().ok(),
    }
}

fn read_pins(reader: &mut Reader<'_>, item: Item) -> Pins {
    let mut pins = Pins::default();
    let Some(mut fields) = reader.fields(item, &keys::PINS) else { return pins };
    if let Some(item) = fields.take("first_use") {
        let choices = [("pin", FirstUse::Pin), ("review", FirstUse::Review)];
        pins.first_use = reader.choice(&item, &choices).unwrap_or_default();
    }
    pins
}
