//! `toolgate.yaml`: strict, layered, with file, line and column in every error.
//!
//! Contract: [`discover`] says which file counts and why, [`load`] turns it, the managed layer
//! (`<data_dir>/servers.d`) and the variables into a [`Config`]. Nothing here writes the operator's
//! file. What is written are servers ([`managed`]), the digests of trusted files ([`trust`]) and
//! `secrets.env` ([`secrets`]), each under a lock and in one step.
//!
//! Bounds: a file is at most 1 MiB (a managed one 256 KiB), 64 levels deep.
//!
//! Threat: clients start Toolgate inside directories that somebody else wrote. So a file in the
//! working directory counts only after its digest was recorded, a file or directory that others can
//! write is refused, and no message repeats a value that may be a secret or a line beside an error.

mod commandline;
pub mod denials;
mod discover;
mod duplicates;
mod duration;
mod envfile;
mod error;
mod expand;
mod grants;
mod identity;
mod index;
mod load;
pub mod managed;
mod masked;
mod masking;
mod model;
mod node;
mod permissions;
mod persona;
mod places;
pub mod plugins_layer;
mod read;
mod schema;
pub mod secrets;
mod server;
mod sink;
mod skill;
#[cfg(test)]
mod testing;
pub mod trust;

pub use toolgate_base::Timeouts;

pub use discover::{Found, FoundBy, LookedAt, discover, user_config_dir};
pub use error::{ConfigError, Level, Notice, Place, Problem, nearest};
pub use expand::{VariableSource, VariableUse};
pub use index::{Index, SourceHost, Updates};
pub use load::{load, load_locked, load_with};
pub use masked::{mask_url, masked, masked_server};
pub use masking::Masking;
pub use model::{
    ApprovalWebhook, Approvals, Arguments, Audit, Bundle, Config, DEFAULT_PERSONA, Durability, FirstUse,
    Load, Pinned, PinnedBy, Pins, Plugins, Serve, TrustRule, grants_digest,
};
pub use permissions::{Permissions, Permit};
pub use persona::{Capabilities, CutAsks, Persona, PersonaApprovals};
pub use places::Places;
pub use server::{
    AdapterUse, Instance, Origin, Protocol, Restarts, Server, ToolFilter, Transport, Trust,
    looks_like_secret, names_secret,
};
pub use sink::{Sink, SinkFormat, SinkTarget};
pub use skill::{Lane, Runtime, Skill};
