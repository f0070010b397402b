//! Shared by the tests: specs, connections, results.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolgate_base::Secret;
use toolgate_upstream::{
    ClientInfo, ConnectError, Connection, Event, Limits, Permit, ProtocolChoice, RequestError,
    RequestOptions, ServerSpec, Timeouts, TransportSpec,
};
use toolgate_wire::Outcome;

/// The program of `tests/child`.
pub(crate) const CHILD: &str = env!("CARGO_BIN_EXE_upstream-child");

pub(crate) fn spec(transport: TransportSpec) -> ServerSpec {
    ServerSpec {
        name: "weather".into(),
        transport,
        protocol: ProtocolChoice::Auto,
        timeouts: Timeouts { init: Duration::from_secs(20), ..Timeouts::default() },
        limits: Limits::default(),
        child_program: CHILD.into(),
        client_info: ClientInfo::new("toolgate", "0.1.0"),
        client_capabilities: "{}".to_owned(),
        log: None,
        mask: toolgate_upstream::Mask::default(),
    }
}

pub(crate) fn stdio(program: &str, args: &[&str], env: &[(&str, &Path)]) -> ServerSpec {
    spec(TransportSpec::Stdio {
        program: program.into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Secret::new(value.to_str().unwrap())))
            .collect(),
        cwd: None,
    })
}

/// A fixture server in one of its modes.
pub(crate) fn server(mode: &str, env: &[(&str, &Path)]) -> ServerSpec {
    stdio(CHILD, &["serve", mode], env)
}

pub(crate) fn web(url: &str) -> ServerSpec {
    spec(TransportSpec::Http {
        url: url.into(),
        headers: vec![("Authorization".into(), Secret::new("Bearer t0p"))],
    })
}

pub(crate) async fn try_open(spec: &ServerSpec) -> Result<(Connection, mpsc::Receiver<Event>), ConnectError> {
    let (sender, events) = mpsc::channel(16);
    let connection = Connection::open(spec, Permit::decided(&spec.name), sender, None).await?;
    Ok((connection, events))
}

pub(crate) async fn open(spec: &ServerSpec) -> Connection {
    try_open(spec).await.expect("the connection opens").0
}

pub(crate) fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

pub(crate) async fn call(connection: &Connection, tool: &str) -> Result<Value, RequestError> {
    call_with(connection, tool, RequestOptions::default()).await
}

pub(crate) async fn call_with(
    connection: &Connection,
    tool: &str,
    options: RequestOptions,
) -> Result<Value, RequestError> {
    let params = raw(&serde_json::json!({"name": tool, "arguments": {}}));
    match connection.request("tools/call", Some(params), options).await? {
        Outcome::Result(result) => Ok(serde_json::from_str(result.get()).unwrap()),
        Outcome::Error(error) => panic!("a JSON-RPC error: {error:?}"),
    }
}

/// The numbers in a file, one a line.
pub(crate) fn pids(path: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a process runs; one that is dead but not yet waited for does not.
pub(crate) fn alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(PathBuf::from(format!("/proc/{pid}/stat"))).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

/// Waits for a condition that another process brings about, at most `limit`.
pub(crate) async fn until(limit: Duration, what: &str, condition: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + limit;
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
