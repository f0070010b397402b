//! When a plugin that keeps failing is put aside (design.md 4 "Faults").

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::fault::{Fault, FaultKind, Whose};

/// Calls that may fail in a row before a plugin is put aside. Small, because every failed call is
/// a denied or failed call of the caller's already; not one, because a single document may be odd.
pub const MAX_STRIKES: u32 = 5;

/// Failures in a row of one plugin.
#[derive(Default)]
pub(crate) struct Strikes {
    in_a_row: AtomicU32,
    out: AtomicBool,
}

impl Strikes {
    /// Whether the plugin was put aside. Once out, only [`Strikes::forget`] brings it back.
    pub(crate) fn is_out(&self) -> bool {
        self.out.load(Ordering::Relaxed)
    }

    /// A call went well.
    pub(crate) fn well(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
    }

    /// A call failed. Being busy and unauthorised answers are no failures of the guest's code.
    pub(crate) fn failed(&self, fault: &Fault) {
        if matches!(
            fault.kind,
            FaultKind::Busy | FaultKind::Internal | FaultKind::Unauthorised | FaultKind::PutAside
        ) {
            return;
        }
        if self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_STRIKES
            && !self.out.swap(true, Ordering::Relaxed)
        {
            tracing::error!(plugin = fault.plugin, %fault, "the plugin failed {MAX_STRIKES} times in a row and is put aside until it is loaded again");
        }
    }

    /// Gives the plugin another try.
    pub(crate) fn forget(&self) {
        self.in_a_row.store(0, Ordering::Relaxed);
        self.out.store(false, Ordering::Relaxed);
    }

    /// What a plugin that is out answers.
    pub(crate) fn fault(plugin: &str) -> Fault {
        Fault {
            plugin: plugin.to_owned(),
            whose: Whose::PluginMisbehaved,
            kind: FaultKind::PutAside,
            detail: format!(
                "it failed {MAX_STRIKES} times in a row and was put aside; the operator gives it another try with \
                 `toolgate plugin retry {plugin}`, or installs another release"
            ),
        }
    }
}
