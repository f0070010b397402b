//! What is compared with what.

use std::time::Duration;

use crate::Outcome;
use crate::client::{Era, Load, Sample};
use crate::place::{Gateway, Inside, Place, Setup, Upstream, UpstreamKind};
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
    /// None: the server itself.
    through: Option<Setup>,
}

/// A target that runs.
struct Running {
    name: String,
    load: Load,
    gateway: Option<Gateway>,
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

impl Target {
    fn new(name: impl Into<String>, through: Setup) -> Self {
        Self {
            name: name.into(),
            payload: SMALL,
            era: Era::Modern,
            upstream: UpstreamKind::MODERN,
            through: Some(through),
        }
    }

    fn direct(payload: usize) -> Self {
        let plain = Self::new("direct", Setup::policies(0));
        Self { payload, through: None, ..plain }
    }

    fn start(&self, place: &Place) -> Outcome<Running> {
        let upstream = place.upstream(self.upstream)?;
        let gateway = self.through.map(|setup| place.gateway(setup, &upstream)).transpose()?;
        let load = match &gateway {
            Some(gateway) => Load::through(gateway.address, &gateway.token, self.era, self.payload),
            None => Load::direct(upstream.address, self.era, self.payload),
        };
        // Connections, pins and caches are there before anything is counted.
        load.list()?;
        load.run(2, Duration::from_millis(300))?;
        let (samples, cpu) = (Vec::new(), Duration::ZERO);
        Ok(Running { name: self.name.clone(), load, gateway, _upstream: upstream, samples, cpu })
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
        let cpu = |running: &Self| running.gateway.as_ref().map_or(Ok(Duration::ZERO), |it| it.process.cpu());
        let before = cpu(self)?;
        self.samples.push(self.load.run(connections, length)?);
        self.cpu += cpu(self)?.saturating_sub(before);
        Ok(())
    }

    fn row(&mut self, connections: usize) -> Outcome<Row> {
        let sample = Sample::of(std::mem::take(&mut self.samples));
        let cpu = std::mem::take(&mut self.cpu);
        let memory = self.gateway.as_ref().map(|gateway| gateway.process.memory_mib()).transpose()?;
        let cpu = self.gateway.is_some().then(|| cpu / sample.calls().max(1));
        Ok(Row { name: self.name.clone(), connections, sample, cpu, memory })
    }
}
