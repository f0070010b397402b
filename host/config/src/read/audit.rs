//! `audit`: durability, what of the arguments is kept, and the sinks.

use toolgate_net::Url;

use crate::commandline::resolve;
use crate::model::{Arguments, Audit, Durability};
use crate::sink::{DEFAULT_KEEP, DEFAULT_ROTATE, Sink, SinkFormat, SinkTarget};

use super::address::is_safe_url;
use super::fields::Fields;
use super::server::read_headers;
use super::{Item, Reader, keys};

/// Most sinks.
const MAX_SINKS: usize = 16;
/// Longest name.
const MAX_NAME: usize = 64;
/// The port of syslog over TLS (RFC 5425, section 4.1).
const SYSLOG_PORT: u16 = 6514;

pub(super) fn read_audit(reader: &mut Reader<'_>, item: Item) -> Audit {
    let mut audit = Audit::default();
    let Some(mut fields) = reader.fields(item, &keys::AUDIT) else { return audit };
    if let Some(item) = fields.take("durability") {
        let choices = [("process", Durability::Process), ("disk", Durability::Disk)];
        audit.durability = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("arguments") {
        let choices =
            [("digest", Arguments::Digest), ("redacted", Arguments::Redacted), ("full", Arguments::Full)];
        audit.arguments = reader.choice(&item, &choices).unwrap_or_default();
    }
    if let Some(item) = fields.take("sinks") {
        audit.sinks = read_sinks(reader, item);
    }
    audit
}

fn read_sinks(reader: &mut Reader<'_>, item: Item) -> Vec<Sink> {
    let mut all: Vec<Sink> = Vec::new();
    for entry in reader.list(item) {
        let whole = Item { node: entry.node.clone(), key: entry.key.clone() };
        let Some(sink) = read_sink(reader, entry) else { continue };
        if all.iter().any(|known| known.name == sink.name) {
            reader.wrong(&whole, "two sinks have this name", "give one of them another name");
        } else if all.len() >= MAX_SINKS {
            reader.wrong(&whole, format!("more than {MAX_SINKS} sinks"), "remove some");
        } else {
            all.push(sink);
        }
    }
    all
}

/// The keys that belong to a type.
const OF_TYPE: [(&str, &[&str]); 4] = [
    ("jsonl", &["path", "rotate", "keep", "format"]),
    ("syslog", &["address", "format"]),
    ("otlp", &["url", "headers"]),
    ("webhook", &["url", "headers", "format"]),
];

fn read_sink(reader: &mut Reader<'_>, item: Item) -> Option<Sink> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::SINK)?;
    let name = needed(reader, &whole, &mut fields, "name", "call it something short, such as siem");
    let name = name.and_then(|item| read_name(reader, &item));
    let choices = OF_TYPE.map(|(word, keys)| (word, (word, keys)));
    let kind = needed(reader, &whole, &mut fields, "type", "write jsonl, syslog, otlp or webhook");
    let (kind, keys) = kind.and_then(|item| reader.choice(&item, &choices))?;
    for key in ["path", "rotate", "keep", "address", "url", "headers", "format"] {
        if !keys.contains(&key)
            && let Some(item) = fields.take(key)
        {
            reader.wrong(&item, format!("`{key}` does not go with type {kind}"), "remove it");
        }
    }
    let formats = [("toolgate", SinkFormat::Toolgate), ("ocsf", SinkFormat::Ocsf)];
    let format = fields.take("format").and_then(|item| reader.choice(&item, &formats)).unwrap_or_default();
    let mut missing = Vec::new();
    let target = match kind {
        "jsonl" => read_file(reader, &whole, &mut fields),
        "syslog" => read_syslog(reader, &whole, &mut fields),
        _ => read_http(reader, &whole, &mut fields, kind, &mut missing),
    };
    Some(Sink { name: name?, format, target: target?, missing })
}

pub(super) fn needed(
    reader: &mut Reader<'_>,
    whole: &Item,
    fields: &mut Fields,
    key: &'static str,
    fix: &str,
) -> Option<Item> {
    let found = fields.take(key);
    if found.is_none() {
        reader.wrong(whole, format!("`{key}` is missing"), fix);
    }
    found
}

fn read_name(reader: &mut Reader<'_>, item: &Item) -> Option<String> {
    let text = reader.filled(item)?.value;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() <= MAX_NAME && text.bytes().all(plain) && !text.starts_with('-') {
        return Some(text);
    }
    reader.wrong(item, "no name of a sink", "use lower-case letters, digits and `-`, at most 64");
    None
}

fn read_file(reader: &mut Reader<'_>, whole: &Item, fields: &mut Fields) -> Option<SinkTarget> {
    let path = needed(reader, whole, fields, "path", "write the path of the file")?;
    let text = reader.filled(&path)?.value;
    let path = resolve(&text, &reader.base, reader.home.as_deref());
    let rotate = match fields.take("rotate") {
        Some(item) => reader.number(&item, 4096, 1 << 40)?,
        None => DEFAULT_ROTATE,
    };
    let keep = match fields.take("keep") {
        Some(item) => reader.number(&item, 1, 1000)?,
        None => DEFAULT_KEEP,
    };
    Some(SinkTarget::Jsonl { path, rotate, keep })
}

fn read_syslog(reader: &mut Reader<'_>, whole: &Item, fields: &mut Fields) -> Option<SinkTarget> {
    let item = needed(reader, whole, fields, "address", "write HOST:PORT; it must speak TLS")?;
    let text = reader.filled(&item)?.value;
    // A URL's parser knows hosts, ports and bracketed addresses.
    let parsed = Url::parse(&format!("https://{text}")).ok().filter(|url| {
        url.path() == "/" && url.query().is_none() && url.fragment().is_none() && url.username().is_empty()
    });
    let host = parsed.as_ref().and_then(Url::host_str).map(|host| host.trim_matches(['[', ']']).to_owned());
    let (Some(url), Some(host)) = (parsed, host) else {
        reader.wrong(&item, "no address", "write HOST:PORT, as logs.example:6514");
        return None;
    };
    Some(SinkTarget::Syslog { host, port: url.port().unwrap_or(SYSLOG_PORT) })
}

fn read_http(
    reader: &mut Reader<'_>,
    whole: &Item,
    fields: &mut Fields,
    kind: &str,
    missing: &mut Vec<String>,
) -> Option<SinkTarget> {
    let item = needed(reader, whole, fields, "url", "write https://HOST/PATH")?;
    let text = reader.filled(&item)?;
    let headers = fields.take("headers").map(|item| read_headers(reader, item, missing)).unwrap_or_default();
    let is_whole = text.missing.is_empty();
    missing.extend(text.missing);
    missing.dedup();
    let safe = is_safe_url(&text.value);
    // Without its variables a URL is not one, and the sink is not served anyway.
    if is_whole && !safe {
        let fix = "write https://HOST/PATH; plain http is for a loopback address only, and a credential goes into `headers`";
        reader.wrong(&item, "no https URL", fix);
        return None;
    }
    let url = text.value;
    Some(if kind == "otlp" {
        SinkTarget::Otlp { url, headers }
    } else {
        SinkTarget::Webhook { url, headers }
    })
}
