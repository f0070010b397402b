//! The server, over stdio and over streamable HTTP; both eras, as rmcp speaks them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::ServiceExt as _;
use rmcp::handler::server::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, CompleteRequestParams,
    CompleteResult, CompletionInfo, ContentBlock, CreateTaskResult, ElicitRequest, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, GetTaskParams, GetTaskResult, Implementation, InputRequest,
    InputRequiredResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Role, ServerCapabilities,
    ServerConfig, ServerRequest, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::task_manager::{TaskManager, TaskOptions};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};

use crate::changes::Changes;
use crate::{Failure, surface};

/// A hanging call ends by itself after so long: nothing of a test may stay.
const LONGEST: Duration = Duration::from_secs(30);
/// A cancelled call notices within so long.
const NOTICE: Duration = Duration::from_secs(4);

/// A job takes so long.
const JOB: Duration = Duration::from_millis(200);
/// How often a job wants to be asked about, in milliseconds.
const JOB_POLL_MS: u64 = 50;

/// Serves one client over standard input and output.
pub(crate) async fn over_stdio() -> Result<(), Failure> {
    Peer::default().serve(stdio()).await?.waiting().await?;
    Ok(())
}

/// Serves on a port of the loopback address until the process is ended.
pub(crate) async fn over_http(port: &str) -> Result<(), Failure> {
    let peer = Peer::default();
    let service: StreamableHttpService<Peer, LocalSessionManager> = StreamableHttpService::new(
        move || Ok(peer.clone()),
        Arc::default(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port.parse::<u16>()?)).await?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

/// The server; clones share how their hanging calls ended.
#[derive(Clone, Default)]
struct Peer {
    changes: Changes,
    tasks: TaskManager,
    ended: Arc<Mutex<HashMap<String, &'static str>>>,
}

impl ServerHandler for Peer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_tasks()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("matrix-rmcp", "1.0.0"))
            .with_instructions("The surface of the matrix.")
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(surface::tools(self.changes.grown())))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        surface::tools(self.changes.grown()).into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name == "ask" {
            return ask(request.input_responses.as_ref().and_then(|given| given.get("why")), &context).await;
        }
        if request.name == "job" && takes_tasks(&context) {
            let options = TaskOptions::new().with_poll_interval_ms(JOB_POLL_MS);
            let task = self.tasks.spawn(options, |_| Box::pin(async { Ok(job().await) }));
            return Ok(CallToolResponse::Task(CreateTaskResult::new(task)));
        }
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        self.call(&request.name, &arguments, &context).await.map(CallToolResponse::Complete)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        Ok(GetTaskResult::new(self.tasks.get_task(&request.task_id)?))
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.cancel_task(&request.task_id)
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.changes.follow(request.uri, context.peer);
        Ok(())
    }

    // Nobody touches anything after it.
    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.changes.listen(&context).await
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(surface::prompts()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if request.name != "greet" {
            return Err(ErrorData::invalid_params("there is no such prompt", None));
        }
        let who = word(&Value::Object(request.arguments.unwrap_or_default()), "who")?;
        let message = PromptMessage::new_text(Role::User, format!("Hello, {who}!"));
        Ok(GetPromptResponse::Complete(GetPromptResult::new(vec![message]).with_description("A greeting.")))
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(surface::resources()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(surface::templates()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match surface::contents(&request.uri) {
            Some(contents) => Ok(ReadResourceResponse::Complete(ReadResourceResult::new(vec![contents]))),
            None => Err(ErrorData::resource_not_found(
                "there is no such resource",
                Some(json!({ "uri": request.uri })),
            )),
        }
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = ["one", "other"].iter().map(|ending| format!("{}{ending}", request.argument.value));
        let values = CompletionInfo::with_all_values(values.collect());
        values.map(CompleteResult::new).map_err(|error| ErrorData::internal_error(error, None))
    }
}

impl Peer {
    async fn call(
        &self,
        name: &str,
        arguments: &Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let said = |text: String| CallToolResult::success(vec![ContentBlock::text(text)]);
        match name {
            "echo" => Ok(said(word(arguments, "text")?)),
            "sum" => Ok(CallToolResult::structured(
                json!({ "total": number(arguments, "a")? + number(arguments, "b")? }),
            )),
            "pieces" => Ok(surface::pieces()),
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it failed on purpose")])),
            "steps" => {
                let count = number(arguments, "count")?;
                for step in 1..=count {
                    progress(context, step, count).await;
                }
                Ok(said(format!("{count} steps")))
            }
            "hang" => {
                let key = word(arguments, "key")?;
                progress(context, 1, 2).await;
                let how = tokio::select! {
                    () = context.ct.cancelled() => "cancelled",
                    () = tokio::time::sleep(LONGEST) => "by itself",
                };
                self.ended.lock().unwrap_or_else(PoisonError::into_inner).insert(key, how);
                Ok(said(how.to_owned()))
            }
            "job" => Ok(job().await),
            "touch" => {
                self.changes.touch(word(arguments, "uri")?);
                Ok(said("touched".to_owned()))
            }
            "grow" => {
                self.changes.grow((!is_modern(context)).then_some(&context.peer)).await;
                Ok(said("done".to_owned()))
            }
            "ended" => Ok(said(self.how_it_ended(&word(arguments, "key")?).await.to_owned())),
            _ => Err(ErrorData::invalid_params("there is no such tool", None)),
        }
    }
}

impl Peer {
    /// How a hanging call ended; it has a moment to notice.
    async fn how_it_ended(&self, key: &str) -> &'static str {
        let until = tokio::time::Instant::now() + NOTICE;
        loop {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
            match ended {
                Some(how) => return how,
                None if tokio::time::Instant::now() > until => return "running",
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

/// Asks why, as the era of the request has it: on the session, or as a round.
async fn ask(
    given: Option<&Value>,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let failed = |error: &dyn std::fmt::Display| ErrorData::internal_error(error.to_string(), None);
    let question = surface::question().map_err(|error| failed(&error))?;
    let said = match given {
        Some(said) => said.clone(),
        None if is_modern(context) => {
            let asked = [("why".to_owned(), InputRequest::Elicitation(ElicitRequest::new(question)))];
            return Ok(InputRequiredResult::from_input_requests(asked.into()).into());
        }
        None => {
            let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            let said = context.peer.send_request(request).await.map_err(|error| failed(&error))?;
            serde_json::to_value(said).map_err(|error| failed(&error))?
        }
    };
    let word = |pointer: &str| said.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{}: {}", word("/action"), word("/content/reason"));
    Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
}

/// What takes its time, as a task or at once.
async fn job() -> CallToolResult {
    tokio::time::sleep(JOB).await;
    CallToolResult::success(vec![ContentBlock::text("the job is done")])
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let declared = context.client_capabilities().is_some_and(|can| can.supports_tasks());
    is_modern(context) && declared
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Tells a client that wants to know how far a call is; one that has gone does not matter here.
async fn progress(context: &RequestContext<RoleServer>, step: i64, total: i64) {
    let Some(token) = context.meta.get_progress_token() else { return };
    #[allow(clippy::cast_precision_loss)]
    let note = ProgressNotificationParam::new(token, step as f64)
        .with_total(total as f64)
        .with_message(format!("step {step}"));
    drop(context.peer.notify_progress(note).await);
}

fn word(arguments: &Value, name: &str) -> Result<String, ErrorData> {
    let missing = || ErrorData::invalid_params(format!("{name} has to be a string"), None);
    arguments[name].as_str().map(str::to_owned).ok_or_else(missing)
}

fn number(arguments: &Value, name: &str) -> Result<i64, ErrorData> {
    let missing = || ErrorData::invalid_params(format!("{name} has to be an integer"), None);
    arguments[name].as_i64().ok_or_else(missing)
}
