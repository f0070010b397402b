//! Direct against through: the same calls to the same Rust server, once directly and once through
//! `toolgate serve` with one, three and five policies, in one run on one machine.
//!
//! Only ratios mean anything; nothing here passes or fails by a time. Pins and the audit log are on.
//!
//! `cargo run --release -p toolgate-bench [SECONDS]` after `cargo build --release`.
#![allow(clippy::print_stdout)] // its output is the table

mod client;
mod place;
mod process;

use std::time::Duration;

use client::{Load, Sample};
use place::Place;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// One measured configuration.
struct Row {
    name: String,
    connections: usize,
    sample: Sample,
    cpu_micros: Option<f64>,
    memory_mib: Option<f64>,
}

fn main() -> Outcome<()> {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(3);
    let length = Duration::from_secs(seconds);
    let place = Place::make()?;
    let mut rows = Vec::new();
    for connections in [1, 16] {
        let direct = Load::direct(place.upstream.address);
        rows.push(Row {
            name: "direct".to_owned(),
            connections,
            sample: direct.run(connections, length)?,
            cpu_micros: None,
            memory_mib: None,
        });
        for policies in [1, 3, 5] {
            let gateway = place.gateway(policies)?;
            let through = Load::through(gateway.address, &gateway.token);
            through.run(1, Duration::from_millis(300))?;
            let before = gateway.process.cpu()?;
            let sample = through.run(connections, length)?;
            let used = gateway.process.cpu()?.saturating_sub(before);
            rows.push(Row {
                name: format!("through, {policies} policies"),
                connections,
                cpu_micros: Some(used.as_secs_f64() * 1e6 / f64::from(sample.calls.max(1))),
                memory_mib: Some(gateway.process.memory_mib()?),
                sample,
            });
        }
    }
    print(&rows);
    Ok(())
}

fn print(rows: &[Row]) {
    println!(
        "{:<22} {:>5} {:>9} {:>9} {:>9} {:>8} {:>11} {:>8}",
        "", "conns", "calls/s", "p50 ms", "p99 ms", "ratio", "CPU us/call", "RSS MiB"
    );
    for row in rows {
        let direct = rows.iter().find(|other| other.name == "direct" && other.connections == row.connections);
        let ratio = direct.map_or(0.0, |direct| row.sample.rate() / direct.sample.rate());
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
        println!(
            "{:<22} {:>5} {:>9.0} {:>9.3} {:>9.3} {:>8.2} {:>11} {:>8}",
            row.name,
            row.connections,
            row.sample.rate(),
            row.sample.percentile(50),
            row.sample.percentile(99),
            ratio,
            number(row.cpu_micros),
            number(row.memory_mib),
        );
    }
}
