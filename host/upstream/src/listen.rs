//! `subscriptions/listen` of the modern era: the standing request on which a server says that its
//! lists changed (spec 2026-07-28, "subscriptions").
//!
//! Only declared kinds are asked for. When the request ends (the server's choice, a broken
//! stream) it is sent again under a new id, with growing pauses, and since something may have
//! been missed, everything counts as changed. A server that refuses it is left alone.

use std::sync::Arc;
use std::time::Duration;

use toolgate_wire::envelope::Era;
use toolgate_wire::{Outcome, edit};

use crate::connection::{Core, RequestOptions};

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A stream that stood so long was healthy, and its end is no failure.
const HEALTHY: Duration = Duration::from_secs(30);
/// No deadline: the request ends with the connection.
const UNBOUNDED: Duration = Duration::MAX;

/// Starts listening in the background, if the server can say anything.
pub(crate) fn start(core: &Arc<Core>) {
    if core.hello.era != Era::Modern {
        return;
    }
    let kinds = [
        ("/tools/listChanged", "toolsListChanged"),
        ("/prompts/listChanged", "promptsListChanged"),
        ("/resources/listChanged", "resourcesListChanged"),
    ];
    let wanted: Vec<String> = kinds
        .into_iter()
        .filter(|(declared, _)| core.declares(declared))
        .map(|(_, name)| format!(r#""{name}":true"#))
        .collect();
    if wanted.is_empty() {
        return;
    }
    let params = format!(r#"{{"notifications":{{{}}}}}"#, wanted.join(","));
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let over = core.over.clone();
        tokio::select! {
            () = over.cancelled() => {}
            () = keep_listening(&core, params) => {}
        }
    });
}

async fn keep_listening(core: &Core, params: String) {
    let Ok(params) = edit::raw(params) else { return };
    let mut pause = FIRST_PAUSE;
    loop {
        let started = tokio::time::Instant::now();
        let options = RequestOptions {
            timeout: Some(UNBOUNDED),
            max_total: Some(UNBOUNDED),
            ..RequestOptions::default()
        };
        let outcome = core.request("subscriptions/listen", Some(&params), options).await;
        match outcome {
            Ok(Outcome::Error(error)) => {
                tracing::info!(server = core.hub.server, code = error.code, "no subscriptions");
                return;
            }
            Err(failure) if !failure.error.may_have_run() => {
                tracing::info!(server = core.hub.server, error = %failure.error, "no subscriptions");
                return;
            }
            Ok(Outcome::Result(_)) | Err(_) => {}
        }
        if core.hub.pending.closed().is_some() {
            return;
        }
        if started.elapsed() >= HEALTHY {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        core.hub.events.all_changed();
    }
}
