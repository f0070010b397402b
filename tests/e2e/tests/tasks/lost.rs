//! What is left of a task by a gateway, a connection or a server that ended.

use std::io::BufRead as _;
use std::process::{Child, Stdio as Pipe};

use super::*;

/// A server over HTTP, which lives longer than a gateway.
pub(super) struct Web {
    child: Child,
    port: u16,
}

impl Web {
    pub(super) fn start(sandbox: &Sandbox, address: &str) -> Self {
        Self::start_with(sandbox, address, &[])
    }

    fn start_with(sandbox: &Sandbox, address: &str, options: &[&str]) -> Self {
        let mut child = std::process::Command::new(sandbox.fixture())
            .args(TASKS)
            .args(options)
            .args(["--http", address, "--tasks-file"])
            .arg(sandbox.path("tasks.json"))
            .arg("--ledger")
            .arg(sandbox.path("ledger"))
            .stdout(Pipe::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().parse().unwrap() }
    }

    fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.stop();
    }
}

fn web(sandbox: &Sandbox) -> Web {
    Web::serve(sandbox, &[])
}

impl Web {
    /// Starts it with these options, and configures it.
    pub(super) fn serve(sandbox: &Sandbox, options: &[&str]) -> Self {
        Self::serve_with(sandbox, options, "")
    }

    /// The same with these lines in its entry.
    pub(super) fn serve_with(sandbox: &Sandbox, options: &[&str], entry: &str) -> Self {
        let web = Self::start_with(sandbox, "127.0.0.1:0", options);
        sandbox.configure(&format!(
            "servers:\n  fix:\n    url: http://127.0.0.1:{}/mcp\n    trust: {{ auto_approve_tools: [job, echo] }}\n\
             {entry}personas:\n  default:\n    servers: [fix]\n",
            web.port
        ));
        web
    }
}

#[test]
fn a_task_is_observed_again_after_kill_9_and_its_result_is_kept_tsk_012_tsk_015_tsk_018() {
    let sandbox = sandbox();
    let _web = web(&sandbox);
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 3_000, "say": "made it" }));
    with_status(&sandbox, "working");
    sandbox.kill_gateway();
    let mut client = plain(&sandbox);
    let task = with_status(&sandbox, "completed");
    assert_eq!(
        (&task["deliveryPending"], &task["counters"]["recoveries"]),
        (&json!(true), &json!(1)),
        "{task}"
    );
    let shown = sandbox.run(&["mcp", "tasks", task["id"].as_str().unwrap(), "--json"]).exits(0).json();
    assert_eq!(text(&shown["outcome"]["result"]), "made it", "{shown}");
    assert!(client.line_within(Duration::from_millis(200)).is_none(), "nobody is told as if they had asked");
    assert_eq!(reached(&sandbox, "tools/call").len(), 1, "nothing is sent twice");
    let observed = rows(&sandbox, "mcp_task_observed");
    assert!(observed.iter().any(|row| row["details"]["why"] == "recovered"), "{observed:?}");
    sandbox.run(&["audit", "verify"]).exits(0);
}

#[test]
fn a_cancellation_that_was_not_sent_is_sent_by_the_next_gateway_tsk_012() {
    let sandbox = sandbox();
    let mut web = web(&sandbox);
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 60_000 }));
    let id = with_status(&sandbox, "working")["id"].as_str().unwrap().to_owned();
    web.stop();
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1000}}"#);
    until("it is noted", || (listed(&sandbox)[0]["cancel_requested_by"] == "caller").then_some(()));
    sandbox.kill_gateway();
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 0);
    let _web = Web::start(&sandbox, &format!("127.0.0.1:{}", web.port));
    let _client = plain(&sandbox);
    let task = with_status(&sandbox, "cancelled");
    assert_eq!(task["id"], json!(id));
    assert_eq!(reached(&sandbox, "tasks/cancel").len(), 1);
}

