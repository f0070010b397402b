//! The two greetings, `server/discover` and `initialize`, and what their answers mean.

use std::pin::pin;

use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use toolgate_wire::envelope::{self, Era, LEGACY, MODERN, ModernMeta};
use toolgate_wire::{ErrorObject, Outcome, codes, edit};

use super::Hello;
use crate::ask::{Ask, Failure, ask};
use crate::error::{ConnectError, RequestError, quote};
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::ServerSpec;

/// The part of `timeouts.init` that a server has to answer `server/discover` after it refused `initialize`
/// because of its era. The rest is for one that never does and has to be started again.
const REFUSED_SHARE: u32 = 4;

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

/// What both questions brought.
#[derive(Debug)]
pub(super) enum Answered {
    /// The first one was answered, in time or late.
    Discover(Verdict),
    /// It was left open, and `initialize` brought this.
    Initialize(Result<Hello, ConnectError>),
    /// The server is modern and took `initialize` as well: a process that has one era is in the other one now.
    Both(Hello),
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

/// Asks `server/discover`, and `initialize` too where that stays open for `timeouts.probe`.
///
/// Silence alone says nothing about the era: a server that is slow to start has both questions before
/// it. It answers the first one first, or refuses the second because the first has settled its era; in
/// either case the answer to the first one counts, whichever arrives before the other.
pub(super) async fn discover_or_initialize(spec: &ServerSpec, hub: &Hub, link: &Link) -> Answered {
    let mut discovering = pin!(discover(spec, hub, link));
    if let Ok(verdict) = timeout(spec.timeouts.probe, &mut discovering).await {
        return Answered::Discover(verdict);
    }
    tracing::info!(server = spec.name, "no answer to server/discover; trying initialize");
    let mut initializing = pin!(ask_initialize(spec, hub, link));
    let longer = spec.timeouts.init / REFUSED_SHARE;
    let outcome = tokio::select! {
        // Both answers may be there by now.
        biased;
        verdict = &mut discovering => match verdict {
            Verdict::Modern(hello) => {
                let taken = timeout(longer, initializing).await.is_ok_and(|answer| answer.is_ok());
                return if taken { Answered::Both(hello) } else { Answered::Discover(Verdict::Modern(hello)) };
            }
            _ => initializing.await,
        },
        outcome = &mut initializing => {
            // It says that it is modern, so it is waited for longer than silence is.
            if outcome.as_ref().is_err_and(is_other_era)
                && let Ok(verdict @ Verdict::Modern(_)) = timeout(longer, discovering).await
            {
                return Answered::Discover(verdict);
            }
            outcome
        }
    };
    Answered::Initialize(match outcome {
        Ok(result) => initialized(spec, link, &result).await,
        Err(error) => Err(error),
    })
}

/// Whether a server refused `initialize` because it, or this process of it, is modern.
pub(super) fn is_other_era(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Handshake { code: codes::UNSUPPORTED_VERSION, .. })
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
    let result = ask_initialize(spec, hub, link).await?;
    initialized(spec, link, &result).await
}

/// The first half: nothing is settled before its answer is taken.
async fn ask_initialize(spec: &ServerSpec, hub: &Hub, link: &Link) -> Result<Box<RawValue>, ConnectError> {
    let raw = edit::raw(initialize_params(spec)).map_err(|error| {
        ConnectError::Request(RequestError::NotSent { server: spec.name.clone(), detail: error.to_string() })
    })?;
    let outcome = ask(hub, link, greeting(spec, "initialize", Some(&raw), None))
        .await
        .map_err(|failure| connect_error(failure.error))?;
    match outcome {
        Outcome::Result(result) => Ok(result),
        Outcome::Error(error) => Err(handshake_error(hub, &spec.name, &error)),
    }
}

/// The second half: takes the answer, and says so.
async fn initialized(spec: &ServerSpec, link: &Link, result: &RawValue) -> Result<Hello, ConnectError> {
    let version = edit::get(result.get(), "/protocolVersion").and_then(edit::string).unwrap_or_default();
    if !LEGACY.contains(&version.as_str()) {
        return Err(ConnectError::Version { server: spec.name.clone(), offered: quote(&version, 60) });
    }
    if let Link::Http(link) = link {
        link.established(&version, &initialize_params(spec));
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
