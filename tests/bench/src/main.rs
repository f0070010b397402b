//! Direct against through: the same calls to the same Rust server, once directly and once through
//! Toolgate, in one run on one machine (design, budgets).
//!
//! Only ratios mean anything; nothing here passes or fails by a time. The targets of one group take
//! turns in short rounds, so that what else the machine does meets all of them. Pins and the audit
//! log are on wherever a row does not say otherwise.
//!
//! `cargo run --release -p toolgate-bench [SECONDS]` after `cargo build --release --workspace`; the
//! seconds are those of one row. `peers FILE [SECONDS]` measures other programs that stand between a client and a
//! server instead; `tests/bench/peers/run.py` installs some and writes the file. What is printed is Markdown.
#![allow(clippy::print_stdout)] // its output is the table

mod client;
mod groups;
mod hook;
mod inside;
mod peers;
mod place;
mod process;
mod start;
mod table;

use std::path::Path;
use std::time::Duration;

use place::Place;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        // How this program starts itself: a gateway inside, for what the binary cannot be asked.
        ["serve", audit, config, address] => inside::serve(audit, Path::new(config), address.parse()?),
        ["peers", file] => beside(Path::new(file), Duration::from_secs(3)),
        ["peers", file, seconds] => beside(Path::new(file), Duration::from_secs(seconds.parse()?)),
        [] => measure(Duration::from_secs(3)),
        [seconds] => measure(Duration::from_secs(seconds.parse()?)),
        _ => Err("give the seconds of one row, or nothing".into()),
    }
}

fn beside(file: &Path, length: Duration) -> Outcome<()> {
    let place = Place::make()?;
    table::machine();
    for over in [peers::Over::Http, peers::Over::Stdio] {
        let group = groups::peers(peers::read(file)?, over);
        table::print(&group.title, &group.run(&place, length)?);
    }
    Ok(())
}

fn measure(length: Duration) -> Outcome<()> {
    let place = Place::make()?;
    table::machine();
    for group in groups::all() {
        table::print(&group.title, &group.run(&place, length)?);
    }
    table::hooks(&hook::measure(&place)?);
    table::start(&start::measure(&place)?);
    Ok(())
}
