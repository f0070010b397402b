//! A place of its own for one test.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio as Pipe};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Http, Stdio, gateways};

/// Names the one gate that is off, where `cargo xtask gates` runs a test; no other build knows it. A gateway that
/// a client starts is handed the variables of the locale and no others, so the name begins like theirs.
const WITHOUT_GATE: &str = "LC_TOOLGATE_WITHOUT_GATE";

/// Twice as long as rows of the audit log wait for company at most (`store::audit::writer`).
const ROW_DELAY: Duration = Duration::from_millis(20);
/// How often a log is looked at that does not come to rest.
const LOOKS: usize = 20;

/// Home, configuration and data of one test.
pub struct Sandbox {
    dir: TempDir,
    toolgate: PathBuf,
}

/// What a finished command left.
#[derive(Debug)]
pub struct Run {
    /// Exit code.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Run {
    /// Standard output as one JSON value.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON: {error}: {self:?}"))
    }

    /// Asserts the exit code, showing everything where it differs.
    #[allow(clippy::must_use_candidate, clippy::return_self_not_must_use)] // the assertion is the point
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

impl Sandbox {
    /// A sandbox around the binary `toolgate` (`env!("CARGO_BIN_EXE_toolgate")` in a test).
    pub fn new(toolgate: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("toolgate-e2e-").tempdir().unwrap();
        let sandbox = Self { dir, toolgate: PathBuf::from(toolgate) };
        for name in ["home", "config/toolgate", "work"] {
            std::fs::create_dir_all(sandbox.path(name)).unwrap();
        }
        sandbox
    }

    /// A path inside the sandbox.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The operator's configuration file.
    pub fn config_file(&self) -> PathBuf {
        self.path("config/toolgate/toolgate.yaml")
    }

    /// The data directory.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Writes the operator's configuration.
    pub fn configure(&self, yaml: &str) {
        // Nobody answers in most tests, so a call that asks is not held for long.
        let hold = if yaml.contains("\napprovals:") { "" } else { "approvals: { hold: 100ms }\n" };
        let text = format!("data_dir: {}\n{hold}{yaml}", self.data().display());
        std::fs::write(self.config_file(), text).unwrap();
    }

    /// One fixture server `fix`, started with these options, bound to `default`; `rest` is appended
    /// at top level after `personas.default.servers`, so it may begin with more of the persona.
    pub fn configure_fixture(&self, options: &[&str], rest: &str) {
        self.configure(&format!(
            "servers:\n{}personas:\n  default:\n    servers: [fix]\n{rest}",
            self.fixture_entry("fix", options)
        ));
    }

    /// One fixture server `fix` that notes what it gets in `ledger`, bound to `default`; `tools`, as
    /// `one, two`, need no ask, and `entry` is appended to its entry.
    pub fn configure_trusted(&self, tools: &str, options: &[&str], entry: &str) {
        let ledger = self.path("ledger").display().to_string();
        let options: Vec<&str> = options.iter().copied().chain(["--ledger", &ledger]).collect();
        let fix = self.fixture_entry("fix", &options);
        self.configure(&format!(
            "servers:\n{fix}    trust: {{ auto_approve_tools: [{tools}] }}\n{entry}personas:\n  default:\n    servers: [fix]\n"
        ));
    }

    /// The entry of a fixture server for a `servers:` block.
    pub fn fixture_entry(&self, name: &str, options: &[&str]) -> String {
        let mut entry = format!("  {name}:\n    command: {}\n    args: [", self.fixture().display());
        for option in options {
            write!(entry, "{}, ", Value::from(*option)).unwrap();
        }
        entry.push_str("]\n");
        entry
    }

    /// The fixture server, which stands beside the binary.
    pub fn fixture(&self) -> PathBuf {
        let path = self.toolgate.with_file_name("toolgate-fixture");
        assert!(path.exists(), "{} is not built: cargo build --release -p toolgate-fixtures", path.display());
        path
    }

