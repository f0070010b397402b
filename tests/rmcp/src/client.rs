//! The client of the matrix: jobs come in, what the server said goes out.
//!
//! A job is `{"id", "era": "legacy"|"modern", "command": [..], "env": {..}}` or with `"url"` and
//! `"token"`, and `"requests": [{"method", "params", "follow"}]`. `follow` is `progress` (the notes,
//! `notes` of them, are part of the answer), `answer` (so is what was asked in between, as `asked`) or `cancel` (the request is cancelled at its first note). The answer is
//! `{"id", "version", "answers": [{"result"} | {"error"}]}`, or `{"id", "failed"}`.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolResponse, ClientCapabilities, ClientConfig, ClientRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, GetTaskParams, Implementation, ProgressNotificationParam, ProtocolVersion,
    ResourceUpdatedNotificationParam, ServerNotification, SubscriptionFilter, TaskPayload,
};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, PeerRequestOptions,
    RequestContext, RoleClient, RunningService, ServiceError,
};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::Notify;

use crate::Failure;

/// One request has so long.
const REPLY: Duration = Duration::from_secs(30);
/// A note that came before the answer is told within so long.
const LATE: Duration = Duration::from_secs(2);
/// A change is told within so long.
const TOLD: Duration = Duration::from_secs(10);

/// Runs jobs until standard input ends, several at a time.
pub(crate) async fn drive() -> Result<(), Failure> {
    // rmcp's HTTP client wants a provider even where nothing is encrypted.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut running = tokio::task::JoinSet::new();
    while let Some(line) = lines.next_line().await? {
        let job: Value = serde_json::from_str(&line)?;
        running.spawn(async move {
            let said = match run(&job).await {
                Ok((version, answers)) => json!({ "id": job["id"], "version": version, "answers": answers }),
                Err(error) => json!({ "id": job["id"], "failed": error.to_string() }),
            };
            println!("{said}");
        });
    }
    while running.join_next().await.is_some() {}
    Ok(())
}

async fn run(job: &Value) -> Result<(String, Vec<Value>), Failure> {
    let notes = Notes { modern: job["era"] == "modern", ..Notes::default() };
    let client = tokio::time::timeout(REPLY, connect(job, notes.clone())).await??;
    client.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
    let mut answers = Vec::new();
    for request in job["requests"].as_array().into_iter().flatten() {
        answers.push(tokio::time::timeout(REPLY, ask(&client, &notes, request)).await??);
    }
    let version = client.peer().peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    client.cancel().await?;
    Ok((version, answers))
}

async fn connect(job: &Value, notes: Notes) -> Result<RunningService<RoleClient, Notes>, Failure> {
    let era = match job["era"].as_str() {
        Some("modern") => {
            ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
        }
        _ => ClientLifecycleMode::Initialize,
    };
    if let Some(url) = job["url"].as_str() {
        let mut config = StreamableHttpClientTransportConfig::with_uri(url);
        if let Some(token) = job["token"].as_str() {
            config = config.auth_header(token);
        }
        return Ok(notes
            .serve_with_lifecycle(StreamableHttpClientTransport::from_config(config), era)
            .await?);
    }
    let words: Vec<&str> =
        job["command"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let (program, arguments) = words.split_first().ok_or("a job without url and command")?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).env_clear();
    for (name, value) in job["env"].as_object().into_iter().flatten() {
        command.env(name, value.as_str().unwrap_or_default());
    }
    Ok(notes.serve_with_lifecycle(TokioChildProcess::new(command)?, era).await?)
}

