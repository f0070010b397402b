//! Write Toolgate plugins in Rust.
//!
//! A plugin is a WebAssembly component that the host loads, gives exactly the interfaces of its
//! signed release, and asks. An author writes a type, implements the traits for the hooks it has
//! (one of [`policy`], [`adapter::Adapter`] or [`installer::Installer`]), and names those hooks in
//! [`policy!`], [`adapter!`] or [`installer!`]: the component then exports these and no others, and the host never asks for the
//! rest.
//!
//! ```
//! use toolgate_sdk::{CallPolicy, Decision, ListPolicy, Request};
//!
//! struct NoDeletes;
//!
//! fn judge(tool: &str) -> Decision {
//!     if tool.starts_with("delete_") {
//!         Decision::Deny(format!("{tool} deletes, and this host deletes nothing"))
//!     } else {
//!         Decision::Abstain
//!     }
//! }
//!
//! impl CallPolicy for NoDeletes {
//!     fn call(request: &Request) -> Decision {
//!         judge(&request.name())
//!     }
//! }
//!
//! impl ListPolicy for NoDeletes {
//!     fn list(request: &Request) -> Decision {
//!         judge(&request.name())
//!     }
//! }
//!
//! toolgate_sdk::policy!(NoDeletes: call, list);
//! ```
//!
//! Keep what decides in functions over plain values, as `judge` above: they run natively under
//! `cargo test`, where host calls do not exist. A panic is written to the operator's log and ends
//! the call; for a policy that is a denial, for an adapter a failed call.
//!
//! Nothing here reaches the network, the disk, the environment or the clock of the machine: a
//! plugin links no WASI, and what it may touch is the list of its imports. [`kv`], [`http`],
//! [`secrets`], [`secrets_reveal`] and [`files`] are capabilities: calling one puts it on that
//! list, and then its release has to declare a label of it and the operator to grant that label.

pub mod adapter;
#[doc(hidden)]
pub mod bindings;
pub mod document;
pub mod installer;
pub mod launch;
pub mod policy;
mod report;
pub mod settings;
pub mod words;

pub use adapter::Adapter;
pub use bindings::imports::toolgate::plugin::documents::Document;
pub use bindings::imports::toolgate::plugin::requests::Request;
pub use bindings::imports::toolgate::plugin::types::{
    Decision, Edit, Error, Finding, LabelList, PinState, Redaction, SurfaceKind,
};
pub use bindings::imports::toolgate::plugin::{clock, hashing, log, matching};
pub use bindings::imports::toolgate::plugin::{files, http, kv, secrets, secrets_reveal};
pub use installer::Installer;
pub use policy::{
    CallPolicy, CompletePolicy, ConnectPolicy, ElicitPolicy, InstallPolicy, ListPolicy, PromptPolicy,
    ReadPolicy, ResultPolicy, SubscribePolicy,
};
#[doc(hidden)]
pub use report::install as __report_panics;
