//! How a server is reached: which keys belong to which transport, and the values of each.
//!
//! Threat: an empty variable in a header sends `Authorization: Bearer ` (FT-15), a line break in a
//! value adds a header, a header that Toolgate sets itself is overridden. Values are never shown.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toolgate_base::Secret;
use toolgate_net::Url;

use crate::commandline;
use crate::error::Level;
use crate::node::Text;
use crate::read::fields::Fields;
use crate::read::{Item, Reader};
use crate::server::{Shown, Transport, looks_like_secret};

use super::Layer;

/// Headers the connection sets itself.
const OWN_HEADERS: [&str; 10] = [
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-protocol-version",
    "mcp-session-id",
    "te",
    "transfer-encoding",
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Stdio,
    Http,
    Sse,
}

type Read = (Transport, Vec<String>, Shown);

/// Reads the transport, the variables without which it is not connected, and what may be shown.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &mut Fields,
    whole: &Item,
    layer: &Layer,
) -> Option<Read> {
    let stdio = ["command", "args", "env", "cwd"].map(|key| fields.take(key));
    let http = ["url", "headers"].map(|key| fields.take(key));
    let named = fields.take("transport");
    let kind = kind(reader, named.as_ref(), stdio[0].is_some(), http[0].is_some(), whole)?;
    if kind == Kind::Stdio {
        refuse_all(reader, http, "stdio");
        let [command, args, env, cwd] = stdio;
        return read_stdio(reader, whole, layer, [command, args, env, cwd]);
    }
    refuse_all(reader, stdio, if kind == Kind::Sse { "sse" } else { "streamable-http" });
    let [url, headers] = http;
    read_http(reader, whole, kind, url, headers)
}

/// Rows CFG-001, CFG-002, CFG-005, CFG-039; conflicts C04 and C05.
fn kind(
    reader: &mut Reader<'_>,
    named: Option<&Item>,
    command: bool,
    url: bool,
    whole: &Item,
) -> Option<Kind> {
    let Some(item) = named else {
        return match (command, url) {
            (true, false) => Some(Kind::Stdio),
            (false, true) => Some(Kind::Http),
            (true, true) => {
                reader.wrong(whole, "both `command` and `url`", "a server has one of them; remove the other");
                None
            }
            (false, false) => {
                reader.wrong(
                    whole,
                    "neither `command` nor `url`",
                    "give `command` for a local server, or `url` for a remote one",
                );
                None
            }
        };
    };
    let choices = [
        ("stdio", Kind::Stdio),
        ("streamable-http", Kind::Http),
        ("streamable_http", Kind::Http),
        ("http", Kind::Http),
        ("sse", Kind::Sse),
    ];
    let kind = reader.choice(item, &choices)?;
    let written = reader.text(item)?.value;
    if kind == Kind::Http && written != "streamable-http" {
        reader.notice(Level::Info, item, format!("`{written}` is read as streamable-http"));
    }
    Some(kind)
}

/// A key of another transport is refused, not ignored (CFG-022, CFG-061).
fn refuse_all<const N: usize>(reader: &mut Reader<'_>, items: [Option<Item>; N], transport: &str) {
    for item in items.into_iter().flatten() {
        let fix = "remove it, or change the transport";
        reader.wrong(&item, format!("a {transport} server has no such key"), fix);
    }
}

