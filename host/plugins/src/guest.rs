//! One instance of one plugin: making it, calling it, and saying what went wrong.
//!
//! Bounds: every store gets every limit of `limits`; every call gets a deadline; a trap ends the
//! instance, because its memory may be in any state (spec plugin-host 3.8).

use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::{
    ComponentExportIndex, ComponentNamedList, Instance, InstancePre, Lift, Lower, ResourceTableError,
};
use wasmtime::{Store, Trap, UpdateDeadline};

use crate::engine::{Core, PLACE_WAIT, Place};
use crate::fault::{Fault, FaultKind, Whose};
use crate::io;
use crate::limits::{MAX_HANDLES, Meter, Verdict};
use crate::state::{Shared, State, Trace};
use crate::text;

/// A plugin ready to be instantiated: linked once, at load.
pub(crate) struct Prepared {
    pub(crate) core: &'static Core,
    pub(crate) pre: InstancePre<State>,
    pub(crate) shared: Arc<Shared>,
}

/// One instance and its store.
pub(crate) struct Guest {
    core: &'static Core,
    store: Store<State>,
    instance: Instance,
    _place: Place,
}

impl Prepared {
    /// The index of an exported function.
    pub(crate) fn function(&self, interface: &str, name: &str) -> Option<ComponentExportIndex> {
        let component = self.pre.component();
        let instance = component.get_export_index(None, interface)?;
        component.get_export_index(Some(&instance), name)
    }

    /// Makes an instance; its start code, and calls until the next [`Guest::renew`], share `budget`.
    pub(crate) fn instantiate(&self, budget: Duration) -> Result<Guest, Fault> {
        let place = self.core.places.take(PLACE_WAIT).ok_or_else(|| self.busy())?;
        let mut store = self.store(budget);
        let running = self.core.ticker.running();
        let made = if self.shared.opened.sealed_wasi {
            sealed(self.shared.wall(budget), self.pre.instantiate_async(&mut store))
        } else {
            Some(self.pre.instantiate(&mut store))
        };
        drop(running);
        let Some(made) = made else { return Err(self.shared.too_late()) };
        match made {
            Ok(instance) => Ok(Guest { core: self.core, store, instance, _place: place }),
            Err(error) => Err(fault_of(&error, store.data())),
        }
    }

    fn store(&self, budget: Duration) -> Store<State> {
        let limits = &self.shared.limits;
        let meter = Meter::start(budget);
        let ticks = meter.ticks();
        let mut store = Store::new(&self.core.engine, State::new(Arc::clone(&self.shared), meter));
        store.limiter(|state| &mut state.growth);
        store.set_hostcall_fuel(limits.host_bytes);
        store.set_max_component_handles(MAX_HANDLES);
        store.set_epoch_deadline(ticks);
        store.epoch_deadline_callback(|mut context| {
            Ok(match context.data_mut().meter.at_deadline() {
                Verdict::Continue(ticks) => UpdateDeadline::Continue(ticks),
                Verdict::Interrupt => UpdateDeadline::Interrupt,
            })
        });
        store
    }

    /// No place to run it.
    pub(crate) fn busy(&self) -> Fault {
        Fault {
            plugin: self.shared.name.clone(),
            whose: Whose::HostBug,
            kind: FaultKind::Busy,
            detail: format!("no free place to run it within {} ms", PLACE_WAIT.as_millis()),
        }
    }
}

impl Guest {
    /// The state, to lend requests.
    pub(crate) fn state(&mut self) -> &mut State {
        self.store.data_mut()
    }

    /// Starts a new call in a used instance: a new deadline, a new allowance of log lines.
    pub(crate) fn renew(&mut self, budget: Duration) {
        let meter = Meter::start(budget);
        self.store.set_epoch_deadline(meter.ticks());
        self.store.data_mut().renew(meter);
    }

    /// Calls an exported function.
    pub(crate) fn call<P, R>(&mut self, function: &ComponentExportIndex, parameters: P) -> Result<R, Fault>
    where
        P: ComponentNamedList + Lower + Send + Sync,
        (R,): ComponentNamedList + Lift + Send + Sync + 'static,
    {
        let running = self.core.ticker.running();
        let typed = self.instance.get_typed_func::<P, (R,)>(&mut self.store, function);
        let shared = Arc::clone(&self.store.data().shared);
        let returned = match typed {
            Err(error) => Some(Err(error)),
            Ok(typed) if shared.opened.sealed_wasi => {
                sealed(shared.wall(shared.limits.call), typed.call_async(&mut self.store, parameters))
            }
            Ok(typed) => Some(typed.call(&mut self.store, parameters)),
        };
        drop(running);
        let Some(returned) = returned else { return Err(shared.too_late()) };
        match returned {
            Ok((value,)) => Ok(value),
            Err(error) => Err(fault_of(&error, self.store.data())),
        }
    }

