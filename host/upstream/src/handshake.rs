//! Which era a server speaks, and the greeting that goes with it (spec 2026-07-28, "versioning";
//! in short: ask `server/discover`, and `initialize` whoever does not understand).
//!
//! Published servers answer an unknown first request in every way there is: with any error code,
//! with silence, with 6 KiB of stderr, by exiting, or by locking the pipe to the era of the first
//! request (PR-27). What says nothing about the era stays an error: authentication, 429, 5xx, a
//! refused connection. Everything together is bounded by `timeouts.init`.

mod greeting;
mod http;
mod stdio;

use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::time::timeout;
use toolgate_wire::envelope::Era;

pub(crate) use self::greeting::modern_meta;
use crate::error::{ConnectError, RequestError};
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::{ServerSpec, TransportSpec};
use crate::stdio::Tail;

/// What the server said about itself.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) era: Era,
    pub(crate) version: String,
    pub(crate) server_info: Option<Box<RawValue>>,
    pub(crate) capabilities: Box<RawValue>,
    pub(crate) instructions: Option<String>,
}

/// A connection that is ready for requests.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) hub: Arc<Hub>,
    pub(crate) link: Link,
    pub(crate) hello: Hello,
}

/// Opens the transport and greets the server. A future that is dropped stops what it started.
pub(crate) async fn greet(spec: &ServerSpec, hint: Option<Era>) -> Result<Greeted, ConnectError> {
    // Kept outside, so that a timeout can still quote the child.
    let tail = Arc::new(Tail::logged(spec.limits.stderr_tail, spec.log.clone(), spec.mask.clone()));
    let is_child = matches!(spec.transport, TransportSpec::Stdio { .. });
    let work = async {
        match &spec.transport {
            TransportSpec::Stdio { .. } => stdio::greet(spec, hint, &tail).await,
            TransportSpec::Http { .. } => http::greet(spec, hint).await,
            TransportSpec::Sse { .. } => http::greet_sse(spec).await,
        }
    };
    // The requests of the greeting have the same time as the whole; whichever clock is first, the
    // limit that the operator can raise is `timeouts.init`.
    let greeted = match timeout(spec.timeouts.init, work).await {
        Ok(Err(ConnectError::Request(RequestError::TimedOut { .. }))) | Err(_) => {
            Err(ConnectError::InitTimeout {
                server: spec.name.clone(),
                after: spec.timeouts.init,
                stderr: is_child.then(|| tail.last_lines(5)),
            })
        }
        Ok(greeted) => greeted,
    }?;
    greeted.hub.set_modern(greeted.hello.era == Era::Modern);
    tracing::info!(
        server = spec.name,
        era = greeted.hello.era.as_str(),
        version = greeted.hello.version,
        "connected"
    );
    Ok(greeted)
}
