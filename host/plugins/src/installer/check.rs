//! What a plan may say before anybody is shown it.
//!
//! Contract: a plan that passes names one server that could be written into a configuration as it stands:
//! a usable name, a command or a URL that is not blank, names that are names, digests that are digests. What
//! it is worth is for policies and a person to say.
//!
//! Threat: an installer, or the source that it reads, proposes what would take more than the plan shows. A
//! literal cannot name a variable of the operator's (`${TOKEN}` would be filled in when the entry is read),
//! credentials come by a secret that the person is asked for and never in the plan, a URL leads to no address
//! of this machine's network or of a cloud's credentials, a file that is fetched has a digest and stays below
//! the server's own directory, and nothing holds a control character. Source: FM-03, FM-13, FR-25.

use std::collections::BTreeSet;

use toolgate_labels::check_server_name;
use toolgate_net::{AddressClass, Url, class_of_host};
use toolgate_signing::Digest;

use super::plan::{Artifact, Binding, CommandLine, Endpoint, Launch, Plan, Value};

/// Longest single text of a plan, bytes.
const MAX_TEXT: usize = 4096;
/// Longest name of a secret or a setting.
const MAX_NAME: usize = 128;
/// Headers that hold who somebody is: never a literal.
const CREDENTIALS: [&str; 5] =
    ["authorization", "proxy-authorization", "cookie", "x-api-key", "x-auth-token"];

type Checked = Result<(), String>;

/// What is wrong with a plan, with the place in it.
pub(super) fn check(plan: &Plan) -> Checked {
    filled("id", &plan.id)?;
    check_server_name(&plan.suggested_name)
        .map_err(|error| format!("suggested-name cannot be the name of a server: {error}"))?;
    for (place, text) in [("version", &plan.version), ("runtime", &plan.runtime)] {
        if let Some(text) = text {
            word(place, text)?;
        }
    }
    match &plan.launch {
        Launch::Stdio(command) => stdio(command)?,
        Launch::Http(endpoint) => http(endpoint)?,
    }
    let mut paths = BTreeSet::new();
    for (index, artifact) in plan.artifacts.iter().enumerate() {
        let at = format!("artifacts[{index}]");
        file(&at, artifact)?;
        if !paths.insert(artifact.path.as_str()) {
            return Err(format!("{at}.path is that of another artifact"));
        }
    }
    Ok(())
}

fn stdio(command: &CommandLine) -> Checked {
    word("launch.program", &command.program)?;
    for (index, argument) in command.arguments.iter().enumerate() {
        value(&format!("launch.arguments[{index}]"), argument)?;
    }
    bindings("launch.environment", &command.environment, is_variable, str::to_owned, |_| false)
}

fn http(endpoint: &Endpoint) -> Checked {
    if !["streamable-http", "sse"].contains(&endpoint.transport.as_str()) {
        return Err(format!("launch.transport is `{}`; streamable-http and sse are", endpoint.transport));
    }
    address("launch.url", &endpoint.url, true)?;
    bindings("launch.headers", &endpoint.headers, is_header, str::to_ascii_lowercase, |name| {
        CREDENTIALS.contains(&name)
    })
}

/// Names that are names, each once in the form in which they are `told` apart; no credential as it is.
fn bindings(
    at: &str,
    list: &[Binding],
    is_name: impl Fn(&str) -> bool,
    told: impl Fn(&str) -> String,
    is_credential: impl Fn(&str) -> bool,
) -> Checked {
    let mut names = BTreeSet::new();
    for binding in list {
        let name = &binding.name;
        if !is_name(name) {
            return Err(format!("{at} has `{}`, which is no name there", shown(name)));
        }
        if !names.insert(told(name)) {
            return Err(format!("{at}.{name} stands there twice"));
        }
        value(&format!("{at}.{name}"), &binding.value)?;
        if is_credential(&told(name)) && matches!(binding.value, Value::Literal(_)) {
            return Err(format!(
                "{at}.{name} holds a credential; a plan names a secret that the host asks for"
            ));
        }
    }
    Ok(())
}

fn value(at: &str, value: &Value) -> Checked {
    match value {
        Value::Literal(text) => literal(at, text),
        Value::Secret(name) | Value::Setting(name) if is_variable(name) => Ok(()),
        Value::Secret(name) | Value::Setting(name) => {
            Err(format!("{at} asks for `{}`; a name has letters, digits and `_`", shown(name)))
        }
    }
}

/// A text that is taken as it is.
fn literal(at: &str, text: &str) -> Checked {
    if text.contains("${") {
        return Err(format!(
            "{at} names a variable of the operator's; what it needs it declares as a secret or a setting"
        ));
    }
    plain(at, text)
}

/// One word of a command line.
fn word(at: &str, text: &str) -> Checked {
    filled(at, text)?;
    if text.chars().any(char::is_whitespace) {
        return Err(format!("{at} has white space; arguments stand apart, and no shell reads them"));
    }
    literal(at, text)
}

fn filled(at: &str, text: &str) -> Checked {
    if text.trim().is_empty() {
        return Err(format!("{at} is blank"));
    }
    plain(at, text)
}

fn plain(at: &str, text: &str) -> Checked {
    if text.len() > MAX_TEXT {
        return Err(format!("{at} has {} bytes, and the limit is {MAX_TEXT}", text.len()));
    }
    if text.chars().any(char::is_control) {
        return Err(format!("{at} has a control character"));
    }
    Ok(())
}

/// A URL of somebody else's machine; of this one by plain http where `local` says so.
fn address(at: &str, text: &str, local: bool) -> Checked {
    filled(at, text)?;
    literal(at, text)?;
    let url = Url::parse(text).map_err(|_| format!("{at} is no URL"))?;
    let host = url.host_str().unwrap_or_default();
    let class = class_of_host(host);
    let fits = match url.scheme() {
        // What a name stands for is judged when it is dialled, each time.
        "https" => {
            matches!(class, AddressClass::Public | AddressClass::Unknown) || (local && class.is_loopback())
        }
        "http" => local && class.is_loopback(),
        _ => false,
    };
    if host.is_empty() || !fits {
        return Err(format!(
            "{at} is `{}`; it has to be https, to no address of a private network",
            shown(text)
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(format!("{at} holds a user name or a password"));
    }
    Ok(())
}

/// What is fetched and may be run: by https, with the digest of its bytes, below the server's directory.
fn file(at: &str, artifact: &Artifact) -> Checked {
    address(&format!("{at}.url"), &artifact.url, false)?;
    let hex = artifact.digest.strip_prefix("sha256:").unwrap_or_default();
    if Digest::from_hex(hex).is_err() {
        return Err(format!(
            "{at}.digest is no sha256:<64 hex digits>; nothing is run that nobody can compare"
        ));
    }
    let place = format!("{at}.path");
    filled(&place, &artifact.path)?;
    literal(&place, &artifact.path)?;
    let inside = |part: &str| !part.is_empty() && part != "." && part != "..";
    if artifact.path.contains(['\\', ':']) || !artifact.path.split('/').all(inside) {
        return Err(format!("{place} leads out of the server's own directory"));
    }
    Ok(())
}

fn is_variable(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

/// RFC 9110, section 5.6.2: a token.
fn is_header(name: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(token)
}

/// A text of the plan's in a message.
fn shown(text: &str) -> String {
    crate::text::reason(&text.chars().take(80).collect::<String>())
}

#[cfg(test)]
mod tests;
