//! The exported functions of one interface, found once at load and checked against the contract.

use wasmtime::component::{ComponentExportIndex, ComponentNamedList, Lift, Lower};

use crate::contract;
use crate::error::LoadErrorKind;
use crate::guest::{Guest, Prepared};

/// One interface of a plugin while it is loaded.
pub(crate) struct Exports<'a> {
    prepared: &'a Prepared,
    interface: String,
    guest: Guest,
}

impl<'a> Exports<'a> {
    /// Makes one instance, to see that it starts.
    pub(crate) fn of(prepared: &'a Prepared, interface: &str) -> Result<Self, LoadErrorKind> {
        let guest = prepared.instantiate(prepared.shared.limits.init).map_err(LoadErrorKind::DoesNotStart)?;
        Ok(Self { prepared, interface: contract::full_name(interface), guest })
    }

    /// A function with the type that the contract gives it.
    pub(crate) fn function<P, R>(&mut self, name: &str) -> Result<ComponentExportIndex, LoadErrorKind>
    where
        P: ComponentNamedList + Lower,
        (R,): ComponentNamedList + Lift,
    {
        let found = self.prepared.function(&self.interface, name);
        let found = found.ok_or_else(|| does_not_fit(format!("{} has no `{name}`", self.interface)))?;
        self.guest.has_type::<P, R>(&found).map_err(does_not_fit)?;
        Ok(found)
    }

    /// The instance, which nothing was called in yet.
    pub(crate) fn into_guest(self) -> Guest {
        self.guest
    }
}

fn does_not_fit(detail: String) -> LoadErrorKind {
    LoadErrorKind::DoesNotFit { contract: contract::VERSION, detail }
}
