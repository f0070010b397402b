//! The streams a legacy server opens only when asked by GET: the standing one for what it says
//! unasked, and the resumption of one that broke before a reply.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::time::Instant;
use toolgate_wire::headers as names;

use super::Core;
use super::receive::{Kind, Mark, kind};
use super::session::Session;
use crate::error::RequestError;

/// The pause before a stream is opened again, unless the server says another.
const PAUSE: Duration = Duration::from_secs(1);
/// No pause is longer, whatever the server says.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// And none is shorter.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// A stream that stood so long was healthy, and its end is no failure.
const HEALTHY: Duration = Duration::from_secs(30);
/// Failures of a resumption in a row before the request is given up.
const MAX_RESUMES: u32 = 5;

/// Keeps the standing stream open until the link ends. A server that refuses it, with any 4xx,
/// does not have one; it is not asked again (HT-13). One that had it in this session and knows the session
/// no more has lost that: it is renewed here as after a refused request (HT-10), since what hears of
/// changes may not call for hours.
pub(super) async fn listen(core: Arc<Core>) {
    core.session.set_listening(true);
    let mut gap = Gap::default();
    tokio::select! {
        () = core.stop.cancelled() => {}
        () = keep_listening(&core, &mut gap) => {}
    }
    core.session.set_listening(false);
    gap.tell(&core);
}

/// What a server may have said while nobody could hear it.
#[derive(Default)]
struct Gap {
    /// A new session has subscriptions of its own, which nobody asked for yet.
    renewed: bool,
}

impl Gap {
    /// Has everything asked for again, once for each new session. Not before its stream stands, where there
    /// is one: what changes in between would be heard by nobody.
    fn tell(&mut self, core: &Core) {
        if std::mem::take(&mut self.renewed) {
            core.hub.events.missed();
        }
    }
}

async fn keep_listening(core: &Arc<Core>, gap: &mut Gap) {
    let mut renewals = core.session.renewals();
    let mut mark = Mark::default();
    let mut generation = 0;
    // Whether a stream stood in this session.
    let mut stood = false;
    // Whether something was said, perhaps, since the last stream.
    let mut unheard = false;
    let mut failures: u32 = 0;
    loop {
        let session = core.session.snapshot();
        if session.generation != generation {
            generation = session.generation;
            mark = Mark::default();
            (stood, unheard) = (false, false);
            gap.renewed = true;
        }
        match core.get(&session, mark.last_event_id.as_deref()).await {
            Ok(response) if response.status().is_success() && kind(&response) == Kind::Events => {
                // Without an event to go on from, what was said in between is lost.
                if gap.renewed {
                    gap.tell(core);
                } else if unheard && mark.last_event_id.is_none() {
                    core.hub.events.missed();
                }
                (stood, unheard) = (true, true);
                let begun = Instant::now();
                tokio::select! {
                    _ = core.read_events(response, None, &mut mark) => {}
                    // The session that this stream belongs to is no more.
                    _ = renewals.wait_for(|now| *now != generation) => continue,
                }
                failures = if begun.elapsed() < HEALTHY { failures } else { 0 };
            }
            Ok(response) if response.status() == StatusCode::NOT_FOUND && stood && session.id.is_some() => {
                failures = failures.saturating_add(1);
                match core.renew(generation).await {
                    Ok(()) => continue,
                    Err(error) => {
                        tracing::info!(server = core.hub.server, %error, "no new session for the standing stream");
                    }
                }
            }
            Ok(response)
                if response.status().is_client_error()
                    && core.session.snapshot().generation == generation =>
            {
                let status = response.status().as_u16();
                tracing::debug!(server = core.hub.server, status, "no standing stream");
                return;
            }
            Ok(response) if response.status().is_success() => return,
            Ok(_) | Err(_) => {
                failures = failures.saturating_add(1);
                // What is subscribed to is not left out until a stream stands again, which may be never.
                unheard |= gap.renewed;
                gap.tell(core);
            }
        }
        let pause = mark.retry.unwrap_or(PAUSE);
        let doubled = pause.saturating_mul(1_u32.checked_shl(failures.min(8)).unwrap_or(1));
        tokio::time::sleep(doubled.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
    }
}

impl Core {
    /// Asks for the rest of a stream that broke before its reply. `None`: the server does not do
    /// that. The caller's deadline bounds it all.
    pub(super) async fn resume(
        &self,
        session: &Session,
        mark: &Mark,
    ) -> Result<Option<Response>, RequestError> {
        let mut failures = 0;
        loop {
            tokio::time::sleep(mark.retry.unwrap_or(PAUSE).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
            match self.get(session, mark.last_event_id.as_deref()).await {
                Ok(response) if response.status().is_success() && kind(&response) == Kind::Events => {
                    return Ok(Some(response));
                }
                Ok(response) if !response.status().is_server_error() => return Ok(None),
                Ok(_) | Err(_) if failures < MAX_RESUMES => failures += 1,
                Ok(_) => return Ok(None),
                Err(error) => {
                    // The request itself was sent, whatever this GET met.
                    return Err(RequestError::MayHaveRun {
                        server: self.hub.server.clone(),
                        detail: error.to_string(),
                    });
                }
            }
        }
    }

    async fn get(&self, session: &Session, last_event_id: Option<&str>) -> Result<Response, RequestError> {
        let mut headers = self.common_headers(session);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            headers.insert(names::LAST_EVENT_ID, id);
        }
        let request = self.client.get(self.url.clone()).headers(headers);
        request.send().await.map_err(|error| self.send_error(error))
    }
}
