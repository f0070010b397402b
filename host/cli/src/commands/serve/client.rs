//! The client's side: reaches the one gateway of a data directory, starts it where none runs, and relays.
//!
//! Contract: of clients that start at once one starts the gateway, under a lock, while the others wait
//! for it. What is started gets the variables that the configuration names and those that say where
//! things are, and neither the directory nor the other variables of whoever happened to be first. Where
//! the gateway cannot start, its reason and its exit code are this process's.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;
use toolgate_base::lock::FileLock;
use toolgate_config::FoundBy;
use toolgate_downstream::local::{
    Claim, Connected, DialError, Hello, PROTOCOL, Refused, RelayEnd, Want, dial, greet, relay, run_dir,
};

use super::process::Started;
use crate::context::{self, Loaded};
use crate::exit::{Code, Failure};
use crate::logging;

/// How long a start may take, plugins compiled included.
const START: Duration = Duration::from_mins(2);

/// How long a socket that was removed may take to come back.
const SOCKET_BACK: Duration = Duration::from_secs(3);

/// Variables that a gateway gets from the client that starts it, beside those that its configuration
/// names: where things are, how to write text, and how much to log.
const PASSED: [&str; 17] = [
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "RUST_BACKTRACE",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TOOLGATE_LOG",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
];

/// Serves the agent on this process's pipes by the shared gateway.
pub(super) async fn serve(loaded: &Loaded, want: Want, verbose: u8) -> Result<(), Failure> {
    let stop = CancellationToken::new();
    let signals = super::stop_on_signal(&stop);
    let hello = hello(loaded, want);
    let connected = tokio::select! {
        connected = reach(loaded, &hello, verbose) => connected?,
        // What was started meanwhile ends by itself.
        () = stop.cancelled() => return Ok(()),
    };
    let pid = connected.pid;
    let ended = relay(connected, tokio::io::stdin(), tokio::io::stdout(), &stop).await;
    signals.abort();
    match ended.map_err(Failure::failed)? {
        RelayEnd::ClientLeft => Ok(()),
        RelayEnd::GatewayEnded { unanswered } => Err(Failure::failed(format!(
            "the gateway (process {pid}) ended; {} without a reply",
            crate::output::count(unanswered, "request")
        ))
        .hint(format!("its log is {}", logging::own_file(&loaded.config.data_dir).display()))),
    }
}

/// Asks the gateway that serves this data directory; `None` where none runs.
pub(crate) async fn ask(loaded: &Loaded, want: Want) -> Result<Option<Value>, Failure> {
    let Some(stream) = dial(&loaded.config.data_dir).await.map_err(failure)? else { return Ok(None) };
    match greet(stream, &hello(loaded, want)).await {
        Ok(connected) => Ok(connected.value),
        Err(DialError::Gone) => Ok(None),
        Err(error) => Err(failure(error)),
    }
}

fn hello(loaded: &Loaded, want: Want) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: Some(context::build()),
        config: super::path_of(&loaded.config),
        locked: context::is_locked(),
        variables: loaded.variables.clone(),
        want,
    }
}

async fn reach(loaded: &Loaded, hello: &Hello, verbose: u8) -> Result<Connected, Failure> {
    let until = Instant::now() + START;
    loop {
        if let Some(stream) = dial(&loaded.config.data_dir).await.map_err(failure)? {
            match greet(stream, hello).await {
                // It was about to end: the next one is started.
                Err(DialError::Gone) if Instant::now() < until => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                greeted => return greeted.map_err(failure),
            }
            continue;
        }
        if Instant::now() >= until {
            return Err(Failure::failed("the gateway of this data directory does not start"));
        }
        start(loaded, verbose).await?;
    }
}