#[test]
fn a_gateway_killed_before_it_knew_of_the_task_repeats_nothing_and_says_which_call_it_was_tsk_002() {
    let sandbox = sandbox();
    let _web = web(&sandbox);
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 60_000, "late": 1_500 }));
    until("it was sent", || (reached(&sandbox, "tools/call").len() == 1).then_some(()));
    sandbox.kill_gateway();
    std::thread::sleep(Duration::from_secs(2));
    let _client = plain(&sandbox);
    let _ = sandbox.run(&["mcp", "status", "--json"]).exits(0);
    assert!(listed(&sandbox).is_empty(), "nothing is invented");
    let sent = reached(&sandbox, "tools/call");
    assert_eq!(sent.len(), 1, "nothing is sent twice");
    let row = &rows(&sandbox, "mcp_called")[0];
    assert_eq!(row["details"]["invocation"], sent[0]["params"]["_meta"]["toolgate/invocationId"]);
}

#[test]
fn a_task_outlives_the_connection_and_is_lost_with_a_server_that_forgets_it_tsk_012() {
    let sandbox = sandbox();
    let file = sandbox.path("tasks.json").display().to_string();
    configure(&sandbox, &[TASKS, &["--tasks-file", &file]].concat(), "");
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 2_500, "say": "made it" }));
    with_status(&sandbox, "working");
    // The process of the server ends; the next one knows the task.
    nix_kill(until("its process", || server_pid(&sandbox)));
    let reply = next(&mut client);
    assert_eq!((&reply["id"], text(&reply["result"])), (&json!(1_000), "made it"), "{reply}");
    let task = with_status(&sandbox, "completed");
    assert!(task["counters"]["recoveries"].as_u64().unwrap() >= 1, "{task}");
    assert_eq!(
        reached(&sandbox, "tools/call").iter().filter(|call| call["params"]["name"] == "job").count(),
        1
    );
    // Without its file it forgets.
    send(&mut client, 1_001, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    std::fs::remove_file(sandbox.path("tasks.json")).unwrap();
    nix_kill(until("its process", || server_pid(&sandbox)));
    let reply = next(&mut client);
    assert_eq!(code(&reply["result"]), "may_have_run", "{reply}");
    with_status(&sandbox, "lost");
}

#[test]
fn a_task_whose_server_is_gone_for_too_long_is_lost_whether_somebody_waits_or_nobody() {
    let sandbox = sandbox();
    let mut web = Web::serve_with(&sandbox, &[], "    timeouts: { task_lost: 1s }\n");
    let mut client = plain(&sandbox);
    send(&mut client, 1_000, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    web.stop();
    let reply = next(&mut client);
    assert_eq!(code(&reply["result"]), "may_have_run", "{reply}");
    assert!(text(&reply["result"]).contains("timeouts.task_lost"), "{reply}");
    with_status(&sandbox, "lost");
    let row = &rows(&sandbox, "mcp_task_expired")[0]["details"];
    assert_eq!(row["status"], "lost", "{row}");
    let status = sandbox.run(&["mcp", "status", "--json"]).exits(0).json();
    let tasks = &status["servers"][0]["tasks"];
    assert_eq!(*tasks, json!({ "active": 0, "queued": 0, "lost": 1, "delivery_pending": 0 }), "{status}");
    let shown = sandbox.run(&["mcp", "status"]).exits(0).stdout;
    assert!(shown.contains("tasks: 0 active, 0 queued, 1 lost") && shown.contains("--server fix"), "{shown}");
    // One that the next gateway takes up, and finds nobody to ask.
    let mut web = Web::start(&sandbox, &format!("127.0.0.1:{}", web.port));
    until("its server is back", || {
        let result = client.call("fix__echo", &json!({ "message": "hi" }));
        (result["isError"] != true).then_some(())
    });
    send(&mut client, 1_001, &json!({ "ms": 60_000 }));
    with_status(&sandbox, "working");
    sandbox.kill_gateway();
    web.stop();
    let _client = plain(&sandbox);
    until("the second is lost", || {
        (listed(&sandbox).iter().filter(|task| task["status"] == "lost").count() == 2).then_some(())
    });
}

/// The fixture below the gateway.
fn server_pid(sandbox: &Sandbox) -> Option<u32> {
    let children = |pid: u32| -> Vec<u32> {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let listed = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        listed
            .flat_map(|text| text.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect()
    };
    let name = |pid: &u32| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let mut queue = children(sandbox.gateway()?);
    while let Some(pid) = queue.pop() {
        if name(&pid).trim().starts_with("toolgate-fixtu") {
            return Some(pid);
        }
        queue.extend(children(pid));
    }
    None
}

fn nix_kill(pid: u32) {
    let done = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
    assert!(done.success());
}
