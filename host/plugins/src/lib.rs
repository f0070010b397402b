//! The WebAssembly host: engine, capabilities, worlds, limits, trust and the native-code cache.

mod bindings;
mod decision;
mod facts;
mod fault;

pub use decision::{Change, Decision, DecisionSet, Edit, Redaction, UnknownDecision};
pub use facts::{Document, Facts, Hook, PinState, SurfaceKind};
pub use fault::{AdapterFault, Fault, FaultKind, InstallerError, Whose};
