//! The greeting over HTTP.

use std::sync::Arc;

use tokio::time::timeout;
use toolgate_wire::envelope::Era;

use super::greeting::{Answered, Verdict, discover, discover_or_initialize, initialize, is_other_era};
use super::{Greeted, Hello};
use crate::error::{ConnectError, RequestError};
use crate::http::HttpLink;
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::{ProtocolChoice, ServerSpec};

pub(super) async fn greet(spec: &ServerSpec, hint: Option<Era>) -> Result<Greeted, ConnectError> {
    let hub = Arc::new(Hub::new(&spec.name, spec.limits).logged(spec.log.clone(), spec.mask.clone()));
    let link = Link::Http(HttpLink::new(spec, &hub)?);
    let hello = hello(spec, hint, &hub, &link).await?;
    if let (Era::Legacy, Link::Http(http)) = (hello.era, &link) {
        http.listen();
    }
    Ok(Greeted { hub, link, hello })
}

async fn hello(spec: &ServerSpec, hint: Option<Era>, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    match (spec.protocol, hint) {
        (ProtocolChoice::Legacy, _) => legacy(spec, hub, link).await,
        (ProtocolChoice::Modern, _) => match discover(spec, hub, link).await {
            Verdict::Modern(hello) => Ok(hello),
            Verdict::Legacy(error) | Verdict::None(error) => Err(error),
        },
        (ProtocolChoice::Auto, Some(Era::Legacy)) => match legacy(spec, hub, link).await {
            // The server was upgraded since the hint was taken.
            Err(error) if is_other_era(&error) => either(spec, hub, link).await,
            outcome => outcome,
        },
        (ProtocolChoice::Auto, _) => either(spec, hub, link).await,
    }
}

async fn either(spec: &ServerSpec, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    match discover_or_initialize(spec, hub, link).await {
        // Here each request says its era; a session that nobody uses is the server's to end.
        Answered::Discover(Verdict::Modern(hello)) | Answered::Both(hello) => Ok(hello),
        Answered::Discover(Verdict::None(error)) => Err(error),
        Answered::Discover(Verdict::Legacy(_)) => legacy(spec, hub, link).await,
        Answered::Initialize(outcome) => or_over_sse(spec, hub, link, outcome).await,
    }
}

/// The handshake, over whichever transport of its era the endpoint turns out to be.
async fn legacy(spec: &ServerSpec, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    let outcome = initialize(spec, hub, link).await;
    or_over_sse(spec, hub, link, outcome).await
}

async fn or_over_sse(
    spec: &ServerSpec,
    hub: &Hub,
    link: &Link,
    outcome: Result<Hello, ConnectError>,
) -> Result<Hello, ConnectError> {
    match outcome {
        Err(error) if names_another_transport(&error) => over_sse(spec, hub, link, error).await,
        outcome => outcome,
    }
}

/// The transport before this one, where the entry names it.
pub(super) async fn greet_sse(spec: &ServerSpec) -> Result<Greeted, ConnectError> {
    if spec.protocol == ProtocolChoice::Modern {
        return Err(ConnectError::Url {
            server: spec.name.clone(),
            detail: "HTTP+SSE is a transport of the initialize era; the entry pins protocol 2026-07-28"
                .to_owned(),
        });
    }
    let hub = Arc::new(Hub::new(&spec.name, spec.limits).logged(spec.log.clone(), spec.mask.clone()));
    let http = HttpLink::new(spec, &hub)?;
    http.open_sse().await?;
    let link = Link::Http(http);
    let hello = initialize(spec, &hub, &link).await?;
    Ok(Greeted { hub, link, hello })
}

/// An endpoint that takes neither greeting may be one of the transport of 2024 (spec 2026-07-28,
/// "backwards compatibility"); it says so by an event stream that names an endpoint.
async fn over_sse(
    spec: &ServerSpec,
    hub: &Hub,
    link: &Link,
    refused: ConnectError,
) -> Result<Hello, ConnectError> {
    let Link::Http(http) = link else { return Err(refused) };
    // A server of streamable HTTP may open a stream on which nothing ever comes.
    match timeout(spec.timeouts.probe, http.open_sse()).await {
        Ok(Ok(())) => initialize(spec, hub, link).await,
        Ok(Err(error @ ConnectError::Url { .. })) => Err(error),
        Ok(Err(_)) | Err(_) => Err(explain(refused)),
    }
}

fn names_another_transport(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Request(RequestError::Refused { status: 400 | 404 | 405, .. }))
}

/// Nothing that is spoken here is understood there.
fn explain(error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Request(RequestError::Refused { server, status, detail, challenge }) => {
            ConnectError::Request(RequestError::Refused {
                server,
                status,
                detail: format!(
                    "{detail}; neither server/discover nor initialize is taken here, and a GET opens no stream of the HTTP+SSE transport, so check the url"
                ),
                challenge,
            })
        }
        error => error,
    }
}
