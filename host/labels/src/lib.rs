//! Capability labels, exposed names and the rule for server names: one parser for the
//! configuration, the decision point, the command line and the guests.
//!
//! Pure functions over text, no I/O, no clock, no randomness; compiles for
//! `wasm32-unknown-unknown` so that a policy reads a label exactly as the host does.
//!
//! - [`Label`] names what somebody is about to do: `mcp.call:github/create_issue`.
//! - [`Pattern`] is what a persona's lists hold: `mcp.call:github/*`.
//! - [`exposed_name`] is the name under which a client sees a server's tool.
//! - [`check_server_name`] is the rule for names of servers.

mod exposed;
mod label;
mod name;

pub use exposed::{exposed_name, exposed_prefix};
pub use label::{Label, LabelError, MAX_LABEL, Pattern};
pub use name::{MAX_SERVER_NAME, NameError, check_server_name};
