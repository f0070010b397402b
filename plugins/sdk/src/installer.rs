//! Installers: knowledge of one source of servers. An installer proposes; the host checks, shows,
//! probes and commits.
//!
//! The functions have no `self`, because the host gives every operation a fresh instance.

use crate::{Error, report};

use crate::bindings::installer::exports::toolgate::plugin::installer as generated;
pub use generated::{Artifact, Binding, Candidate, CommandLine, Endpoint, Launch, Page, Plan, Value};

/// One source of servers.
pub trait Installer: 'static {
    /// Finds servers by words: one page, from `cursor` on.
    fn search(query: &str, cursor: Option<&str>) -> Result<Page, Error>;

    /// One server by its exact id; none where the source does not have it.
    fn lookup(id: &str) -> Result<Option<Candidate>, Error>;

    /// The plan for one server at a version or range; the newest where none is given.
    fn resolve(id: &str, requirement: Option<&str>) -> Result<Plan, Error>;
}

impl<T: Installer> generated::Guest for T {
    fn search(query: String, cursor: Option<String>) -> Result<Page, Error> {
        report::install();
        <T as Installer>::search(&query, cursor.as_deref())
    }

    fn lookup(id: String) -> Result<Option<Candidate>, Error> {
        report::install();
        <T as Installer>::lookup(&id)
    }

    fn resolve(id: String, requirement: Option<String>) -> Result<Plan, Error> {
        report::install();
        <T as Installer>::resolve(&id, requirement.as_deref())
    }
}

/// Exports an installer: `installer!(Type);`.
#[macro_export]
macro_rules! installer {
    ($type:ident) => {
        #[cfg(target_arch = "wasm32")]
        #[allow(unsafe_code, missing_docs, clippy::all, clippy::pedantic)]
        mod __toolgate_exports {
            use super::$type;
            $crate::bindings::installer::export!($type with_types_in $crate::bindings::installer);
        }
    };
}
