//! `subscriptions/listen` of the modern era: the one standing request on which a server says that its
//! lists and the resources somebody subscribed to changed, and how tasks stand (spec 2026-07-28,
//! "subscriptions").
//!
//! Only declared kinds are asked for. What is wanted changes, a request that stands does not: a new one
//! is sent, and the old one is given up when the new one is acknowledged, so that nothing is missed in
//! between. When the request ends by itself (the server's choice, a broken stream) it is sent again
//! under a new id, with growing pauses, and since something may have been missed, everything counts as
//! changed. A server that refuses it is left alone until something else is wanted.
//!
//! Bounds: at most two such requests at a time; who waits for an acknowledgement has a deadline of its
//! own. The number of resources is bounded by whoever subscribes.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use toolgate_wire::envelope::Era;
use toolgate_wire::{Outcome, edit};

use crate::ask::Failure;
use crate::connection::{Core, RequestOptions};
use crate::hub::Hub;
use crate::pending::Progress;
use crate::tasks;

/// The method.
pub(crate) const METHOD: &str = "subscriptions/listen";
/// Its first message.
pub(crate) const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// A stream that stood so long was healthy, and its end is no failure.
const HEALTHY: Duration = Duration::from_secs(30);
/// No deadline: the request ends with the connection.
const UNBOUNDED: Duration = Duration::MAX;
/// Resources that are wanted together are asked for together.
const SETTLE: Duration = Duration::from_millis(10);
/// A server that has not acknowledged by then does not; its stream is read all the same.
const ACK_WAIT: Duration = Duration::from_secs(20);

/// Which resources and tasks are wanted, and what the server said to that.
#[derive(Debug)]
pub(crate) struct Listening {
    wanted: watch::Sender<Wanted>,
    answered: watch::Sender<Answered>,
}

#[derive(Clone, Debug, Default)]
struct Wanted {
    /// Counts the changes.
    turn: u64,
    uris: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
struct Answered {
    /// The turn of [`Wanted`] that this answers.
    turn: u64,
    accepted: Accepted,
    /// Why nothing was accepted, where the server said so.
    refused: Option<String>,
}

/// What the server tells of.
#[derive(Clone, Debug, Default)]
struct Accepted {
    uris: BTreeSet<String>,
    tasks: BTreeSet<String>,
}

impl Listening {
    pub(crate) fn new() -> Self {
        Self { wanted: watch::channel(Wanted::default()).0, answered: watch::channel(Answered::default()).0 }
    }

    /// Wants to hear of one resource more, and resolves when the server accepted it; the error says why
    /// it did not. A future that is dropped wants it no more.
    pub(crate) async fn add(&self, uri: &str) -> Result<(), String> {
        let mut turn = 0;
        self.wanted.send_if_modified(|wanted| {
            let new = wanted.uris.insert(uri.to_owned());
            wanted.turn += u64::from(new);
            turn = wanted.turn;
            new
        });
        let mut adding = Adding { listening: self, uri, keep: false };
        let mut answers = self.answered.subscribe();
        let Ok(answered) = answers.wait_for(|answered| answered.turn >= turn).await else {
            return Err("the connection is over".to_owned());
        };
        if answered.accepted.uris.contains(uri) {
            adding.keep = true;
            return Ok(());
        }
        let refused = answered.refused.clone();
        Err(refused.unwrap_or_else(|| "its acknowledgement leaves the resource out".to_owned()))
    }

    /// Wants to hear of a resource no more.
    pub(crate) fn remove(&self, uri: &str) {
        self.wanted.send_if_modified(|wanted| {
            let had = wanted.uris.remove(uri);
            wanted.turn += u64::from(had);
            had
        });
    }

    /// Wants to hear of a task, or no more. Nobody waits for that, since a task is asked for as well.
    pub(crate) fn want_task(&self, id: &str, wanted: bool) {
        self.wanted.send_if_modified(|now| {
            let changed = if wanted { now.tasks.insert(id.to_owned()) } else { now.tasks.remove(id) };
            now.turn += u64::from(changed);
            changed
        });
    }

    /// Whether the server tells of a task.
    pub(crate) fn tells_of(&self, id: &str) -> bool {
        self.answered.borrow().accepted.tasks.contains(id)
    }

    fn answer(&self, turn: u64, accepted: Accepted, refused: Option<String>) {
        self.answered.send_replace(Answered { turn, accepted, refused });
    }
}

/// A resource that is wanted for as long as somebody waits for it, or for good once it is accepted.
struct Adding<'a> {
    listening: &'a Listening,
    uri: &'a str,
    keep: bool,
}

impl Drop for Adding<'_> {
    fn drop(&mut self) {
        if !self.keep {
            self.listening.remove(self.uri);
        }
    }
}

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
    let kinds: Vec<&str> =
        kinds.into_iter().filter(|(declared, _)| core.declares(declared)).map(|(_, name)| name).collect();
    if kinds.is_empty() && !core.declares("/resources/subscribe") && !core.declares(tasks::EXTENSION) {
        return;
    }
    let core = Arc::clone(core);
    tokio::spawn(async move {
        let over = core.over.clone();
        tokio::select! {
            () = over.cancelled() => {}
            () = keep_listening(&core, &kinds) => {}
        }
        // Nothing is accepted any more, and nobody waits for it.
        core.listening.answer(u64::MAX, Accepted::default(), Some("the connection is over".to_owned()));
    });
}