/// Starts a gateway, unless another client did meanwhile.
async fn start(loaded: &Loaded, verbose: u8) -> Result<(), Failure> {
    let data_dir = &loaded.config.data_dir;
    let run = run_dir(data_dir);
    for dir in [data_dir.as_path(), &run, &data_dir.join("log")] {
        toolgate_base::files::create_private_dir(dir)
            .map_err(|error| Failure::failed(format!("{} cannot be made: {error}", dir.display())))?;
    }
    let lock = run.join("start.lock");
    let taken = tokio::task::spawn_blocking(move || FileLock::exclusive(&lock, START));
    let _starting = taken.await.map_err(Failure::failed)?.map_err(Failure::failed)?;
    if dial(data_dir).await.map_err(failure)?.is_some() || socket_comes_back(data_dir).await? {
        return Ok(());
    }
    let mut child = command(loaded, verbose)?.spawn().map_err(|error| {
        Failure::failed(format!("the gateway of this data directory cannot be started: {error}"))
    })?;
    let told = child.stdout.take().map(BufReader::new);
    let line = async {
        let mut line = String::new();
        if let Some(mut told) = told {
            told.read_line(&mut line).await?;
        }
        std::io::Result::Ok(line)
    };
    let line = tokio::time::timeout(START, line).await;
    // Its first stage; it has ended by now.
    let _ = child.wait().await;
    let line = line
        .map_err(|_| Failure::failed(format!("the gateway was not ready within {START:?}")))?
        .map_err(Failure::failed)?;
    match serde_json::from_str(&line) {
        Ok(Started::Ready) => Ok(()),
        Ok(Started::Failed(refused)) => Err(of_refused(refused)),
        Err(_) => Err(Failure::failed("the gateway of this data directory ended while it started")
            .hint(format!("its log is {}", logging::own_file(data_dir).display()))),
    }
}

/// Whether a gateway holds the directory whose socket somebody removed: it looks every second and makes it anew.
async fn socket_comes_back(data_dir: &Path) -> Result<bool, Failure> {
    let until = Instant::now() + SOCKET_BACK;
    while Claim::serving(data_dir).is_ok_and(|holder| holder.is_some()) && Instant::now() < until {
        if dial(data_dir).await.map_err(failure)?.is_some() {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(false)
}

fn command(loaded: &Loaded, verbose: u8) -> Result<Command, Failure> {
    let path = logging::own_file(&loaded.config.data_dir);
    let errors = toolgate_base::files::open_private_append(&path)
        .map_err(|error| Failure::failed(format!("{} cannot be opened: {error}", path.display())))?;
    let mut command = Command::new(context::own_program()?);
    if context::is_locked() {
        command.arg("--locked");
    }
    command.args((0..verbose).map(|_| "-v"));
    match (loaded.found_by, &loaded.config.path) {
        (FoundBy::Argument | FoundBy::Environment, Some(path)) => {
            command.arg("--config").arg(path).args(["__gateway", "--detach"]);
        }
        // Looked for anew by the same rules, so that trust is asked for again.
        (FoundBy::WorkingDirectory, _) => {
            command.args(["__gateway", "--detach", "--from"]).arg(&loaded.from);
        }
        _ => {
            command.args(["__gateway", "--detach"]);
        }
    }
    command
        .env_clear()
        .envs(variables(&loaded.variables, std::env::vars()))
        .current_dir(Path::new("/"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors);
    Ok(command)
}

/// The environment of a gateway.
fn variables(
    named: &BTreeMap<String, String>,
    own: impl Iterator<Item = (String, String)>,
) -> BTreeMap<String, String> {
    let passed = |name: &str| PASSED.contains(&name) || name.starts_with("LC_");
    let mut all: BTreeMap<_, _> = own.filter(|(name, _)| passed(name)).collect();
    all.extend(named.clone());
    // The file is named by its path, or looked for where the client found it.
    all.remove("TOOLGATE_CONFIG");
    all
}

fn failure(error: DialError) -> Failure {
    match error {
        DialError::Refused(refused) => of_refused(refused),
        DialError::Stranger(_) => Failure::integrity(error),
        DialError::Silent { pid } => {
            let pid = pid.map_or_else(|| "PID".to_owned(), |pid| pid.to_string());
            Failure::failed(error).hint(format!(
                "it is stopped or has too much to do: let it go on with `kill -CONT {pid}`, or end it with \
                 `kill -KILL {pid}` and start this again"
            ))
        }
        error => Failure::failed(error),
    }
}

fn of_refused(refused: Refused) -> Failure {
    let code = [Code::Usage, Code::Denied, Code::Authentication, Code::Integrity]
        .into_iter()
        .find(|code| *code as u8 == refused.code)
        .unwrap_or(Code::Failed);
    let failure = Failure::new(code, refused.message);
    match refused.hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_gets_what_its_configuration_names_and_no_other_secret_of_its_starter() {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let own = pairs(&[
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("AWS_SECRET_ACCESS_KEY", "zzz"),
            ("LD_PRELOAD", "/evil.so"),
            ("TOOLGATE_CONFIG", "x"),
        ]);
        let asked = pairs(&[("WIKI_TOKEN", "t"), ("TOOLGATE_CONFIG", "x")]).into_iter().collect();
        let all = variables(&asked, own.into_iter());
        let names: Vec<&str> = all.keys().map(String::as_str).collect();
        assert_eq!(names, ["LC_ALL", "PATH", "WIKI_TOKEN"]);
    }
}
