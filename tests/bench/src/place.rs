//! The upstream server and the gateways in front of it.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::Outcome;
use crate::process::Process;

/// Everything that is measured.
pub(crate) struct Place {
    dir: TempDir,
    pub(crate) upstream: Upstream,
}

/// The server that answers.
pub(crate) struct Upstream {
    _process: Process,
    pub(crate) address: SocketAddr,
}

/// One `toolgate serve`.
pub(crate) struct Gateway {
    pub(crate) process: Process,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
}

/// Policies of the bundle in the order in which they are added; `trust` alone allows the connection,
/// and the call because the server's entry names the tool.
const POLICIES: [&str; 5] = ["trust", "capabilities", "hidden-text", "trust", "capabilities"];

impl Place {
    pub(crate) fn make() -> Outcome<Self> {
        let mut child = Command::new(built("toolgate-fixture")?)
            .args(["--era", "modern", "--http", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("the fixture has no standard output")?;
        let process = Process(child);
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line)?;
        let address = SocketAddr::from(([127, 0, 0, 1], line.trim().parse()?));
        Ok(Self { dir: tempfile::tempdir()?, upstream: Upstream { _process: process, address } })
    }

    /// A gateway with the first so many policies, pins and audit on.
    pub(crate) fn gateway(&self, policies: usize) -> Outcome<Gateway> {
        let free = TcpListener::bind("127.0.0.1:0")?;
        let address = free.local_addr()?;
        drop(free);
        let home = self.dir.path().join(format!("with-{policies}-{}", address.port()));
        std::fs::create_dir_all(&home)?;
        let config = home.join("toolgate.yaml");
        std::fs::write(&config, self.configuration(&home, policies)?)?;
        let child = Command::new(built("toolgate")?)
            .arg("--config")
            .arg(&config)
            .args(["serve", "--listen", &address.to_string()])
            .stderr(Stdio::null())
            .spawn()?;
        let process = Process(child);
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > until {
                return Err("the gateway does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let token = std::fs::read_to_string(home.join("data/token"))?;
        Ok(Gateway { process, address, token })
    }

    fn configuration(&self, home: &Path, policies: usize) -> Outcome<String> {
        let mut text = format!(
            "data_dir: {}/data\nservers:\n  fix: {{ url: \"http://{}/mcp\", trust: {{ auto_approve_tools: [echo] }} }}\npersonas:\n  default:\n    servers: [fix]\n    capabilities: {{ allow: [\"mcp.call:fix\"] }}\nplugins:\n  bundle: none\n  fallback: []\n  load:\n",
            home.display(),
            self.upstream.address
        );
        for name in POLICIES.iter().take(policies) {
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
}

/// A binary that stands beside this one.
fn built(name: &str) -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name(name);
    if path.exists() {
        Ok(path)
    } else {
        Err(format!("{} is not built: cargo build --release --workspace", path.display()).into())
    }
}
