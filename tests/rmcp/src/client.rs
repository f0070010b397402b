//! The client of the matrix: jobs come in, what the server said goes out.
//!
//! A job is `{"id", "era": "legacy"|"modern", "command": [..], "env": {..}}` or with `"url"` and
//! `"token"`, and `"requests": [{"method", "params", "follow"}]`. `follow` is `progress` (the notes,
//! `notes` of them, are part of the answer) or `cancel` (the request is cancelled at its first note). The answer is
//! `{"id", "version", "answers": [{"result"} | {"error"}]}`, or `{"id", "failed"}`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::handler::client::ClientHandler;
use rmcp::model::{ClientRequest, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::{
    ClientCacheConfig, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, PeerRequestOptions,
    RoleClient, RunningService, ServiceError,
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
    let notes = Notes::default();
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

/// The notes of progress, by the text of their token.
#[derive(Clone, Default)]
struct Notes {
    seen: Arc<Mutex<HashMap<String, Vec<Value>>>>,
    came: Arc<Notify>,
}

impl ClientHandler for Notes {
    async fn on_progress(&self, note: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let token = serde_json::to_string(&note.progress_token).unwrap_or_default();
        let kept = json!({ "progress": note.progress, "total": note.total, "message": note.message });
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).entry(token).or_default().push(kept);
        self.came.notify_waiters();
    }
}

impl Notes {
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
