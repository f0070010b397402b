//! The WebAssembly host: engine, interfaces, worlds, limits, decision authority and the native-code cache.
//!
//! A plugin is a component with its signed release. [`PluginHost::load`] takes both and gives a
//! [`Policy`], an [`Adapter`] or an [`Installer`]; a [`PluginSet`] keeps them in order for the
//! gateway. Three gates must agree before a guest can call anything: the signed release declares
//! the interface, the host offers it (`contract`), and the plugin's own linker holds it.
//!
//! # What bounds a plugin
//! | what | bound | where |
//! |---|---|---|
//! | component | 8 MiB, validated before it is compiled | `inspect` |
//! | memory, tables, instances, stack, handles | `limits`, clamped to the release | `guest` |
//! | running time | 5 ms a policy call and 0.1 ms for each definition of a listing, 250 ms an adapter call, 5 s an installer operation | `limits::meter` |
//! | wall-clock time | four times that, at least 250 ms | `limits::meter` |
//! | the host's work on documents | 8 s a call | `limits::meter` |
//! | what passes between guest and host | `host-bytes`, 1 MiB unless asked for, 16 MiB at most | `guest` |
//! | reasons | 1 KiB, hidden characters removed | `answers` |
//! | edits | 256, well-formed | `answers` |
//! | log | 64 lines of 4 KiB a call, escaped | `capability::log` |
//! | failures | 5 in a row, then put aside | `strikes` |
//! | waiting for disks and networks | 5 s a policy call, 30 s an adapter call, 2 min an installer operation | `state` |
//! | calls that may wait | 16 at a time | `waiting` |
//!
//! # Faults
//! A fault lets nothing pass: a policy's is a denial, an adapter's fails the call, an installer's
//! is an error. Each says whose it is ([`Whose`]).
//!
//! Nothing here knows MCP transports, personas or how verdicts are combined.

mod adapter;
mod answers;
mod bindings;
mod cache;
mod capability;
mod contract;
mod decision;
mod engine;
mod error;
mod exports;
mod facts;
mod fault;
mod guest;
mod host;
mod identity;
mod inspect;
mod installer;
mod io;
mod json;
mod limits;
mod manifest;
pub mod meaning;
mod opened;
mod policy;
mod ports;
mod powers;
mod remembered;
mod replay;
mod schema;
mod set;
mod state;
mod strikes;
mod sys;
mod text;
mod waiting;

#[cfg(test)]
extern crate self as toolgate_plugins;
#[cfg(test)]
mod tests;

pub use adapter::Adapter;
pub use capability::matching::hidden::{Finding as HiddenText, findings as hidden_text, stripped_blobs};
pub use contract::world_of;
pub use decision::{Change, Decision, DecisionSet, Edit, Redaction, UnknownDecision};
pub use error::{HostError, LoadError, LoadErrorKind};
pub use facts::{Document, Facts, Hook, PinState, SurfaceKind};
pub use fault::{AdapterFault, Fault, FaultKind, InstallerError, Whose};
pub use host::{Admission, HostOptions, Plugin, PluginHost};
pub use identity::Identity;
pub use inspect::{Inspection, inspect};
pub use installer::{
    Artifact, Binding, Candidate, CommandLine, Endpoint, Installer, Launch, Page, Plan, Value,
};
pub use io::detached;
pub use manifest::{Manifest, ManifestError, SOURCES_LIMIT};
pub use policy::{Listed, Policy};
pub use ports::{KvEntry, KvExpected, KvOutcome, KvSpace, KvStore, KvWrite, Ports, Record};
pub use powers::{Power, powers, widening};
pub use replay::{
    Difference, Moment, Outcome, RecordError, Recorded, RehearsalError, compare, rehearse, replay, trial,
};
pub use schema::SettingFault;
pub use set::{Blocked, PluginSet};
pub use strikes::MAX_STRIKES;
