//! The two greetings, `server/discover` and `initialize`, and what their answers mean.

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolgate_wire::envelope::{self, Era, LEGACY, MODERN, ModernMeta};
use toolgate_wire::{ErrorObject, Outcome, codes, edit};

use super::Hello;
use crate::ask::{Ask, Failure, ask};
use crate::error::{ConnectError, RequestError, quote};
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::ServerSpec;

/// The answer to `server/discover`.
#[derive(Debug)]
pub(super) enum Verdict {
    /// The server is modern.
    Modern(Hello),
    /// It did not understand: to be initialised. Inside is what an operator who insists on the
    /// modern era is told.
    Legacy(ConnectError),
    /// It said nothing about its era.
    None(ConnectError),
}

/// The envelope of this connection's modern requests.
pub(crate) fn modern_meta(spec: &ServerSpec) -> Option<ModernMeta> {
    Some(ModernMeta {
        protocol_version: MODERN.to_owned(),
        client_capabilities: edit::raw(spec.client_capabilities.clone()).ok()?,
        client_info: edit::raw(spec.client_info.to_json()).ok(),
        log_level: None,
    })
}

/// The parameters of `initialize`.
pub(super) fn initialize_params(spec: &ServerSpec) -> String {
    let [newest, ..] = LEGACY;
    format!(
        r#"{{"protocolVersion":"{newest}","capabilities":{},"clientInfo":{}}}"#,
        spec.client_capabilities,
        spec.client_info.to_json()
    )
}

/// Asks `server/discover`. Silence is left to the caller's timeout.
pub(super) async fn discover(spec: &ServerSpec, hub: &Hub, link: &Link) -> Verdict {
    let meta = modern_meta(spec);
    let outcome = ask(hub, link, greeting(spec, "server/discover", None, meta.as_ref())).await;
    match outcome {
        Ok(Outcome::Result(result)) => discovered(&spec.name, result.get()),
        Ok(Outcome::Error(error)) => discover_error(hub, &spec.name, &error),
        Err(failure) => discover_failure(&spec.name, failure),
    }
}

/// A result counts as modern if it names the revision; `ttlMs` and `cacheScope` are not asked
/// for, as servers leave them out.
fn discovered(server: &str, result: &str) -> Verdict {
    let versions: Option<Vec<String>> = edit::get(result, "/supportedVersions")
        .and_then(|list| edit::elements(list).ok())
        .map(|list| list.into_iter().filter_map(edit::string).collect());
    let Some(versions) = versions else {
        return Verdict::Legacy(ConnectError::Handshake {
            server: server.to_owned(),
            code: codes::INTERNAL_ERROR,
            message: "its answer to server/discover names no versions".to_owned(),
        });
    };
    if !versions.iter().any(|version| version == MODERN) {
        return by_versions(server, &versions);
    }
    let server_info = edit::get(result, "/_meta/io.modelcontextprotocol~1serverInfo");
    Verdict::Modern(Hello {
        era: Era::Modern,
        version: MODERN.to_owned(),
        server_info: server_info.and_then(|info| edit::raw(info.to_owned()).ok()),
        capabilities: capabilities(result),
        instructions: edit::get(result, "/instructions").and_then(edit::string),
    })
}

/// A server that knows the modern errors is modern, unless it says that it only speaks older
/// revisions. Any other error, whatever its code, is what a legacy server says to a method it
/// does not know.
fn discover_error(hub: &Hub, server: &str, error: &ErrorObject) -> Verdict {
    let told = handshake_error(hub, server, error);
    match error.code {
        codes::UNSUPPORTED_VERSION => {
            let data = error.data.as_deref().map_or("{}", RawValue::get);
            let supported = edit::get(data, "/supported").and_then(|list| edit::elements(list).ok());
            let versions: Vec<_> = supported.into_iter().flatten().filter_map(edit::string).collect();
            by_versions(server, &versions)
        }
        codes::HEADER_MISMATCH | codes::MISSING_CLIENT_CAPABILITY => Verdict::None(told),
        _ => Verdict::Legacy(told),
    }
}

