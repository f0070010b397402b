//! The client against a registry that lies in every way that has a name.

mod attacks;
pub(crate) mod fixture;
mod memory;
mod releases;
pub(crate) mod vector;
