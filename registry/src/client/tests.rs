//! The client against a registry that lies in every way that has a name.

mod attacks;
mod fixture;
mod memory;
mod releases;
mod vector;
