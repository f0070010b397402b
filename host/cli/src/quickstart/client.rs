//! The agent of the quickstart: an rmcp client that starts `toolgate serve --stdio` like any other
//! client would.

use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;

use crate::context;
use crate::exit::Failure;
use crate::json::{at, content_texts};
use crate::quickstart::place::Place;

/// A connected agent.
pub(crate) struct Agent {
    service: RunningService<RoleClient, ()>,
}

/// What came back from a call.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    /// Toolgate's own code, where Toolgate and not the server answered.
    pub(crate) code: Option<String>,
    /// The ask, where a person has to answer.
    pub(crate) ask: Option<String>,
}

impl Agent {
    pub(crate) async fn connect(place: &Place) -> Result<Self, Failure> {
        let mut command = tokio::process::Command::new(context::own_program()?);
        command.arg("--config").arg(&place.config).args(["serve", "--stdio", "--no-share"]);
        let failed =
            |error: &dyn std::fmt::Display| Failure::failed(format!("the agent cannot connect: {error}"));
        let transport = TokioChildProcess::new(command).map_err(|error| failed(&error))?;
        let service = ().serve(transport).await.map_err(|error| failed(&error))?;
        Ok(Self { service })
    }

    pub(crate) async fn tools(&self) -> Result<Vec<String>, Failure> {
        let tools = self.service.list_all_tools().await.map_err(Failure::failed)?;
        Ok(tools.into_iter().map(|tool| tool.name.into_owned()).collect())
    }

    pub(crate) async fn call(&self, tool: &str, arguments: &Value) -> Result<Answer, Failure> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = arguments.as_object().cloned().map(JsonObject::from_iter);
        let result = self.service.call_tool(params).await.map_err(Failure::failed)?;
        answer(&result)
    }

    pub(crate) async fn leave(self) -> Result<(), Failure> {
        self.service.cancel().await.map(|_| ()).map_err(Failure::failed)
    }
}

fn answer(result: &CallToolResult) -> Result<Answer, Failure> {
    let value = serde_json::to_value(result).map_err(Failure::failed)?;
    let texts = content_texts(&value);
    let meta = |name: &str| value.pointer(&format!("/_meta/toolgate~1error/{name}")).and_then(Value::as_str);
    Ok(Answer {
        text: texts.join("\n"),
        is_error: at(&value, "isError") == true,
        code: meta("code").map(str::to_owned),
        ask: meta("ask").map(str::to_owned),
    })
}
