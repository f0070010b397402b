//! What is compared with what.

use std::time::Duration;

use crate::Outcome;
use crate::client::{Era, Load, Sample};
use crate::peers::{Over, Peer};
use crate::place::{Inside, Place, Setup, Upstream, UpstreamKind};
use crate::process::Process;
use crate::table::Row;

/// Turns that each target of a group takes.
const ROUNDS: u32 = 3;
/// The payload of the budgets, bytes.
const SMALL: usize = 64;

/// Targets that are measured side by side.
pub(crate) struct Group {
    pub(crate) title: String,
    connections: Vec<usize>,
    targets: Vec<Target>,
}

/// One of them.
struct Target {
    name: String,
    payload: usize,
    era: Era,
    upstream: UpstreamKind,
    /// Whether an answer may be a stream of events; what only Toolgate and the server answer never is.
    streams: bool,
    through: Through,
}

/// What stands between the client and the server.
enum Through {
    Nothing,
    Toolgate(Setup),
    Peer(Peer),
}

/// A target that runs.
struct Running {
    name: String,
    load: Load,
    between: Option<Process>,
    _upstream: Upstream,
    samples: Vec<Sample>,
    cpu: Duration,
}

/// Every group.
pub(crate) fn all() -> Vec<Group> {
    let mut groups = vec![policies()];
    groups.extend([SMALL, 4 << 10, 256 << 10].map(payload));
    groups.extend([servers(), tools()]);
    groups.extend([era(Era::Modern), era(Era::Legacy)]);
    groups.extend([bridge(Era::Modern, Era::Legacy), bridge(Era::Legacy, Era::Modern)]);
    groups.push(audit());
    groups
}

fn policies() -> Group {
    let through = |count: usize| Target::new(format!("through, {count} policies"), Setup::policies(count));
    Group {
        title: "64 B, policies".to_owned(),
        connections: vec![1, 16],
        targets: vec![Target::direct(SMALL), through(1), through(3), through(5)],
    }
}

fn payload(bytes: usize) -> Group {
    let through = Target { payload: bytes, ..Target::new("through, 3 policies", Setup::policies(3)) };
    let size = if bytes < 1 << 10 { format!("{bytes} B") } else { format!("{} KiB", bytes >> 10) };
    Group {
        title: format!("Payload of {size} there and back"),
        connections: vec![4],
        targets: vec![Target::direct(bytes), through],
    }
}

fn servers() -> Group {
    let with = |count: usize| {
        Target::new(format!("through, {count} servers"), Setup { servers: count, ..Setup::policies(3) })
    };
    Group { title: "64 B, servers".to_owned(), connections: vec![16], targets: vec![with(1), with(200)] }
}

fn tools() -> Group {
    let with = |count: usize| Target {
        upstream: UpstreamKind { tools: Some(count), ..UpstreamKind::MODERN },
        ..Target::new(format!("through, {count} tools"), Setup::policies(3))
    };
    Group { title: "64 B, tools".to_owned(), connections: vec![16], targets: vec![with(10), with(5_000)] }
}

fn era(era: Era) -> Group {
    let upstream = UpstreamKind { era, tools: None };
    let on = |target: Target| Target { era, upstream, ..target };
    let through = Target::new("through, 3 policies", Setup::policies(3));
    Group {
        title: format!("64 B, {} on both sides", era.word()),
        connections: vec![16],
        targets: vec![on(Target::direct(SMALL)), on(through)],
    }
}

/// A client of one era and a server of the other; the first row has the client's era on both sides.
fn bridge(client: Era, server: Era) -> Group {
    let to = |name: &str, era: Era| Target {
        era: client,
        upstream: UpstreamKind { era, tools: None },
        ..Target::new(format!("through, {name}"), Setup::policies(3))
    };
    Group {
        title: format!("64 B, {} client and {} server", client.word(), server.word()),
        connections: vec![16],
        targets: vec![to("one era", client), to("both eras", server)],
    }
}