fn read_stdio(
    reader: &mut Reader<'_>,
    whole: &Item,
    layer: &Layer,
    [command, args, env, cwd]: [Option<Item>; 4],
) -> Option<Read> {
    let Some(item) = command else {
        reader.wrong(whole, "`command` is missing", "a stdio server needs the program to start");
        return None;
    };
    let text = reader.filled(&item)?;
    let mut missing = text.missing.clone();
    let words = read_command(reader, &item, &text)?;
    let mut words = words.into_iter();
    let program = words.next()?;
    let mut rest: Vec<Text> = words.collect();
    if let Some(item) = args {
        for entry in reader.list(item) {
            rest.extend(reader.scalar(&entry));
        }
    }
    for argument in &rest {
        if argument.value.contains('\0') {
            reader.wrong(&item, "an argument holds a NUL character", "remove it");
        }
    }
    refuse_relative(reader, layer, &item, &program.value);
    let resolved = commandline::resolve_program(&program.value, &reader.base, reader.home.as_deref());
    let cwd_text = cwd.as_ref().and_then(|item| {
        let text = reader.filled(item)?;
        if let Layer::Managed(_) = layer
            && !text.value.starts_with(['/', '~'])
        {
            reader.wrong(item, "a relative path in a file that Toolgate wrote", "write an absolute path");
        }
        Some(text)
    });
    missing.extend(cwd_text.iter().flat_map(|text| text.missing.clone()));
    let directory: Option<PathBuf> =
        cwd_text.as_ref().map(|text| commandline::resolve(&text.value, &reader.base, reader.home.as_deref()));
    let shown = Shown {
        command: program.template.clone(),
        args: rest.iter().any(|argument| argument.template.is_some()).then(|| {
            rest.iter().map(|text| text.template.clone().unwrap_or_else(|| text.value.clone())).collect()
        }),
        cwd: cwd_text.and_then(|text| text.template),
        ..Shown::default()
    };
    let transport = Transport::Stdio {
        command: resolved,
        args: rest.into_iter().map(|text| text.value).collect(),
        env: env.map(|item| read_env(reader, item)).unwrap_or_default(),
        cwd: directory,
    };
    missing.dedup();
    Some((transport, missing, shown))
}

/// One text may hold the program and its first arguments (CFG-006). It is split as it stands in the
/// file and expanded word by word, so that a space in a variable's value makes no new argument.
fn read_command(reader: &mut Reader<'_>, item: &Item, text: &Text) -> Option<Vec<Text>> {
    if text.value.contains('\0') {
        reader.wrong(item, "the command holds a NUL character", "remove it");
        return None;
    }
    let raw = text.template.as_deref().unwrap_or(&text.value);
    let whole_is_file = || commandline::resolve(&text.value, &reader.base, reader.home.as_deref()).is_file();
    if !raw.contains(char::is_whitespace) || whole_is_file() {
        return Some(vec![text.clone()]);
    }
    let words = match commandline::split(raw) {
        Ok(words) => words,
        Err(what) => {
            reader.wrong(item, what, "");
            return None;
        }
    };
    if let Some(word) = commandline::shell_word(&words) {
        let note = format!(
            "`{word}` reaches the program as an argument, because no shell is started; \
             if a shell is meant, write command: /bin/sh and args: [\"-c\", …]"
        );
        reader.notice(Level::Warning, item, note);
    }
    let mut expanded = Vec::with_capacity(words.len());
    for word in words {
        match reader.variables.expand(&word, &mut |_, _| {}) {
            Ok(text) => expanded.push(text),
            Err(what) => {
                reader.wrong(item, what, "write `command` and `args` apart");
                return None;
            }
        }
    }
    Some(expanded)
}

fn refuse_relative(reader: &mut Reader<'_>, layer: &Layer, item: &Item, program: &str) {
    if matches!(layer, Layer::Managed(_)) && program.contains('/') && !program.starts_with(['/', '~']) {
        reader.wrong(item, "a relative path in a file that Toolgate wrote", "write an absolute path");
    }
}

fn read_env(reader: &mut Reader<'_>, item: Item) -> BTreeMap<String, Secret> {
    let mut env = BTreeMap::new();
    for (name, value) in reader.entries(item) {
        if name.name().is_empty() || name.name().contains(['=', '\0']) {
            reader.wrong(&name, "no name for a variable", "names are not empty and hold no `=`");
            continue;
        }
        let Some(text) = reader.scalar(&value) else { continue };
        if text.value.contains('\0') {
            reader.wrong(&value, "a value holds a NUL character", "remove it");
        }
        warn_of_literal(reader, &value, name.name(), &text);
        env.insert(name.name().to_owned(), Secret::new(text.value));
    }
    env
}