    /// Whether an exported function has the type of the contract.
    pub(crate) fn has_type<P, R>(&mut self, function: &ComponentExportIndex) -> Result<(), String>
    where
        P: ComponentNamedList + Lower,
        (R,): ComponentNamedList + Lift,
    {
        let typed = self.instance.get_typed_func::<P, (R,)>(&mut self.store, function);
        typed.map(|_| ()).map_err(|error| format!("{error:#}"))
    }
}

/// Runs a sealed guest, whose WASI calls are asynchronous, and drops it where it does not end in
/// time: an epoch does not interrupt a guest that sleeps in a host call. On a thread of its own,
/// because this one may belong to a runtime, which must not be entered twice.
fn sealed<T: Send>(limit: Duration, work: impl Future<Output = T> + Send) -> Option<T> {
    let runtime = io::handle()?;
    std::thread::scope(|scope| {
        let run = || runtime.block_on(async { tokio::time::timeout(limit, work).await.ok() });
        std::thread::Builder::new()
            .name("plugin-sealed".to_owned())
            .spawn_scoped(scope, run)
            .ok()?
            .join()
            .ok()?
    })
}

impl Shared {
    /// The longest that a sealed guest may take by the clock, its waits included.
    fn wall(&self, budget: Duration) -> Duration {
        Meter::start(budget).wall().saturating_add(self.limits.wait)
    }

    fn too_late(&self) -> Fault {
        self.misbehaved(FaultKind::Deadline, "it did not answer within its wall-clock time")
    }

    /// A fault that this plugin made.
    pub(crate) fn misbehaved(&self, kind: FaultKind, detail: impl AsRef<str>) -> Fault {
        Fault {
            plugin: self.name.clone(),
            whose: Whose::PluginMisbehaved,
            kind,
            detail: text::reason(detail.as_ref()),
        }
    }
}

/// What an error of wasmtime's means. A limit that was met explains a trap that follows it.
pub(crate) fn fault_of(error: &wasmtime::Error, state: &State) -> Fault {
    let shared = &state.shared;
    let trap = error.downcast_ref::<Trap>();
    if trap == Some(&Trap::Interrupt) {
        return shared.misbehaved(FaultKind::Deadline, "it ran longer than its deadline");
    }
    if trap == Some(&Trap::StackOverflow) {
        return shared.misbehaved(FaultKind::Limit, "it used more stack than the limit of 512 KiB");
    }
    if let Some(ResourceTableError::Full) = error.downcast_ref::<ResourceTableError>() {
        return shared.misbehaved(FaultKind::Limit, format!("it held more than {MAX_HANDLES} handles"));
    }
    if error.downcast_ref::<wasmtime::PoolConcurrencyLimitError>().is_some() {
        let mut fault = shared.misbehaved(FaultKind::Busy, format!("{error:#}"));
        fault.whose = Whose::HostBug;
        return fault;
    }
    if let Some(limit) = state.growth.met {
        return shared
            .misbehaved(FaultKind::Limit, format!("it met the limit of {limit}: {}", first_line(error)));
    }
    if let Some(trap) = trap {
        return shared.misbehaved(FaultKind::Trap, trap_of(*trap, &state.trace));
    }
    // The other errors of a call are limits on what passes between guest and host, and values that
    // cannot be read. Which of them only the text says; nothing but this word hangs on it.
    let line = first_line(error);
    let limit = ["fuel", "handles", "limit"].iter().any(|word| line.contains(word));
    shared.misbehaved(if limit { FaultKind::Limit } else { FaultKind::BadAnswer }, line)
}

/// A trap with what its author needs to find it: the panic, and where in a document it was reading.
fn trap_of(trap: Trap, trace: &Trace) -> String {
    let what = match &trace.said {
        Some(said) => format!("{} ({trap})", said.trim()),
        None => trap.to_string(),
    };
    match trace.looked_up.as_deref() {
        Some("") => format!("after it read a whole document: {what}"),
        Some(pointer) => format!("after it read `{pointer}` of a document: {what}"),
        None => what,
    }
}

/// The innermost cause, which says what happened; the outer ones are backtraces and contexts.
fn first_line(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}