/// One request, as rmcp's types have it, and what came back, as rmcp's types kept it.
async fn ask(
    client: &RunningService<RoleClient, Notes>,
    notes: &Notes,
    asked: &Value,
) -> Result<Value, Failure> {
    match asked["follow"].as_str() {
        Some("answer") => return answer(client, notes, &asked["params"]).await,
        Some("updated") => return updated(client, notes, &asked["params"]).await,
        Some("task") if notes.modern => return task(client, &asked["params"]).await,
        Some("changed") => return changed(client, notes, &asked["params"]).await,
        _ => {}
    }
    let request: ClientRequest =
        serde_json::from_value(json!({ "method": asked["method"], "params": asked["params"] }))?;
    let follow = asked["follow"].as_str().unwrap_or_default();
    let handle = client.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await?;
    let token = serde_json::to_string(&handle.progress_token)?;
    if follow == "cancel" {
        notes.at_least(&token, 1).await;
        handle.cancel(Some("enough".to_owned())).await?;
        return Ok(json!({ "cancelled": true }));
    }
    let mut answer = match handle.await_response().await {
        Ok(result) => json!({ "result": result }),
        Err(ServiceError::McpError(error)) => json!({ "error": error }),
        Err(error) => return Err(error.into()),
    };
    if follow == "progress" {
        // rmcp hands notes on beside the answer: those that came before it may be told after it.
        let all = usize::try_from(asked["notes"].as_u64().unwrap_or(0))?;
        drop(tokio::time::timeout(LATE, notes.at_least(&token, all)).await);
        answer["progress"] = Value::Array(notes.taken(&token));
    }
    Ok(answer)
}

/// A call in which something is asked: on the session, or in rounds that rmcp makes by itself.
async fn answer(
    client: &RunningService<RoleClient, Notes>,
    notes: &Notes,
    params: &Value,
) -> Result<Value, Failure> {
    let mut answer = match client.call_tool(serde_json::from_value(params.clone())?).await {
        Ok(result) => json!({ "result": result }),
        Err(ServiceError::McpError(error)) => json!({ "error": error }),
        Err(error) => return Err(error.into()),
    };
    let asked = std::mem::take(&mut *notes.asked.lock().unwrap_or_else(PoisonError::into_inner));
    answer["asked"] = Value::Array(asked);
    Ok(answer)
}

/// A call of which the server makes a task, and what came of that.
async fn task(client: &RunningService<RoleClient, Notes>, params: &Value) -> Result<Value, Failure> {
    let made = match client.call_tool_once(serde_json::from_value(params.clone())?).await? {
        CallToolResponse::Task(made) => made,
        other => return Err(format!("no task was made: {other:?}").into()),
    };
    loop {
        let now = client.peer().get_task(GetTaskParams::new(made.task.task_id.clone())).await?.task;
        match now.payload {
            TaskPayload::Completed { result } => return Ok(json!({ "result": result, "task": true })),
            _ if now.status().is_terminal() => return Err(format!("it came to nothing: {now:?}").into()),
            _ => tokio::time::sleep(Duration::from_millis(made.task.poll_interval_ms.unwrap_or(50))).await,
        }
    }
}

/// Subscribes as the era has it, has the tool say that the resource changed, and gives what was told.
async fn updated(
    client: &RunningService<RoleClient, Notes>,
    notes: &Notes,
    params: &Value,
) -> Result<Value, Failure> {
    let filter = SubscriptionFilter::builder().resource_subscription(word(&params["uri"])).build();
    let touch = json!({ "name": params["touch"], "arguments": { "uri": params["own"] } });
    notes.updated.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let updated = if notes.modern {
        let Ok(mut stream) = client.peer().listen(filter).await else {
            return Ok(json!({ "refused": true }));
        };
        if stream.acknowledged().resource_subscriptions.as_ref().is_none_or(Vec::is_empty) {
            return Ok(json!({ "refused": true }));
        }
        client.call_tool(serde_json::from_value(touch)?).await?;
        match tokio::time::timeout(TOLD, stream.next()).await {
            Ok(Ok(Some(ServerNotification::ResourceUpdatedNotification(note)))) => vec![note.params.uri],
            _ => Vec::new(),
        }
    } else {
        let subscribe = json!({ "method": "resources/subscribe", "params": { "uri": params["uri"] } });
        if client.peer().send_request(serde_json::from_value(subscribe)?).await.is_err() {
            return Ok(json!({ "refused": true }));
        }
        client.call_tool(serde_json::from_value(touch)?).await?;
        notes.until(|| !notes.updated.lock().unwrap_or_else(PoisonError::into_inner).is_empty()).await;
        let give_up = json!({ "method": "resources/unsubscribe", "params": { "uri": params["uri"] } });
        client.peer().send_request(serde_json::from_value(give_up)?).await?;
        std::mem::take(&mut *notes.updated.lock().unwrap_or_else(PoisonError::into_inner))
    };
    Ok(json!({ "updated": updated.into_iter().collect::<BTreeSet<_>>() }))
}

