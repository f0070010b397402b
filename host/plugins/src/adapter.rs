//! Adapters: kept warm, because they are asked three times in every call of their server.
//!
//! An instance is configured once, serves at most [`MAX_USES`] calls, and is dropped at once on
//! any fault, since its memory may then be in any state. At most [`MAX_LIVE`] run at a time, and
//! at most [`MAX_WARM`] wait. A fault fails the call: nothing passes unadapted (design.md 4).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use toolgate_signing::Digest;
use wasmtime::component::{ComponentExportIndex, Resource};

use crate::answers;
use crate::bindings::{adapter, types};
use crate::decision::Change;
use crate::engine::{PLACE_WAIT, Places};
use crate::error::LoadErrorKind;
use crate::exports::Exports;
use crate::facts::{Facts, SharedFacts};
use crate::fault::{AdapterFault, Fault, FaultKind, Whose};
use crate::guest::{Guest, Prepared};
use crate::identity::Identity;
use crate::limits::MAX_BATCH;
use crate::state::Phase;
use crate::strikes::Strikes;
use crate::waiting;

/// Calls that one instance serves before it makes room for a fresh one.
const MAX_USES: u32 = 1_000;
/// Idle instances that are kept.
const MAX_WARM: usize = 4;
/// Instances of one adapter that run at the same time.
const MAX_LIVE: usize = 8;

/// One loaded adapter. Cheap to share behind an `Arc`.
pub struct Adapter {
    prepared: Prepared,
    functions: Functions,
    identity: Identity,
    live: Arc<Places>,
    warm: Mutex<Vec<Warm>>,
    strikes: Strikes,
}

struct Functions {
    configure: ComponentExportIndex,
    tools: ComponentExportIndex,
    arguments: ComponentExportIndex,
    content: ComponentExportIndex,
}

/// A configured instance.
struct Warm {
    guest: Guest,
    uses: u32,
}

type One = (Resource<SharedFacts>,);
type Many = (Vec<Resource<SharedFacts>>,);

impl Adapter {
    /// Looks up the functions, makes the first instance and configures it.
    pub(crate) fn new(prepared: Prepared, identity: Identity) -> Result<Self, LoadErrorKind> {
        let mut exports = Exports::of(&prepared, "adapter")?;
        let functions = Functions {
            configure: exports.function::<(), Result<(), types::Error>>("configure")?,
            tools: exports.function::<Many, Vec<adapter::Change>>("tools")?,
            arguments: exports.function::<One, adapter::Change>("arguments")?,
            content: exports.function::<One, adapter::Change>("content")?,
        };
        let mut guest = exports.into_guest();
        guest.state().phase = Phase::BeforeVerdict;
        let configured: Result<(), types::Error> =
            guest.call(&functions.configure, ()).map_err(LoadErrorKind::DoesNotStart)?;
        configured.map_err(|error| LoadErrorKind::NotConfigured(answers::error(&error).1))?;
        Ok(Self {
            prepared,
            functions,
            identity,
            live: Arc::new(Places::new(MAX_LIVE)),
            warm: Mutex::new(vec![Warm { guest, uses: 0 }]),
            strikes: Strikes::default(),
        })
    }

    /// Its name, from the signed release.
    pub fn name(&self) -> &str {
        &self.prepared.shared.name
    }

    /// Digest of its component.
    pub fn digest(&self) -> Digest {
        self.identity.component
    }

    /// What of it a cached view or a pending ask has to be bound to.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Whether it failed too often, so that the calls of its server fail until it is replaced or retried.
    pub fn is_put_aside(&self) -> bool {
        self.strikes.is_out()
    }

    /// Gives an adapter that was put aside another try, with fresh instances.
    pub fn retry(&self) {
        self.warm.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.strikes.forget();
    }

    /// One change for each tool definition, in their order, in batches of 256.
    /// [`Change::Fail`] hides the tool.
    pub fn tools(&self, requests: &[Arc<Facts>]) -> Result<Vec<Change>, AdapterFault> {
        let mut changes = Vec::with_capacity(requests.len());
        for batch in requests.chunks(MAX_BATCH) {
            let said =
                self.with_instance(Phase::BeforeVerdict, "tools", |guest| self.ask_many(guest, batch))?;
            changes.extend(said);
        }
        Ok(changes)
    }

    /// The arguments that the server shall get. [`Change::Fail`] refuses the call.
    pub fn arguments(&self, facts: &Arc<Facts>) -> Result<Change, AdapterFault> {
        self.with_instance(Phase::BeforeVerdict, "arguments", |guest| {
            self.ask_one(guest, &self.functions.arguments, facts)
        })
    }