    /// Writes a file of the sandbox and gives its path as text.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    }

    /// Reads a file of the sandbox; empty where there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The binary with the sandbox's environment.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.toolgate);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_DATA_HOME", self.path("share"))
            .env("TMPDIR", std::env::temp_dir())
            .envs(std::env::var_os(WITHOUT_GATE).map(|gate| (WITHOUT_GATE, gate)))
            .current_dir(self.path("work"));
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Run {
        self.run_with(args, "", &[])
    }

    /// Runs the binary with standard input and more variables.
    pub fn run_with(&self, args: &[&str], input: &str, env: &[(&str, &str)]) -> Run {
        let mut command = self.command(args);
        command.envs(env.iter().copied());
        finish(command, input)
    }

    /// Runs a command in a session of its own, without any terminal, as an agent's shell tool does.
    pub fn run_detached(&self, command: &Command, input: &str) -> Run {
        let mut detached = Command::new("setsid");
        detached.arg("--wait").arg(command.get_program()).args(command.get_args()).env_clear();
        for (name, value) in command.get_envs() {
            detached.envs(value.map(|value| (name, value)));
        }
        detached.current_dir(self.path("work"));
        finish(detached, input)
    }

    /// The process of the gateway that serves this sandbox's data directory, if one runs.
    pub fn gateway(&self) -> Option<u32> {
        gateways::of(&self.data())
    }

    /// Ends the gateway that serves this sandbox's data directory, in order, and waits for its end.
    pub fn end_gateway(&self) {
        if let Some(pid) = self.gateway() {
            gateways::end(pid, "-TERM");
        }
    }

    /// Kills the gateway that serves this sandbox's data directory.
    pub fn kill_gateway(&self) {
        if let Some(pid) = self.gateway() {
            gateways::end(pid, "-KILL");
        }
    }

    /// Starts `toolgate serve --stdio --no-share`: all of Toolgate is this one process.
    pub fn serve_alone(&self, args: &[&str]) -> Stdio {
        self.serve_stdio(&[&["--no-share"], args].concat())
    }

    /// Starts `toolgate serve --stdio` and speaks to it by hand. The gateway behind it is shared, and ends
    /// with the sandbox at the latest.
    pub fn serve_stdio(&self, args: &[&str]) -> Stdio {
        let all: Vec<&str> = ["serve", "--stdio"].iter().chain(args).copied().collect();
        Stdio::start(self.command(&all))
    }

    /// Starts `toolgate serve --listen` on a free port of the loopback interface.
    pub fn serve_http(&self) -> Http {
        Http::start(self, &[])
    }

    /// The same with more options.
    pub fn serve_http_with(&self, options: &[&str]) -> Http {
        Http::start(self, options)
    }

    /// The audit rows as JSON, oldest first. Rows that nobody waits for are written a moment later than what
    /// they tell of, so it looks until nothing more has come for that long.
    pub fn audit(&self) -> Vec<Value> {
        let rows = || self.run(&["audit", "tail", "-n", "10000", "--json"]).exits(0).stdout;
        let mut seen = rows();
        for _ in 0..LOOKS {
            std::thread::sleep(ROW_DELAY);
            let now = rows();
            if now == seen {
                break;
            }
            seen = now;
        }
        seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Every audit row as it leaves the log, oldest first, however many there are.
    pub fn audit_all(&self) -> Vec<Value> {
        let run = self.run(&["audit", "export"]).exits(0);
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events of the audit log, oldest first.
    pub fn events(&self) -> Vec<String> {
        self.audit()
            .iter()
            .map(|row| row["details"]["event"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// The sandbox's directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        for pid in gateways::below(self.dir.path()) {
            gateways::end(pid, "-KILL");
        }
    }
}

/// Runs a command with this input to its end.
fn finish(mut command: Command, input: &str) -> Run {
    command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        let _ = stdin.write_all(input.as_bytes());
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
