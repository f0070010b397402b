//! Installers: asked in a fresh instance for each operation; they propose and never act.
//!
//! A plan is a proposal of somebody else's. Its shape is bounded here (counts, lengths, hidden
//! characters), and so is what it may say ([`check`]): a plan that could not be written into a configuration,
//! or that would take more than it shows, is a fault of the plugin's. The rest is for the host to show and
//! probe before anything is committed.

mod check;
mod plan;

use std::fmt;

use toolgate_signing::Digest;
use wasmtime::component::ComponentExportIndex;

use crate::answers;
use crate::bindings::{installer, types};
use crate::error::LoadErrorKind;
use crate::exports::Exports;
use crate::fault::{Fault, FaultKind, InstallerError};
use crate::guest::Prepared;
use crate::identity::Identity;
use crate::waiting;
pub use plan::{Artifact, Binding, Candidate, CommandLine, Endpoint, Launch, Page, Plan, Value};

/// One loaded installer. Cheap to share behind an `Arc`.
pub struct Installer {
    prepared: Prepared,
    functions: Functions,
    identity: Identity,
}

struct Functions {
    search: ComponentExportIndex,
    lookup: ComponentExportIndex,
    resolve: ComponentExportIndex,
}

type Answer<T> = Result<T, types::Error>;

impl Installer {
    /// Looks up the functions and makes one instance, to see that it starts and has the right types.
    pub(crate) fn new(prepared: Prepared, identity: Identity) -> Result<Self, LoadErrorKind> {
        let mut exports = Exports::of(&prepared, "installer")?;
        let functions = Functions {
            search: exports.function::<(String, Option<String>), Answer<installer::Page>>("search")?,
            lookup: exports.function::<(String,), Answer<Option<installer::Candidate>>>("lookup")?,
            resolve: exports.function::<(String, Option<String>), Answer<installer::Plan>>("resolve")?,
        };
        drop(exports);
        Ok(Self { prepared, functions, identity })
    }

    /// Its name, from the signed release.
    pub fn name(&self) -> &str {
        &self.prepared.shared.name
    }

    /// Digest of its component.
    pub fn digest(&self) -> Digest {
        self.identity.component
    }

    /// What a lockfile line is bound to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Finds servers by words: one page.
    pub fn search(&self, query: &str, cursor: Option<&str>) -> Result<Page, InstallerError> {
        let parameters = (query.to_owned(), cursor.map(str::to_owned));
        let page: installer::Page = self.operate(&self.functions.search, parameters)?;
        Ok(Page::read(page, &self.prepared.shared)?)
    }

    /// One server by its exact id; none where the source does not have it.
    pub fn lookup(&self, id: &str) -> Result<Option<Candidate>, InstallerError> {
        let found: Option<installer::Candidate> = self.operate(&self.functions.lookup, (id.to_owned(),))?;
        Ok(found.map(Candidate::read))
    }

    /// The plan for one server at a version or range; the newest where none is given.
    pub fn resolve(&self, id: &str, requirement: Option<&str>) -> Result<Plan, InstallerError> {
        let parameters = (id.to_owned(), requirement.map(str::to_owned));
        let plan: installer::Plan = self.operate(&self.functions.resolve, parameters)?;
        let plan = Plan::read(plan, &self.prepared.shared)?;
        check::check(&plan).map_err(|what| {
            let told = format!("its plan cannot be used: {what}");
            self.prepared.shared.misbehaved(FaultKind::BadAnswer, told)
        })?;
        Ok(plan)
    }

    fn operate<P, T>(&self, function: &ComponentExportIndex, parameters: P) -> Result<T, InstallerError>
    where
        P: wasmtime::component::ComponentNamedList + wasmtime::component::Lower + Send + Sync,
        T: wasmtime::component::Lift + Send + Sync + 'static,
        (Answer<T>,): wasmtime::component::ComponentNamedList + wasmtime::component::Lift,
    {
        let ask = || -> Result<Answer<T>, Fault> {
            let mut guest = self.prepared.instantiate(self.prepared.shared.limits.call)?;
            guest.call(function, parameters)
        };
        let answer = if self.prepared.shared.opened.waits() {
            waiting::apart(ask).unwrap_or_else(|| Err(self.prepared.busy()))?
        } else {
            ask()?
        };
        answer.map_err(|error| {
            let (kind, message) = answers::error(&error);
            InstallerError::Answer { plugin: self.name().to_owned(), kind, message }
        })
    }
}

impl fmt::Debug for Installer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Installer").field("identity", &self.identity).finish_non_exhaustive()
    }
}
