//! `mcp tasks`: what servers work on after they answered a call, and what came of it.
//!
//! It reads the journal of the data directory and needs no running gateway. To cancel takes no proof, as
//! it narrows; the gateway that observes the task tells its server, or the next one that starts.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_store::{Actor, AuditRow, CallFacts, Deed, Delivery, Event, Store, Task};

use crate::args::surface::McpTasks;
use crate::exit::Failure;
use crate::json::{at, content_texts};
use crate::{context, output};

/// Lists the tasks, or shows one.
pub(crate) async fn tasks(explicit: Option<&Path>, args: &McpTasks) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let store = context::store(&config, "cli")?;
    match &args.id {
        None => list(&store.tasks().map_err(context::store_failure)?, args),
        Some(id) if args.cancel => cancel(&store, id, args.json),
        Some(id) => show(&store, id, args).await,
    }
}

fn list(tasks: &[Task], args: &McpTasks) -> Result<(), Failure> {
    let wanted = |task: &&Task| args.server.as_ref().is_none_or(|server| task.server == *server);
    let tasks: Vec<&Task> = tasks.iter().filter(wanted).collect();
    if args.json {
        let tasks: Vec<Value> = tasks.into_iter().map(described).collect();
        return output::json(&json!({ "tasks": tasks }));
    }
    if tasks.is_empty() {
        return output::line(
            "no tasks; they stand here from when a server makes one until 7 days after it is over",
        );
    }
    let rows: Vec<Vec<String>> = tasks
        .into_iter()
        .map(|task| {
            let counters = task.counters;
            vec![
                task.id.clone(),
                format!("{}.{}", task.server, task.about.tool),
                task.about.persona.clone(),
                task.status.to_string(),
                format!("{} s", age_ms(task) / 1_000),
                task.delivery.as_str().to_owned(),
                format!(
                    "{} reads, {} pushes, {} inputs, {} retries, {} recoveries",
                    counters.reads, counters.pushes, counters.inputs, counters.retries, counters.recoveries
                ),
            ]
        })
        .collect();
    output::table(&["TASK", "TOOL", "PERSONA", "STATE", "AGE", "DELIVERY", "SO FAR"], &rows)
}

async fn show(store: &Store, id: &str, args: &McpTasks) -> Result<(), Failure> {
    let task = store.task(id).map_err(context::store_failure)?.ok_or_else(|| unknown(id))?;
    let kept = task.outcome.as_deref().unwrap_or("null");
    let outcome: Value = serde_json::from_str(kept).unwrap_or_default();
    let mut all = described(&task);
    if let Some(object) = all.as_object_mut() {
        object.insert("outcome".to_owned(), outcome.clone());
    }
    if args.json {
        output::json(&all)?;
    } else {
        output::line(&serde_json::to_string_pretty(&described(&task)).map_err(Failure::failed)?)?;
        print_outcome(&outcome)?;
    }
    if !args.take {
        return Ok(());
    }
    if !task.status.is_over() {
        return Err(Failure::failed(format!("task {id} is {}, so nothing was taken", task.status))
            .hint("what it brings is kept when it is over"));
    }
    if store.deliver_task(id).map_err(context::store_failure)? {
        let row = AuditRow::task(Event::McpTaskDelivered, &call_of(&task), id);
        let by = format!("uid {}", crate::sys::user());
        store.append(row.with("to", "operator").with("by", by)).await.map_err(context::store_failure)?;
    }
    Ok(())
}

fn cancel(store: &Store, id: &str, as_json: bool) -> Result<(), Failure> {
    let task = store.task(id).map_err(context::store_failure)?.ok_or_else(|| unknown(id))?;
    if task.status.is_over() {
        return Err(Failure::failed(format!("task {id} is {} already", task.status)));
    }
    let by = format!("operator (uid {})", crate::sys::user());
    store.request_task_cancel(id, &by).map_err(context::store_failure)?;
    if as_json {
        return output::json(&json!({ "id": id, "cancel_requested": true }));
    }
    output::line(&format!(
        "{id} is to be cancelled: the gateway that observes it tells server '{}' in a moment, or the next one \
         that starts does",
        task.server
    ))
}

fn print_outcome(outcome: &Value) -> Result<(), Failure> {
    let (result, error) = (at(outcome, "result"), at(outcome, "error"));
    if !result.is_null() {
        for text in content_texts(result) {
            output::line(text)?;
        }
        return Ok(());
    }
    if !error.is_null() {
        return output::line(&format!("error: {error}"));
    }
    let asked = at(outcome, "inputRequests");
    if asked.is_null() {
        Ok(())
    } else {
        output::line(&format!("it asks, and nobody is there to answer: {asked}"))
    }
}

/// A task in the words of its own protocol, where it has them.
fn described(task: &Task) -> Value {
    let snapshot: Value = serde_json::from_str(&task.snapshot).unwrap_or_default();
    json!({
        "id": task.id,
        "server": task.server,
        "tool": task.about.tool,
        "persona": task.about.persona,
        "credential": task.about.credential,
        "status": task.status,
        "statusMessage": at(&snapshot, "statusMessage"),
        "age_ms": age_ms(task),
        "created_at_ms": task.created_at_ms,
        "updated_at_ms": task.updated_at_ms,
        "expires_at_ms": task.expires_at_ms,
        "closed_at_ms": task.closed_at_ms,
        "handed": task.handed,
        "delivery": task.delivery,
        "deliveryPending": task.delivery == Delivery::Pending,
        "cancel_requested_by": task.cancel_requested_by,
        "invocation": task.about.invocation,
        "counters": task.counters,
    })
}

fn age_ms(task: &Task) -> i64 {
    let now = toolgate_base::Clock::now_ms(&toolgate_base::SystemClock);
    i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(task.created_at_ms).max(0)
}

fn call_of(task: &Task) -> CallFacts {
    let about = &task.about;
    CallFacts {
        deed: Deed::Call,
        actor: Actor {
            run_id: about.run_id.clone(),
            thread_id: about.thread_id.clone(),
            persona: Some(about.persona.clone()),
            lane: Some(about.lane.clone()),
            credential: Some(about.credential.clone()),
            session: Some(about.session.clone()),
        },
        server: Some(task.server.clone()),
        tool: Some(about.tool.clone()),
        exposed: Some(about.exposed.clone()),
        request_id: about.request_id.clone(),
    }
}

fn unknown(id: &str) -> Failure {
    Failure::failed(format!("there is no task {id}")).hint("see `toolgate mcp tasks`")
}
