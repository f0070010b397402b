//! Taking up the tasks of processes that ended, however they ended (TSK-012).
//!
//! A process that has tasks holds a lock below `run/` for as long as it lives. A gateway that gets the lock
//! of another knows that it is gone, makes its open tasks its own and observes them, each over the
//! connection of the caller it is for. Nobody waits for these any more: what comes is kept (TSK-018), and a
//! cancellation that was not sent is sent.
//!
//! Bounds: one look in [`LOOK`]. A task whose server cannot be reached is tried again, ever more rarely,
//! until its time is over, or `timeouts.task_lost`.

use std::path::Path as FilePath;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::mpsc;
use toolgate_base::files;
use toolgate_base::lock::FileLock;
use toolgate_config::{Lane, Server};
use toolgate_plugins::Document;
use toolgate_signing::DefinitionKind;
use toolgate_store::{
    Actor, AuditRow, CallFacts, Deed, Delivery, Event, StoreError, Task, TaskStatus, TaskUpdate,
};
use toolgate_wire::envelope::Era;

use super::begin::{PUSHES, now_ms};
use super::tend::{Begun, Tender};
use super::wire::Said;
use super::{Entry, Place};
use crate::Gateway;
use crate::abilities::Abilities;
use crate::ask::By;
use crate::call::Waiting;
use crate::caller::Caller;
use crate::client::Client;
use crate::find::{FindError, Handle, Target};
use crate::forward::Path;
use crate::notes;

/// The pause between two looks for tasks of processes that ended.
const LOOK: Duration = Duration::from_secs(30);
/// The pause before a server is tried again, doubling.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// The lock of a process, taken; `Err` where it lives.
pub(super) fn lock_of(data_dir: &FilePath, owner: &str) -> Result<FileLock, String> {
    let path = lock_path(data_dir, owner);
    if let Some(dir) = path.parent() {
        files::create_private_dir(dir)
            .map_err(|error| format!("{} cannot be made: {error}", dir.display()))?;
    }
    FileLock::exclusive(&path, Duration::ZERO).map_err(|error| error.to_string())
}

fn lock_path(data_dir: &FilePath, owner: &str) -> std::path::PathBuf {
    data_dir.join("run").join(format!("tasks-{owner}.lock"))
}

impl Gateway {
    /// Takes up what processes that ended left open, now and from time to time. For whoever serves.
    pub fn resume_tasks(self: &Arc<Self>) {
        let gateway = Arc::downgrade(self);
        let closing = self.tasks.closing.clone();
        tokio::spawn(async move {
            loop {
                if !look(&gateway) {
                    return;
                }
                tokio::select! {
                    () = closing.cancelled() => return,
                    () = tokio::time::sleep(LOOK) => {}
                }
            }
        });
    }

    fn take_up_all(self: &Arc<Self>) -> Result<(), StoreError> {
        self.store.remove_old_tasks()?;
        let open = |task: &Task| !task.status.is_over();
        let tasks: Vec<Task> = self.store.tasks()?.into_iter().filter(open).collect();
        if tasks.is_empty() {
            return Ok(());
        }
        let data_dir = &self.config.data_dir;
        let own = self.tasks.owner(data_dir).map_err(StoreError::Internal)?;
        let mut others: Vec<&String> =
            tasks.iter().map(|task| &task.owner).filter(|owner| **owner != own).collect();
        others.sort();
        others.dedup();
        for other in others {
            // Held until its tasks are ours, so that no other gateway takes them as well.
            let Ok(_ended) = lock_of(data_dir, other) else { continue };
            let adopted = self.store.adopt_tasks(other, &own)?;
            tracing::info!(adopted, "tasks of a process that ended are observed again");
            // Nobody has this name again.
            let _ = std::fs::remove_file(lock_path(data_dir, other));
        }
        for task in self.store.tasks()?.into_iter().filter(open) {
            if task.owner != own || self.tasks.shared.is_known(&task.id) {
                continue;
            }
            // One that is not known here any more may just have ended.
            if let Some(task) = self.store.task(&task.id)?.filter(open) {
                self.take_up(task);
            }
        }
        Ok(())
    }

    fn take_up(self: &Arc<Self>, task: Task) {
        let server = self.servers.get(&task.server);
        let Some(server) = server.filter(|server| server.identity() == task.server_identity) else {
            self.lose(&task, "its server is not configured any more, or has another command or URL");
            return;
        };
        if Lane::parse(&task.about.lane).is_none() {
            self.lose(&task, "it is of a lane that this version does not know");
            return;
        }
        // Where there are too many, the rest is taken up when some are over.
        let Some(place) = self.tasks.shared.slots.enter(&task.server) else { return };
        let (pushed, told) = mpsc::channel(PUSHES);
        let entry = Arc::new(Entry::new(
            task.id.clone(),
            task.server.clone(),
            task.task_id.clone(),
            task.status,
            task.snapshot.clone(),
            pushed,
        ));
        entry.detached.cancel();
        self.tasks.add(&entry);
        let (gateway, server) = (Arc::clone(self), Arc::clone(server));
        tokio::spawn(async move { gateway.go_on(task, &server, entry, place, told).await });
    }

