//! Plugins from end to end: signed, checked, compiled, linked, asked. The guests are written in
//! WebAssembly text, so that no guest toolchain is needed.

mod adapters;
mod first_party;
pub(crate) mod guests;
mod installers;
mod limits;
mod loading;
mod native_code;
mod policies;
mod sealed;
mod traces;
