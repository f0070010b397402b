//! The author's kit: from nothing to a component, on a machine that has this binary and a compiler.
//!
//! [`Project`] lays out a new plugin: the contract and the SDK of this very version, a readable
//! example, documents to test it with. [`Toolchain`] finds what can compile guests and compiles
//! them; [`component`] wraps the core module. First-party plugins are built by the same code
//! (`cargo xtask build-plugins`), so that what authors get is what we use.
//!
//! Contract: nothing here signs, loads or trusts a plugin. It writes only below the directory it is
//! given, and starts only the compiler. Compiling runs the build scripts and macros of the author's
//! dependencies, as `cargo build` does; that is the author's own machine and choice.

pub mod component;
mod embedded;
mod names;
mod project;
mod toolchain;

pub use names::{Kind, Name, NameError};
pub use project::{Project, ProjectError};
pub use toolchain::{Build, BuildError, Choice, TARGET, Toolchain};