    async fn go_on(
        self: &Arc<Self>,
        task: Task,
        server: &Arc<Server>,
        entry: Arc<Entry>,
        place: Place,
        pushes: mpsc::Receiver<Box<serde_json::value::RawValue>>,
    ) {
        let caller = caller_of(&task);
        let handle = match self.found(&caller, server, &task).await {
            Ok(Some(handle)) => handle,
            Ok(None) => return self.tasks.remove(&task.id),
            Err(reason) => {
                self.lose(&task, &reason);
                return self.tasks.remove(&task.id);
            }
        };
        let Ok(said) = Said::created(&task.snapshot, now_ms()) else {
            self.lose(&task, "what is kept of it cannot be read");
            return self.tasks.remove(&task.id);
        };
        let (turn, turns) = mpsc::channel(32);
        let abilities = Abilities::from_bits(task.about.abilities);
        let (client, turn) =
            if task.handed { (Client::rounds(abilities), Some(turn)) } else { (Client::silent(), None) };
        let call = CallFacts {
            deed: Deed::Call,
            actor: actor_of(&task),
            server: Some(task.server.clone()),
            tool: Some(task.about.tool.clone()),
            exposed: Some(task.about.exposed.clone()),
            request_id: task.about.request_id.clone(),
        };
        let path = Arc::new(Path {
            gateway: Arc::clone(self),
            frozen: self.watch.token(&task.server),
            caller,
            deed: Deed::Call,
            handle,
            used: task.about.exposed.clone(),
            call,
            waiting: Waiting::alone(client, turn),
            invocation: Some(task.about.invocation.clone()),
        });
        let document = Document::new(task.about.arguments.as_str());
        let by = By::of(&task.about.passed_by);
        if !path.still_passes(&document, by).is_ok_and(|passes| passes) {
            entry.request_cancel("policy");
        }
        let begun = Begun { said, place, document, by, reply: None };
        let live = Arc::clone(&path.handle.live);
        let turns = task.handed.then_some(turns);
        let mut tender = Tender::new(path, entry, begun, Some(live), pushes, turns).taken_up(&task);
        tender.note_change("recovered");
        tender.run().await;
    }

    /// The tool behind a task, on the connection of its caller. `None`: the gateway ends.
    async fn found(
        self: &Arc<Self>,
        caller: &Caller,
        server: &Arc<Server>,
        task: &Task,
    ) -> Result<Option<Handle>, String> {
        let target = Target::Original { server: server.name.clone(), tool: task.about.tool.clone() };
        let mut pause = FIRST_RETRY;
        let begun = tokio::time::Instant::now();
        loop {
            match self.find(caller, DefinitionKind::Tool, &target).await {
                Ok(handle) => return Ok(Some(handle)),
                Err(FindError::Open { error, .. }) => {
                    tracing::debug!(task = task.id, %error, "the server of a task cannot be reached");
                }
                Err(_) => {
                    return Err(format!(
                        "its caller has no tool '{}' at server '{}' any more",
                        task.about.tool, server.name
                    ));
                }
            }
            let now = i64::try_from(now_ms()).unwrap_or(i64::MAX);
            if task.expires_at_ms.is_some_and(|at| at <= now) {
                return Err("its server could not be reached before its time was over".to_owned());
            }
            if begun.elapsed() >= server.timeouts.task_lost {
                return Err("its server could not be reached for too long (timeouts.task_lost)".to_owned());
            }
            tokio::select! {
                () = self.tasks.closing.cancelled() => return Ok(None),
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LAST_RETRY),
            }
        }
    }

    /// Ends a task that nobody can observe any more.
    fn lose(&self, task: &Task, reason: &str) {
        let now = i64::try_from(now_ms()).unwrap_or(i64::MAX);
        let expired = task.expires_at_ms.is_some_and(|at| at <= now);
        let status = if expired { TaskStatus::Expired } else { TaskStatus::Lost };
        let call = CallFacts {
            deed: Deed::Call,
            actor: actor_of(task),
            server: Some(task.server.clone()),
            tool: Some(task.about.tool.clone()),
            exposed: Some(task.about.exposed.clone()),
            request_id: task.about.request_id.clone(),
        };
        let row = AuditRow::task(Event::McpTaskExpired, &call, &task.id);
        self.store.append_detached(row.with("status", status.as_str()).with("reason", reason));
        let update = TaskUpdate {
            status,
            snapshot: &task.snapshot,
            outcome: None,
            delivery: Delivery::None,
            counters: task.counters,
            expires_at_ms: task.expires_at_ms,
        };
        if let Err(error) = self.store.update_task(&task.id, &update) {
            tracing::error!(%error, task = task.id, "the end of a task is not in the journal");
        }
        self.tasks.tell(&task.id);
    }
}

/// One look; false where the gateway is gone.
fn look(gateway: &Weak<Gateway>) -> bool {
    let Some(gateway) = gateway.upgrade() else { return false };
    if let Err(error) = gateway.take_up_all() {
        tracing::error!(%error, "the journal of tasks cannot be used, so open tasks are not observed");
    }
    true
}

fn caller_of(task: &Task) -> Caller {
    let about = &task.about;
    let era = if task.handed { Era::Modern } else { Era::Legacy };
    Caller {
        lane: Lane::parse(&about.lane).unwrap_or(Lane::Main),
        run_id: about.run_id.clone(),
        thread_id: about.thread_id.clone(),
        server_only: about.server_only.clone(),
        plain_names: about.plain_names,
        abilities: Abilities::from_bits(about.abilities),
        ..Caller::new(about.persona.clone(), about.credential.clone(), about.session.clone(), era)
    }
}

fn actor_of(task: &Task) -> Actor {
    notes::actor(&caller_of(task))
}
