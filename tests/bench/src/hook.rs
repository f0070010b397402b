//! What one hook of one policy costs, in this process and without any protocol: in a fresh store, and
//! where its decision is known already.

use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_gateway::assemble;
use toolgate_plugins::{Facts, Hook, HostOptions, PluginHost, SurfaceKind};
use toolgate_store::{Durability, Store};

use crate::Outcome;
use crate::place::{Place, Setup, UpstreamKind};

/// Hooks that are asked for one figure.
const ROUNDS: u32 = 5_000;
/// As many policies as the budget speaks of.
const POLICIES: usize = 5;

/// The figures, each the mean of [`ROUNDS`].
pub(crate) struct Hooks {
    /// One policy, in a fresh store.
    pub(crate) fresh: Duration,
    /// Five policies one after another, each in a fresh store.
    pub(crate) five_fresh: Duration,
    /// Five policies that said the same before.
    pub(crate) five_remembered: Duration,
}

/// Loads five policies as the binary does, and asks them.
pub(crate) fn measure(place: &Place) -> Outcome<Hooks> {
    let upstream = place.upstream(UpstreamKind::MODERN)?;
    let home = place.home(Setup::policies(POLICIES), &upstream)?;
    let env = |name: &str| std::env::var(name).ok();
    let found = toolgate_config::discover(Some(&home.config()), &env, &std::env::current_dir()?)?;
    let config = toolgate_config::load(&found, &env)?;
    let store = Arc::new(Store::open_with(
        &config.data_dir,
        "bench",
        Durability::Process,
        Arc::new(toolgate_base::SystemClock),
    )?);
    let host = PluginHost::new(HostOptions { cache_dir: Some(config.data_dir.join("aot")) })?;
    let assembled = assemble::assemble(&host, &config, &store)?;
    // Those that have the hook; the ones of the list and of results would say nothing here.
    let asked: Vec<_> = assembled
        .plugins
        .policies()
        .iter()
        .filter(|policy| policy.has(Hook::Call))
        .cycle()
        .take(POLICIES)
        .collect();
    let first = asked.first().ok_or("no policy has the hook")?;
    first.check(Hook::Call, &about(0));
    let mut number = 0;
    let mut new = || {
        number += 1;
        about(number)
    };
    let fresh = mean(|| drop(first.check(Hook::Call, &new())));
    let five_fresh = mean(|| {
        for policy in &asked {
            policy.check(Hook::Call, &new());
        }
    });
    let known = about(0);
    let five_remembered = mean(|| {
        for policy in &asked {
            policy.check(Hook::Call, &known);
        }
    });
    Ok(Hooks { fresh, five_fresh, five_remembered })
}

fn mean(mut work: impl FnMut()) -> Duration {
    let begun = Instant::now();
    for _ in 0..ROUNDS {
        work();
    }
    begun.elapsed() / ROUNDS
}

/// The facts of a call of a tool of this number.
fn about(number: u64) -> Arc<Facts> {
    Arc::new(Facts {
        persona: "default".to_owned(),
        server: "fix".to_owned(),
        kind: SurfaceKind::Tool,
        name: format!("tool_{number}"),
        label: format!("mcp.call:fix/tool_{number}"),
        has_capabilities: true,
        matched_allow: Some("mcp.call:fix".to_owned()),
        ..Facts::default()
    })
}