fn by_versions(server: &str, versions: &[String]) -> Verdict {
    let error =
        ConnectError::Version { server: server.to_owned(), offered: quote(&versions.join(", "), 120) };
    if versions.iter().any(|version| LEGACY.contains(&version.as_str())) {
        Verdict::Legacy(error)
    } else {
        Verdict::None(error)
    }
}

fn discover_failure(server: &str, failure: Failure) -> Verdict {
    match failure.error {
        RequestError::Refused { status: 300..=399 | 401 | 403, .. } => {
            Verdict::None(connect_error(failure.error))
        }
        RequestError::Refused { .. } | RequestError::BadReply { .. } | RequestError::TooLarge { .. } => {
            tracing::debug!(server, error = %failure.error, "server/discover was not understood");
            Verdict::Legacy(connect_error(failure.error))
        }
        error => Verdict::None(connect_error(error)),
    }
}

/// Sends `initialize` and, after a yes, `notifications/initialized`.
pub(super) async fn initialize(spec: &ServerSpec, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    let params = initialize_params(spec);
    let raw = edit::raw(params.clone()).map_err(|error| {
        ConnectError::Request(RequestError::NotSent { server: spec.name.clone(), detail: error.to_string() })
    })?;
    let outcome = ask(hub, link, greeting(spec, "initialize", Some(&raw), None))
        .await
        .map_err(|failure| connect_error(failure.error))?;
    let result = match outcome {
        Outcome::Result(result) => result,
        Outcome::Error(error) => return Err(handshake_error(hub, &spec.name, &error)),
    };
    let version = edit::get(result.get(), "/protocolVersion").and_then(edit::string).unwrap_or_default();
    if !LEGACY.contains(&version.as_str()) {
        return Err(ConnectError::Version { server: spec.name.clone(), offered: quote(&version, 60) });
    }
    if let Link::Http(link) = link {
        link.established(&version, &params);
    }
    link.initialized().await?;
    let server_info = edit::get(result.get(), "/serverInfo");
    Ok(Hello {
        era: Era::Legacy,
        version,
        server_info: server_info.and_then(|info| edit::raw(info.to_owned()).ok()),
        capabilities: capabilities(result.get()),
        instructions: edit::get(result.get(), "/instructions").and_then(edit::string),
    })
}

/// A request of the handshake. Its time is bounded by the whole handshake's, and nobody cancels
/// it at the server.
fn greeting<'a>(
    spec: &ServerSpec,
    method: &'a str,
    params: Option<&'a RawValue>,
    meta: Option<&'a envelope::ModernMeta>,
) -> Ask<'a> {
    Ask {
        method,
        params,
        meta,
        param_headers: Vec::new(),
        idle: spec.timeouts.init,
        total: spec.timeouts.init,
        progress: None,
        questions: None,
        logs: None,
        cancel: CancellationToken::new(),
        tell: false,
    }
}

fn capabilities(result: &str) -> Box<RawValue> {
    edit::get(result, "/capabilities")
        .filter(|text| text.starts_with('{'))
        .and_then(|text| edit::raw(text.to_owned()).ok())
        .unwrap_or_else(|| RawValue::NULL.to_owned())
}

fn handshake_error(hub: &Hub, server: &str, error: &ErrorObject) -> ConnectError {
    ConnectError::Handshake {
        server: server.to_owned(),
        code: error.code,
        message: hub.quote(&error.message, 300),
    }
}

fn connect_error(error: RequestError) -> ConnectError {
    match error {
        RequestError::Refused { server, status: status @ (401 | 403), challenge, .. } => {
            ConnectError::Authentication { server, status, challenge }
        }
        error => ConnectError::Request(error),
    }
}
