//! How long a gateway takes to its first answer, and what it holds in memory.

use std::time::{Duration, Instant};

use crate::Outcome;
use crate::client::{Era, Load};
use crate::place::{Place, Setup, UpstreamKind};

/// Starts with a warm cache; the median counts.
const STARTS: usize = 5;
/// As many plugins as the budget speaks of.
const PLUGINS: usize = 8;

/// The figures.
pub(crate) struct Start {
    pub(crate) cold: Duration,
    pub(crate) warm: Duration,
    pub(crate) warm_starts: usize,
    pub(crate) plugins: usize,
    pub(crate) memory_idle: f64,
    pub(crate) memory_busy: f64,
}

/// From the start of the process to the answer of a first `tools/call`, its server connected.
pub(crate) fn measure(place: &Place) -> Outcome<Start> {
    let upstream = place.upstream(UpstreamKind::MODERN)?;
    let home = place.home(Setup::policies(PLUGINS), &upstream)?;
    let answered = || -> Outcome<_> {
        let begun = Instant::now();
        let gateway = home.start()?;
        Load::through(gateway.address, &gateway.token, Era::Modern, 64).once()?;
        Ok((begun.elapsed(), gateway))
    };
    let (cold, first) = answered()?;
    drop(first);
    let mut warm = Vec::new();
    for _ in 1..STARTS {
        warm.push(answered()?.0);
    }
    let (last, gateway) = answered()?;
    warm.push(last);
    warm.sort_unstable();
    let memory_idle = gateway.process.memory_mib()?;
    Load::through(gateway.address, &gateway.token, Era::Modern, 64).run(16, Duration::from_secs(1))?;
    Ok(Start {
        cold,
        warm: warm.get(STARTS / 2).copied().unwrap_or_default(),
        warm_starts: STARTS,
        plugins: PLUGINS,
        memory_idle,
        memory_busy: gateway.process.memory_mib()?,
    })
}
