//! End-to-end tests on the built binary. Each test is one sentence and names the row, case or gate it
//! proves; each gate's test fails when its call site is removed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod apr_rows;
mod asks;
mod aud_rows;
mod audit;
mod audit_faults;
mod calls;
mod cap_rows;
mod capabilities;
mod card;
mod docs;
mod door;
mod events;
mod explained;
#[allow(dead_code)] // the plugin host's own tests use the rest
#[path = "../../../host/plugins/src/tests/guests.rs"]
mod guests;
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
mod lock;
mod locked;
mod logging;
mod misbehaving;
mod narrowed;
mod notices;
mod oci;
mod operator;
mod personas;
mod pins;
mod policies;
mod preload;
mod questions;
mod registry;
mod sec_rows;
mod servers;
mod sinks;
mod stopping;
mod surface;
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
