//! The report, in Markdown.

use std::time::Duration;

use crate::client::Sample;
use crate::hook::Hooks;
use crate::start::Start;

/// One measured target.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) connections: usize,
    pub(crate) sample: Sample,
    /// CPU time of the gateway for one call; none for the server itself.
    pub(crate) cpu: Option<Duration>,
    /// Resident memory of the gateway afterwards, MiB.
    pub(crate) memory: Option<f64>,
}

/// What the figures are figures of.
pub(crate) fn machine() {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("unknown");
    println!("{cores} cores, load {load} at the beginning; clients, gateway and server share them.\n");
}

/// One group. The first row is what the others are compared with.
pub(crate) fn print(title: &str, rows: &[Row]) {
    println!("### {title}\n");
    println!(
        "| | connections | calls/s | of the first | p50 ms | more than the first | p99 ms | CPU µs/call | RSS MiB |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for row in rows {
        let Some(first) = rows.iter().find(|other| other.connections == row.connections) else { continue };
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
        };
        println!(
            "| {} | {} | {:.0} | {:.2} | {:.3} | {:+.3} | {:.3} | {} | {} |",
            row.name,
            row.connections,
            row.sample.rate(),
            row.sample.rate() / first.sample.rate(),
            row.sample.percentile(50),
            row.sample.percentile(50) - first.sample.percentile(50),
            row.sample.percentile(99),
            number(row.cpu.map(|cpu| cpu.as_secs_f64() * 1e6), 0),
            number(row.memory, 1),
        );
    }
    println!();
}

/// One hook, without any protocol around it.
pub(crate) fn hooks(hooks: &Hooks) {
    println!("### One `call` hook in this process\n");
    println!("| | µs |");
    println!("|---|--:|");
    for (what, took) in [
        ("one policy in a fresh store", hooks.fresh),
        ("five policies, each in a fresh store", hooks.five_fresh),
        ("five policies that said the same before", hooks.five_remembered),
    ] {
        println!("| {what} | {:.1} |", took.as_secs_f64() * 1e6);
    }
    println!();
}

/// Start and memory.
pub(crate) fn start(start: &Start) {
    println!("### Start and memory\n");
    println!("| | |");
    println!("|---|--:|");
    println!("| start to first answer, nothing compiled yet | {} ms |", start.cold.as_millis());
    println!(
        "| start to first answer, warm cache, median of {} | {} ms |",
        start.warm_starts,
        start.warm.as_millis()
    );
    println!(
        "| resident with {} plugins, after the first answer | {:.1} MiB |",
        start.plugins, start.memory_idle
    );
    println!("| resident with {} plugins, after load | {:.1} MiB |", start.plugins, start.memory_busy);
}
