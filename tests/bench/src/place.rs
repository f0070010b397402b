//! The upstream servers and the gateways in front of them.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::client::Era;
use crate::process::Process;
use crate::{Outcome, inside};

/// A directory for everything that is measured.
pub(crate) struct Place {
    dir: TempDir,
    homes: AtomicUsize,
}

/// What kind of server answers.
#[derive(Clone, Copy)]
pub(crate) struct UpstreamKind {
    pub(crate) era: Era,
    /// So many tools; the fixture's own without a number.
    pub(crate) tools: Option<usize>,
}

/// The server that answers.
pub(crate) struct Upstream {
    _process: Process,
    pub(crate) address: SocketAddr,
}

/// How a gateway is set up.
#[derive(Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) policies: usize,
    /// Entries for the one upstream; the first is called.
    pub(crate) servers: usize,
    /// The server is a command of its own and not the one over HTTP.
    pub(crate) stdio: bool,
    /// None: the binary.
    pub(crate) inside: Option<Inside>,
}

/// A gateway inside this program.
#[derive(Clone, Copy)]
pub(crate) enum Inside {
    Audit,
    NoAudit,
}

/// A gateway's configuration and data, to be started from once or several times.
pub(crate) struct Home {
    dir: PathBuf,
    inside: Option<Inside>,
}

/// A gateway that runs.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// Policies of the bundle in the order in which they are added, and over again from the start; `trust`
/// alone allows the connection, and the call because the server's entry names the tool.
const POLICIES: [&str; 3] = ["trust", "capabilities", "hidden-text"];

impl UpstreamKind {
    pub(crate) const MODERN: Self = Self { era: Era::Modern, tools: None };
}

impl Setup {
    /// One server behind so many policies.
    pub(crate) fn policies(policies: usize) -> Self {
        Self { policies, servers: 1, stdio: false, inside: None }
    }
}

impl Place {
    pub(crate) fn make() -> Outcome<Self> {
        Ok(Self { dir: tempfile::tempdir()?, homes: AtomicUsize::new(0) })
    }

    pub(crate) fn upstream(&self, kind: UpstreamKind) -> Outcome<Upstream> {
        let mut command = Command::new(built("toolgate-fixture")?);
        command.args(["--era", kind.era.word(), "--http", "127.0.0.1:0"]);
        if let Some(count) = kind.tools {
            let path = self.dir.path().join(format!("{count}-tools.json"));
            std::fs::write(&path, tools(count))?;
            command.arg("--tools").arg(path);
        }
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let out = child.stdout.take().ok_or("the fixture has no standard output")?;
        let process = Process(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = SocketAddr::from(([127, 0, 0, 1], line.trim().parse()?));
        Ok(Upstream { _process: process, address })
    }

    pub(crate) fn gateway(&self, setup: Setup, upstream: &Upstream) -> Outcome<Gateway> {
        self.home(setup, upstream)?.start()
    }

    pub(crate) fn home(&self, setup: Setup, upstream: &Upstream) -> Outcome<Home> {
        let number = self.homes.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.path().join(format!("home-{number}"));
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("toolgate.yaml"), configuration(&dir, setup, upstream)?)?;
        Ok(Home { dir, inside: setup.inside })
    }
}

impl Home {
    /// Its configuration.
    pub(crate) fn config(&self) -> PathBuf {
        self.dir.join("toolgate.yaml")
    }

    pub(crate) fn start(&self) -> Outcome<Gateway> {
        let address = free_address()?;
        let config = self.config();
        let mut command = match self.inside {
            None => {
                let mut command = Command::new(built("toolgate")?);
                command.arg("--config").arg(&config).args(["serve", "--listen", &address.to_string()]);
                command
            }
            Some(inside) => {
                let word = match inside {
                    Inside::Audit => inside::AUDIT,
                    Inside::NoAudit => inside::NO_AUDIT,
                };
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["serve", word]).arg(&config).arg(address.to_string());
                command
            }
        };
        let process = Process(command.stderr(Stdio::null()).spawn()?);
        listens(address)?;
        let token = std::fs::read_to_string(self.dir.join("data/token"))?;
        Ok(Gateway { process, address, token })
    }
}

/// Waits until somebody listens.
pub(crate) fn listens(address: SocketAddr) -> Outcome<()> {
    let until = Instant::now() + Duration::from_mins(1);
    while TcpStream::connect(address).is_err() {
        if Instant::now() > until {
            return Err(format!("nothing listens on {address}").into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// An address that nobody has.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

fn configuration(home: &Path, setup: Setup, upstream: &Upstream) -> Outcome<String> {
    let mut text = format!("data_dir: {}/data\nservers:\n", home.display());
    let names: Vec<String> = (0..setup.servers)
        .map(|number| if number == 0 { "fix".to_owned() } else { format!("fix{number}") })
        .collect();
    let at = if setup.stdio {
        format!("command: \"{}\", args: [--era, legacy]", built("toolgate-fixture")?.display())
    } else {
        format!("url: \"http://{}/mcp\"", upstream.address)
    };
    for name in &names {
        writeln!(text, "  {name}: {{ {at}, trust: {{ auto_approve_tools: [echo] }} }}")?;
    }
    let labels: Vec<String> = names.iter().map(|name| format!("\"mcp.call:{name}\"")).collect();
    writeln!(text, "personas:\n  default:\n    servers: [{}]", names.join(", "))?;
    writeln!(text, "    capabilities: {{ allow: [{}] }}", labels.join(", "))?;
    writeln!(text, "plugins:\n  bundle: none\n  fallback: []\n  load:")?;
    for name in POLICIES.iter().cycle().take(setup.policies) {
        let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../registry/first-party").join(name);
        let version = std::fs::read_dir(plugin)?.next().ok_or("no release")??.path().canonicalize()?;
        writeln!(
            text,
            "    - {{ plugin: \"{}\", decisions: [allow, ask, deny, redact] }}",
            version.display()
        )?;
    }
    Ok(text)
}

/// `echo` and as many others as make up the number, each with a schema of a usual size.
fn tools(count: usize) -> String {
    let tool = |name: String| {
        serde_json::json!({
            "name": name,
            "description": "One of many tools, described in a sentence of about the usual length.",
            "inputSchema": { "type": "object", "properties": {
                "message": { "type": "string", "description": "What to say." },
                "count": { "type": "integer", "minimum": 0 },
            } },
        })
    };
    // `echo` comes last: a search from the front would pay for all of them.
    let others = (1..count).map(|number| tool(format!("tool_{number}")));
    others.chain([tool("echo".to_owned())]).collect::<serde_json::Value>().to_string()
}

/// A binary that stands beside this one.
pub(crate) fn built(name: &str) -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is not built: cargo build --release --workspace", path.display()).into())
    }
}