/// Both are gateways inside this program, so that they differ in nothing else.
fn audit() -> Group {
    let with =
        |inside: Inside, name: &str| Target::new(name, Setup { inside: Some(inside), ..Setup::policies(3) });
    Group {
        title: "64 B, what the audit log costs".to_owned(),
        connections: vec![1, 16],
        targets: vec![
            with(Inside::NoAudit, "through, no audit log"),
            with(Inside::Audit, "through, audit log"),
        ],
    }
}

/// Other programs with the same server behind them, in the handshake era, which all of them speak. They do
/// not do the same work: Toolgate asks three policies, compares pins and writes its audit log.
pub(crate) fn peers(all: Vec<Peer>, over: Over) -> Group {
    let on = |target: Target| Target {
        era: Era::Legacy,
        upstream: UpstreamKind { era: Era::Legacy, tools: None },
        streams: true,
        ..target
    };
    let setup = Setup { stdio: over == Over::Stdio, ..Setup::policies(3) };
    let mut targets = match over {
        Over::Http => vec![on(Target::direct(SMALL))],
        Over::Stdio => Vec::new(),
    };
    targets.push(on(Target::new("Toolgate, 3 policies", setup)));
    for peer in all.into_iter().filter(|peer| peer.over == over) {
        let name = format!("{} {}", peer.name, peer.version);
        targets.push(on(Target { through: Through::Peer(peer), ..Target::new(name, setup) }));
    }
    Group { title: format!("64 B, a server over {}", over.word()), connections: vec![1, 16], targets }
}

impl Target {
    fn new(name: impl Into<String>, through: Setup) -> Self {
        Self {
            name: name.into(),
            payload: SMALL,
            era: Era::Modern,
            upstream: UpstreamKind::MODERN,
            streams: false,
            through: Through::Toolgate(through),
        }
    }

    fn direct(payload: usize) -> Self {
        let plain = Self::new("direct", Setup::policies(0));
        Self { payload, through: Through::Nothing, ..plain }
    }

    fn start(&self, place: &Place) -> Outcome<Running> {
        let upstream = place.upstream(self.upstream)?;
        let (load, between) = match &self.through {
            Through::Nothing => (Load::direct(upstream.address, self.era, self.payload), None),
            Through::Toolgate(setup) => {
                let gateway = place.gateway(*setup, &upstream)?;
                let load = Load::through(gateway.address, &gateway.token, self.era, self.payload);
                (load, Some(gateway.process))
            }
            Through::Peer(peer) => {
                let (load, process) = peer.start(&upstream, self.payload)?;
                (load, Some(process))
            }
        };
        let load = if self.streams { load.accepting_streams() } else { load };
        // Connections, pins and caches are there before anything is counted.
        load.list()?;
        load.run(2, Duration::from_millis(300))?;
        let (samples, cpu) = (Vec::new(), Duration::ZERO);
        Ok(Running { name: self.name.clone(), load, between, _upstream: upstream, samples, cpu })
    }
}

impl Group {
    pub(crate) fn run(&self, place: &Place, length: Duration) -> Outcome<Vec<Row>> {
        let mut running =
            self.targets.iter().map(|target| target.start(place)).collect::<Outcome<Vec<Running>>>()?;
        let mut rows = Vec::new();
        for connections in &self.connections {
            for _ in 0..ROUNDS {
                for target in &mut running {
                    target.turn(*connections, length / ROUNDS)?;
                }
            }
            for target in &mut running {
                rows.push(target.row(*connections)?);
            }
        }
        Ok(rows)
    }
}

impl Running {
    fn turn(&mut self, connections: usize, length: Duration) -> Outcome<()> {
        let cpu = |running: &Self| running.between.as_ref().map_or(Ok(Duration::ZERO), Process::cpu);
        let before = cpu(self)?;
        self.samples.push(self.load.run(connections, length)?);
        self.cpu += cpu(self)?.saturating_sub(before);
        Ok(())
    }

    fn row(&mut self, connections: usize) -> Outcome<Row> {
        let sample = Sample::of(std::mem::take(&mut self.samples));
        let cpu = std::mem::take(&mut self.cpu);
        let memory = self.between.as_ref().map(Process::memory_mib).transpose()?;
        let cpu = self.between.is_some().then(|| cpu / sample.calls().max(1));
        Ok(Row { name: self.name.clone(), connections, sample, cpu, memory })
    }
}