fn read_http(
    reader: &mut Reader<'_>,
    whole: &Item,
    kind: Kind,
    url: Option<Item>,
    headers: Option<Item>,
) -> Option<Read> {
    let Some(item) = url else {
        reader.wrong(whole, "`url` is missing", "a server over HTTP needs its endpoint");
        return None;
    };
    let text = reader.filled(&item)?;
    let mut missing = text.missing.clone();
    // Without its variables a URL is not one, and the server is not connected anyway.
    if missing.is_empty() {
        check_url(reader, &item, &text.value)?;
    }
    let headers = headers.map(|item| read_headers(reader, item, &mut missing)).unwrap_or_default();
    missing.dedup();
    let shown = Shown { url: text.template, ..Shown::default() };
    let url = text.value;
    let transport = match kind {
        Kind::Sse => Transport::Sse { url, headers },
        Kind::Stdio | Kind::Http => Transport::StreamableHttp { url, headers },
    };
    Some((transport, missing, shown))
}

fn check_url(reader: &mut Reader<'_>, item: &Item, text: &str) -> Option<()> {
    let form = "write https://HOST/PATH, or http:// for a server on this machine";
    let Ok(url) = Url::parse(text) else {
        reader.wrong(item, "no URL", form);
        return None;
    };
    let ("http" | "https", Some(host)) = (url.scheme(), url.host_str()) else {
        reader.wrong(item, "no http or https URL with a host", form);
        return None;
    };
    if url.fragment().is_some() {
        reader.wrong(item, "a URL with a fragment (`#…`), which no server sees", "remove it");
        return None;
    }
    if url.scheme() == "http" && !toolgate_net::is_loopback(host) {
        let text = "plain http to another machine: everything sent, credentials included, can be read on the way; \
                    use https if the server has it";
        reader.notice(Level::Warning, item, text);
    }
    if !url.username().is_empty() || url.password().is_some() {
        let text = "a user name or password in a URL ends up in logs, so this server is not connected to; put the \
                    header's value into secrets.env and write `headers: { Authorization: \"${NAME}\" }`";
        reader.notice(Level::Warning, item, text);
    }
    Some(())
}

pub(in crate::read) fn read_headers(
    reader: &mut Reader<'_>,
    item: Item,
    missing: &mut Vec<String>,
) -> Vec<(String, Secret)> {
    let mut headers: Vec<(String, Secret)> = Vec::new();
    for (name, value) in reader.entries(item) {
        if let Some((what, fix)) = refuse_header(name.name(), &headers) {
            reader.wrong(&name, what, fix);
            continue;
        }
        let Some(text) = reader.scalar(&value) else { continue };
        if !text.value.bytes().all(|byte| byte == b'\t' || (byte >= 0x20 && byte != 0x7f)) {
            reader.wrong(
                &value,
                "a header value with a line break or control character",
                "remove it; look at the variables in it",
            );
            continue;
        }
        warn_of_literal(reader, &value, name.name(), &text);
        missing.extend(text.missing);
        headers.push((name.name().to_owned(), Secret::new(text.value.trim())));
    }
    headers
}

fn refuse_header(name: &str, known: &[(String, Secret)]) -> Option<(&'static str, &'static str)> {
    // The token of RFC 9110, section 5.6.2.
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let lower = name.to_ascii_lowercase();
    if name.is_empty() || !name.bytes().all(token) {
        return Some(("no name for a header", "use letters, digits and `-`"));
    }
    if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("mcp-") {
        return Some(("Toolgate sets this header itself", "remove it"));
    }
    if known.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
        return Some(("this header is here twice; case does not count", "keep one of the two"));
    }
    None
}

/// SEC-014: literals that look like secrets are warned about; the value is not repeated.
fn warn_of_literal(reader: &mut Reader<'_>, item: &Item, name: &str, text: &Text) {
    if text.template.is_none() && looks_like_secret(name, &text.value) {
        let note = "this looks like a secret in the clear; store it with `toolgate secret set NAME` and write `${NAME}`";
        reader.notice(Level::Warning, item, note);
    }
}
