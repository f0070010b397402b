//! `plugins.hosts`: hosts that plugins come from, with their authority, their network and a sign-in.

use toolgate_base::Secret;
use toolgate_net::Url;

use crate::commandline::resolve;
use crate::index::SourceHost;

use super::{Item, Reader, keys};

pub(super) fn read_hosts(reader: &mut Reader<'_>, item: Item) -> Vec<SourceHost> {
    let mut all: Vec<SourceHost> = Vec::new();
    for entry in reader.list(item) {
        let whole = Item { node: entry.node.clone(), key: entry.key.clone() };
        let Some(host) = read_host(reader, entry) else { continue };
        if all.iter().any(|known| known.host == host.host) {
            reader.wrong(&whole, "two entries are about this host", "keep one of them");
        } else {
            all.push(host);
        }
    }
    all
}

fn read_host(reader: &mut Reader<'_>, item: Item) -> Option<SourceHost> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::HOST)?;
    let Some(named) = fields.take("host") else {
        reader.wrong(&whole, "`host` is missing", "write HOST or HOST:PORT, as registry.example:5000");
        return None;
    };
    let host = read_name(reader, &named);
    let ca = match fields.take("ca") {
        Some(item) => Some(resolve(&reader.filled(&item)?.value, &reader.base, reader.home.as_deref())),
        None => None,
    };
    let private = match fields.take("private") {
        Some(item) => reader.flag(&item)?,
        None => false,
    };
    let username = match fields.take("username") {
        Some(item) => Some(reader.filled(&item)?.value),
        None => None,
    };
    let password = match fields.take("password") {
        Some(item) => Some(read_password(reader, &item)?),
        None => None,
    };
    if username.is_some() != password.is_some() {
        reader.wrong(&whole, "`username` and `password` go together", "write both, or neither");
        return None;
    }
    let shown_password = password.as_ref().map(|(_, shown)| shown.clone()).unwrap_or_default();
    let sign_in = username.zip(password.map(|(value, _)| value));
    Some(SourceHost { host: host?, ca, private, sign_in, shown_password })
}

/// `HOST` or `HOST:PORT`, and nothing that a URL has besides.
fn read_name(reader: &mut Reader<'_>, item: &Item) -> Option<String> {
    let text = reader.filled(item)?.value;
    let url = Url::parse(&format!("https://{text}/")).ok();
    let plain = |url: &Url| {
        url.path() == "/" && url.username().is_empty() && url.password().is_none() && url.query().is_none()
    };
    let name = url.filter(plain).and_then(|url| {
        let host = url.host_str()?.to_owned();
        Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
    });
    if name.is_none() {
        reader.wrong(item, "no host", "write HOST or HOST:PORT, as registry.example:5000");
    }
    name
}

/// The value, and how it stands in the file. A literal one would be read by whoever reads the file.
fn read_password(reader: &mut Reader<'_>, item: &Item) -> Option<(Secret, String)> {
    let text = reader.filled(item)?;
    let Some(template) = text.template else {
        let fix = "write \"${NAME}\", and store the value with `toolgate secret set NAME`";
        reader.wrong(item, "a password that stands in the file", fix);
        return None;
    };
    Some((Secret::new(text.value), template))
}
