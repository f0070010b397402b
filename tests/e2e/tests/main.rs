//! End-to-end tests on the built binary. Each test is one sentence and names the row, case or gate it
//! proves; each gate's test fails when its call site is removed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod advice;
mod approved;
mod apps;
mod apr_rows;
mod asks;
mod aud_rows;
mod audit;
mod audit_faults;
mod bounds;
mod calls;
mod cap_rows;
mod capabilities;
mod card;
mod decisions;
mod dispatch;
mod docs;
mod door;
mod events;
mod explained;
mod foreign;
#[allow(dead_code)] // the plugin host's own tests use the rest
#[path = "../../../host/plugins/src/tests/guests.rs"]
mod guests;
mod guidance;
mod hidden;
mod hostile;
mod hostile_bounds;
mod hostile_loads;
mod http;
mod https;
mod index_vectors;
mod indexes;
mod integrity;
mod keys;
mod kills;
mod kit;
mod life;
mod limits;
mod local;
mod lock;
mod locked;
mod logging;
mod logs;
mod lost;
mod misbehaving;
mod narrowed;
mod notices;
mod oci;
mod operator;
mod own_words;
mod personas;
mod pins;
mod plugin_rows;
mod policies;
mod preload;
mod questions;
mod registry;
mod sec_rows;
mod servers;
mod shared;
mod shown;
mod sinks;
mod sizes;
mod stopping;
mod stuck;
mod subscriptions;
mod supervision;
mod surface;
mod tasks;
mod trb_rows;
mod tried;
mod vectors;
mod web;
mod webhook;

/// The binary under test.
const TOOLGATE: &str = env!("CARGO_BIN_EXE_toolgate");

/// A sandbox around it.
fn sandbox() -> toolgate_e2e::Sandbox {
    toolgate_e2e::Sandbox::new(TOOLGATE)
}

/// A call that the fixture server gives back: what most tests ask, to see whether it passes.
const ECHO: [&str; 5] = ["mcp", "call", "fix.echo", "--json", HI];

/// The arguments of [`ECHO`].
const HI: &str = r#"{"message":"hi"}"#;