async fn keep_listening(core: &Core, kinds: &[&str]) {
    let mut wanted = core.listening.wanted.subscribe();
    let mut pause = FIRST_PAUSE;
    let mut old: Option<Standing<'_>> = None;
    // Whether something may have been missed.
    let mut gap = false;
    // Whether the server refuses to tell of tasks; the rest is worth another request.
    let mut no_tasks = false;
    loop {
        let mut want = wanted.borrow_and_update().clone();
        if no_tasks {
            want.tasks.clear();
        }
        let begun = if kinds.is_empty() && want.uris.is_empty() && want.tasks.is_empty() {
            None
        } else {
            Standing::begin(core, kinds, &want)
        };
        let Some(mut now) = begun else {
            old = None;
            core.listening.answer(want.turn, Accepted::default(), None);
            if wanted.changed().await.is_err() {
                return;
            }
            continue;
        };
        let ended = match now.acknowledged(&mut old).await {
            Ok(accepted) => {
                core.listening.answer(want.turn, accepted, None);
                old = None;
                if std::mem::take(&mut gap) {
                    core.hub.events.missed();
                }
                tokio::select! {
                    ended = &mut now.asked => Some(ended),
                    changed = wanted.changed() => {
                        if changed.is_err() {
                            return;
                        }
                        None
                    }
                }
            }
            Err(ended) => Some(ended),
        };
        if core.hub.pending.closed().is_some() {
            return;
        }
        let Some(ended) = ended else {
            tokio::time::sleep(SETTLE).await;
            old = Some(now);
            continue;
        };
        if let Some(reason) = refusal(&core.hub, ended) {
            if !want.tasks.is_empty() {
                tracing::info!(server = core.hub.server, reason, "it does not tell of tasks");
                no_tasks = true;
                continue;
            }
            tracing::info!(server = core.hub.server, reason, "no subscriptions");
            let held = core.listening.answered.borrow().accepted.clone();
            let held = if old.is_some() { held } else { Accepted::default() };
            core.listening.answer(want.turn, held, Some(reason));
            if std::mem::take(&mut gap) {
                core.hub.events.missed();
            }
            tokio::select! {
                changed = wanted.changed() => if changed.is_err() { return },
                () = ended_of(&mut old), if old.is_some() => old = None,
            }
            continue;
        }
        if now.started.elapsed() >= HEALTHY {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
        gap = true;
        core.hub.events.lists_changed();
    }
}

/// One such request while it stands.
struct Standing<'a> {
    asked: Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + Send + 'a>>,
    acks: mpsc::Receiver<Progress>,
    started: Instant,
}

impl<'a> Standing<'a> {
    fn begin(core: &'a Core, kinds: &[&str], want: &Wanted) -> Option<Self> {
        let mut members: Vec<String> = kinds.iter().map(|name| format!(r#""{name}":true"#)).collect();
        for (member, wanted) in [("resourceSubscriptions", &want.uris), ("taskIds", &want.tasks)] {
            if !wanted.is_empty() {
                let quoted: Vec<String> = wanted.iter().map(|one| edit::quote(one)).collect();
                members.push(format!(r#""{member}":[{}]"#, quoted.join(",")));
            }
        }
        let params = edit::raw(format!(r#"{{"notifications":{{{}}}}}"#, members.join(","))).ok()?;
        let (told, acks) = mpsc::channel(1);
        let options = RequestOptions {
            timeout: Some(UNBOUNDED),
            max_total: Some(UNBOUNDED),
            progress: Some(told),
            ..RequestOptions::default()
        };
        let asked = Box::pin(async move { core.request(METHOD, Some(&params), options).await });
        Some(Self { asked, acks, started: Instant::now() })
    }

    /// What the server accepts of it, or how it ended before that. What stood until now is read on.
    async fn acknowledged(
        &mut self,
        old: &mut Option<Standing<'_>>,
    ) -> Result<Accepted, Result<Outcome, Failure>> {
        let patience = tokio::time::sleep(ACK_WAIT);
        tokio::pin!(patience);
        loop {
            tokio::select! {
                biased;
                Some(ack) = self.acks.recv() => return Ok(accepted(&ack.params)),
                ended = &mut self.asked => return Err(ended),
                () = ended_of(old), if old.is_some() => *old = None,
                () = &mut patience => return Ok(Accepted::default()),
            }
        }
    }
}

async fn ended_of(standing: &mut Option<Standing<'_>>) {
    if let Some(standing) = standing {
        let _ = (&mut standing.asked).await;
    }
}

fn accepted(params: &RawValue) -> Accepted {
    let list = |pointer: &str| {
        let list = edit::get(params.get(), pointer).and_then(|list| edit::elements(list).ok());
        list.unwrap_or_default().into_iter().filter_map(edit::string).collect()
    };
    Accepted { uris: list("/notifications/resourceSubscriptions"), tasks: list("/notifications/taskIds") }
}

/// Why the server does not want such a request; `None` where it only ended.
fn refusal(hub: &Hub, ended: Result<Outcome, Failure>) -> Option<String> {
    match ended {
        Ok(Outcome::Error(error)) => {
            Some(format!("it answers with error {}: {}", error.code, hub.quote(&error.message, 200)))
        }
        Err(failure) if !failure.error.may_have_run() => Some(failure.error.to_string()),
        Ok(Outcome::Result(_)) | Err(_) => None,
    }
}
