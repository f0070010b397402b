//! The greeting on a pipe. Here a wrong first word can cost the process, so it may be started
//! again: once for each thing that was learned.

use std::sync::Arc;

use toolgate_wire::envelope::Era;

use super::greeting::{Answered, Verdict, discover, discover_or_initialize, initialize, is_other_era};
use super::{Greeted, Hello};
use crate::error::ConnectError;
use crate::hub::Hub;
use crate::link::Link;
use crate::spec::{ProtocolChoice, ServerSpec};
use crate::stdio::{StdioLink, Tail};

pub(super) async fn greet(
    spec: &ServerSpec,
    hint: Option<Era>,
    tail: &Arc<Tail>,
) -> Result<Greeted, ConnectError> {
    let child = Fresh::start(spec, tail).await?;
    match (spec.protocol, hint) {
        (ProtocolChoice::Legacy, _) => child.initialize().await.map_err(Refusal::into_error),
        (ProtocolChoice::Modern, _) => modern(child).await,
        (ProtocolChoice::Auto, Some(Era::Legacy)) => match child.initialize().await {
            Ok(greeted) => Ok(greeted),
            Err(Refusal::OtherEra(_)) => probe(Fresh::start(spec, tail).await?, spec, tail).await,
            Err(Refusal::Other(error)) => Err(error),
        },
        (ProtocolChoice::Auto, _) => probe(child, spec, tail).await,
    }
}

/// Discover first; whatever is no modern answer leads to `initialize`, on this process if it
/// still listens, on a new one if it exited or has locked itself to the other era.
async fn probe(child: Fresh<'_>, spec: &ServerSpec, tail: &Arc<Tail>) -> Result<Greeted, ConnectError> {
    let outcome = match discover_or_initialize(spec, &child.hub, &child.link).await {
        Answered::Discover(Verdict::Modern(hello)) => return Ok(child.greeted(hello)),
        Answered::Discover(Verdict::None(error)) if !child.ended() => return Err(error),
        // ST/PR-27: the process exited on the unknown request, so a new one is greeted the old way.
        Answered::Discover(Verdict::None(_)) => return respawn(spec, tail).await,
        Answered::Discover(Verdict::Legacy(_)) if child.ended() => return respawn(spec, tail).await,
        Answered::Discover(Verdict::Legacy(_)) => initialize(spec, &child.hub, &child.link).await,
        Answered::Initialize(outcome) => outcome,
        // A server that has one era for a process has just left the one that it is asked for.
        Answered::Both(_) => {
            tracing::info!(server = spec.name, "starting it again for server/discover alone");
            drop(child);
            return modern(Fresh::start(spec, tail).await?).await;
        }
    };
    match outcome {
        Ok(hello) => Ok(child.greeted(hello)),
        // Locked to an era of which it says nothing: a new process is greeted in the other one.
        Err(error) if is_other_era(&error) || child.ended() => {
            drop(child);
            respawn(spec, tail).await
        }
        Err(error) => Err(error),
    }
}

async fn modern(child: Fresh<'_>) -> Result<Greeted, ConnectError> {
    match discover(child.spec, &child.hub, &child.link).await {
        Verdict::Modern(hello) => Ok(child.greeted(hello)),
        Verdict::Legacy(error) | Verdict::None(error) => Err(child.exit_or(error)),
    }
}

async fn respawn(spec: &ServerSpec, tail: &Arc<Tail>) -> Result<Greeted, ConnectError> {
    tracing::info!(server = spec.name, "starting it again for initialize");
    let child = Fresh::start(spec, tail).await?;
    child.initialize().await.map_err(Refusal::into_error)
}

/// A process that has not been greeted yet.
struct Fresh<'a> {
    spec: &'a ServerSpec,
    hub: Arc<Hub>,
    link: Link,
}

enum Refusal {
    /// The process is locked to the other era.
    OtherEra(ConnectError),
    Other(ConnectError),
}

impl Refusal {
    fn into_error(self) -> ConnectError {
        match self {
            Self::OtherEra(error) | Self::Other(error) => error,
        }
    }
}

impl<'a> Fresh<'a> {
    async fn start(spec: &'a ServerSpec, tail: &Arc<Tail>) -> Result<Self, ConnectError> {
        let hub = Arc::new(Hub::new(&spec.name, spec.limits).logged(spec.log.clone(), spec.mask.clone()));
        let link = StdioLink::start(spec, &hub, Arc::clone(tail)).await?;
        Ok(Self { spec, hub, link: Link::Stdio(link) })
    }

    async fn initialize(self) -> Result<Greeted, Refusal> {
        match initialize(self.spec, &self.hub, &self.link).await {
            Ok(hello) => Ok(self.greeted(hello)),
            Err(error) if is_other_era(&error) => Err(Refusal::OtherEra(error)),
            Err(error) => Err(Refusal::Other(self.exit_or(error))),
        }
    }

    fn ended(&self) -> bool {
        self.hub.pending.closed().is_some()
    }

    /// If the process has ended, that is the news, and not the request it left open.
    fn exit_or(&self, error: ConnectError) -> ConnectError {
        match self.hub.pending.closed() {
            Some(detail) => ConnectError::Exited { server: self.spec.name.clone(), detail },
            None => error,
        }
    }

    fn greeted(self, hello: Hello) -> Greeted {
        Greeted { hub: self.hub, link: self.link, hello }
    }
}
