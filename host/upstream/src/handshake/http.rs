//! The greeting over HTTP.

use std::sync::Arc;

use tokio::time::timeout;
use toolgate_wire::codes;
use toolgate_wire::envelope::Era;

use super::greeting::{Verdict, discover, initialize};
use super::{Greeted, Hello};
use crate::error::{ConnectError, RequestError};
use crate::http::HttpLink;
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::{ProtocolChoice, ServerSpec};

pub(super) async fn greet(spec: &ServerSpec, hint: Option<Era>) -> Result<Greeted, ConnectError> {
    let hub = Arc::new(Hub::new(&spec.name, spec.limits));
    let link = Link::Http(HttpLink::new(spec, &hub)?);
    let hello = hello(spec, hint, &hub, &link).await?;
    if let (Era::Legacy, Link::Http(http)) = (hello.era, &link) {
        http.listen();
    }
    Ok(Greeted { hub, link, hello })
}

async fn hello(spec: &ServerSpec, hint: Option<Era>, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    match (spec.protocol, hint) {
        (ProtocolChoice::Legacy, _) => initialize(spec, hub, link).await,
        (ProtocolChoice::Modern, _) => match discover(spec, hub, link).await {
            Verdict::Modern(hello) => Ok(hello),
            Verdict::Legacy(error) | Verdict::None(error) => Err(error),
        },
        (ProtocolChoice::Auto, Some(Era::Legacy)) => match initialize(spec, hub, link).await {
            // The server was upgraded since the hint was taken.
            Err(ConnectError::Handshake { code: codes::UNSUPPORTED_VERSION, .. }) => {
                either(spec, hub, link).await
            }
            outcome => outcome,
        },
        (ProtocolChoice::Auto, _) => either(spec, hub, link).await,
    }
}

async fn either(spec: &ServerSpec, hub: &Hub, link: &Link) -> Result<Hello, ConnectError> {
    // Servers have been seen to leave an unknown method open; their silence is not an answer.
    match timeout(spec.timeouts.probe, discover(spec, hub, link)).await {
        Ok(Verdict::Modern(hello)) => Ok(hello),
        Ok(Verdict::None(error)) => Err(error),
        Ok(Verdict::Legacy(_)) | Err(_) => initialize(spec, hub, link).await.map_err(explain),
    }
}

/// An endpoint that takes neither greeting may be one of the transport of 2024.
fn explain(error: ConnectError) -> ConnectError {
    match error {
        ConnectError::Request(RequestError::Refused {
            server,
            status: status @ (404 | 405),
            detail,
            challenge,
        }) => ConnectError::Request(RequestError::Refused {
            server,
            status,
            detail: format!(
                "{detail}; neither server/discover nor initialize is taken here, so check the url. The HTTP+SSE transport of 2024 is not supported"
            ),
            challenge,
        }),
        error => error,
    }
}