/// Has the tool change the list of tools, and says whether that was told.
async fn changed(
    client: &RunningService<RoleClient, Notes>,
    notes: &Notes,
    params: &Value,
) -> Result<Value, Failure> {
    let tools = client.peer().peer_info().and_then(|info| info.capabilities.tools.clone());
    if !tools.and_then(|tools| tools.list_changed).unwrap_or_default() {
        return Ok(json!({ "changed": false }));
    }
    let grow = serde_json::from_value(params.clone())?;
    let changed = if notes.modern {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut stream = client.peer().listen(filter).await?;
        client.call_tool(grow).await?;
        matches!(
            tokio::time::timeout(TOLD, stream.next()).await,
            Ok(Ok(Some(ServerNotification::ToolListChangedNotification(_))))
        )
    } else {
        client.call_tool(grow).await?;
        notes.until(|| notes.changes.load(Ordering::SeqCst) > 0).await;
        notes.changes.load(Ordering::SeqCst) > 0
    };
    Ok(json!({ "changed": changed }))
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The notes of progress, by the text of their token, and what was asked.
#[derive(Clone, Default)]
struct Notes {
    modern: bool,
    asked: Arc<Mutex<Vec<Value>>>,
    updated: Arc<Mutex<Vec<String>>>,
    changes: Arc<AtomicUsize>,
    seen: Arc<Mutex<HashMap<String, Vec<Value>>>>,
    came: Arc<Notify>,
}

impl ClientHandler for Notes {
    fn get_info(&self) -> ClientConfig {
        // What all clients of the matrix can be asked; tasks are an extension of the stateless era.
        let extensions = if self.modern { json!({ "io.modelcontextprotocol/tasks": {} }) } else { json!({}) };
        let can = json!({ "elicitation": { "form": {}, "url": {} }, "extensions": extensions });
        let can: ClientCapabilities = serde_json::from_value(can).unwrap_or_default();
        ClientConfig::new(can, Implementation::new("matrix-rmcp", "1.0.0"))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap_or_default();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({ "reason": "because" })))
    }

    async fn on_resource_updated(
        &self,
        note: ResourceUpdatedNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.updated.lock().unwrap_or_else(PoisonError::into_inner).push(note.uri);
        self.came.notify_waiters();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
        self.came.notify_waiters();
    }

    async fn on_progress(&self, note: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let token = serde_json::to_string(&note.progress_token).unwrap_or_default();
        let kept = json!({ "progress": note.progress, "total": note.total, "message": note.message });
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(token).or_default().push(kept);
        self.came.notify_waiters();
    }
}

impl Notes {
    /// Waits until it is so, for as long as something may take to be told.
    async fn until(&self, is: impl Fn() -> bool) {
        let wait = async {
            loop {
                let came = self.came.notified();
                if is() {
                    return;
                }
                came.await;
            }
        };
        drop(tokio::time::timeout(TOLD, wait).await);
    }

    /// Waits for so many notes of a request.
    async fn at_least(&self, token: &str, count: usize) {
        loop {
            let came = self.came.notified();
            let seen =
                self.seen.lock().unwrap_or_else(PoisonError::into_inner).get(token).map_or(0, Vec::len);
            if seen >= count {
                return;
            }
            came.await;
        }
    }

    fn taken(&self, token: &str) -> Vec<Value> {
        let mut notes =
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(token).unwrap_or_default();
        // rmcp tells each in a task of its own, so their order is not the one in which they came.
        let done = |note: &Value| note["progress"].as_f64().unwrap_or_default();
        notes.sort_by(|left, right| done(left).total_cmp(&done(right)));
        notes
    }
}