    /// What becomes of a result. [`Change::Fail`] fails the call.
    pub fn content(&self, facts: &Arc<Facts>) -> Result<Change, AdapterFault> {
        self.with_instance(Phase::Open, "content", |guest| {
            self.ask_one(guest, &self.functions.content, facts)
        })
    }

    /// Runs `ask` in a warm instance, or a new one, and keeps it only if all went well.
    fn with_instance<T>(
        &self,
        phase: Phase,
        function: &str,
        ask: impl FnOnce(&mut Guest) -> Result<T, Fault>,
    ) -> Result<T, AdapterFault> {
        if self.prepared.shared.opened.waits() {
            return waiting::apart(|| self.with_instance_here(phase, function, ask))
                .unwrap_or_else(|| Err(self.prepared.busy().into()));
        }
        self.with_instance_here(phase, function, ask)
    }

    fn with_instance_here<T>(
        &self,
        phase: Phase,
        function: &str,
        ask: impl FnOnce(&mut Guest) -> Result<T, Fault>,
    ) -> Result<T, AdapterFault> {
        if self.strikes.is_out() {
            return Err(Strikes::fault(self.name()).into());
        }
        let _live = self.live.take(PLACE_WAIT).ok_or_else(|| self.busy())?;
        let result = self.take_warm().and_then(|mut warm| {
            warm.guest.renew(self.prepared.shared.limits.call);
            warm.guest.state().phase = phase;
            let answer = ask(&mut warm.guest).map_err(|fault| fault.within(function))?;
            warm.uses += 1;
            self.keep(warm);
            Ok(answer)
        });
        match &result {
            Ok(_) => self.strikes.well(),
            Err(fault) => {
                tracing::warn!(plugin = self.name(), code = fault.kind.code(), %fault, "an adapter failed, so the call fails");
                self.strikes.failed(fault);
            }
        }
        result.map_err(AdapterFault)
    }

    fn take_warm(&self) -> Result<Warm, Fault> {
        if let Some(warm) = self.warm.lock().unwrap_or_else(PoisonError::into_inner).pop() {
            return Ok(warm);
        }
        let mut guest = self.prepared.instantiate(self.prepared.shared.limits.init)?;
        guest.state().phase = Phase::BeforeVerdict;
        let configured: Result<(), types::Error> = guest.call(&self.functions.configure, ())?;
        match configured {
            Ok(()) => Ok(Warm { guest, uses: 0 }),
            Err(error) => {
                let detail = format!("it does not accept its settings: {}", answers::error(&error).1);
                Err(self.prepared.shared.misbehaved(FaultKind::Refused, detail))
            }
        }
    }

    fn keep(&self, warm: Warm) {
        if warm.uses >= MAX_USES || !self.prepared.core.places.is_roomy() {
            return;
        }
        let mut kept = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < MAX_WARM {
            kept.push(warm);
        }
    }

    fn ask_one(
        &self,
        guest: &mut Guest,
        function: &ComponentExportIndex,
        facts: &Arc<Facts>,
    ) -> Result<Change, Fault> {
        let owned = self.lend(guest, facts)?;
        let said = guest.call::<One, adapter::Change>(function, (Resource::new_borrow(owned.rep()),));
        guest.state().take_back(owned.rep());
        answers::change(said?, &self.prepared.shared)
    }

    fn ask_many(&self, guest: &mut Guest, batch: &[Arc<Facts>]) -> Result<Vec<Change>, Fault> {
        let shared = &self.prepared.shared;
        let owned = batch.iter().map(|facts| self.lend(guest, facts)).collect::<Result<Vec<_>, _>>()?;
        let reps: Vec<u32> = owned.iter().map(Resource::rep).collect();
        let said = guest.call::<Many, Vec<adapter::Change>>(&self.functions.tools, (owned,));
        for rep in reps {
            guest.state().take_back(rep);
        }
        let said = said?;
        if said.len() != batch.len() {
            let detail = format!("it gave {} changes for {} tools", said.len(), batch.len());
            return Err(shared.misbehaved(FaultKind::WrongCount, detail));
        }
        said.into_iter().map(|said| answers::change(said, shared)).collect()
    }

    fn lend(&self, guest: &mut Guest, facts: &Arc<Facts>) -> Result<Resource<SharedFacts>, Fault> {
        guest
            .state()
            .lend(facts)
            .map_err(|error| self.prepared.shared.misbehaved(FaultKind::Limit, format!("{error:#}")))
    }

    fn busy(&self) -> Fault {
        Fault {
            plugin: self.name().to_owned(),
            whose: Whose::HostBug,
            kind: FaultKind::Busy,
            detail: format!("{MAX_LIVE} calls are running in it already"),
        }
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Adapter").field("identity", &self.identity).finish_non_exhaustive()
    }
}
