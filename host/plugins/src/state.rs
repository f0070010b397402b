//! What one store holds while a guest runs, and what all stores of one plugin share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wasmtime::component::{Resource, ResourceTable};

use wasmtime_wasi::WasiCtx;

use crate::bindings::types::Error;
use crate::capability::matching::Matching;
use crate::facts::{Document, Facts, SharedFacts};
use crate::limits::{Growth, Limits, MAX_HANDLES, Meter};
use crate::opened::Opened;
use crate::ports::Record;

/// Documents from this size on are worth a look at the clock while the host works on them: a scan
/// of fewer bytes takes less time than the look.
const TIMED_FROM: usize = 1 << 10;

/// What every store of one plugin shares. Made once, at load.
pub(crate) struct Shared {
    /// The plugin's name, from its release.
    pub(crate) name: String,
    /// Its limits, clamped.
    pub(crate) limits: Limits,
    /// Its settings: one JSON object.
    pub(crate) settings: Document,
    /// Patterns and paths compiled from those settings.
    pub(crate) matching: Matching,
    /// Labels that are open to it.
    pub(crate) opened: Opened,
    /// Where the use of a secret is written down.
    pub(crate) record: Option<Arc<dyn Record>>,
}

/// What may happen in this part of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Whatever is granted.
    Open,
    /// An adapter before the verdict: it proposes, and changes nothing outside (design.md 3.4).
    BeforeVerdict,
}

/// The data of one store.
pub(crate) struct State {
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: ResourceTable,
    pub(crate) growth: Growth,
    pub(crate) meter: Meter,
    /// Log lines written in this call.
    pub(crate) log_lines: u32,
    /// What may happen now.
    pub(crate) phase: Phase,
    /// The request at hand, for what belongs to its persona or session; none where there is none,
    /// or several of different ones.
    pub(crate) subject: Option<Arc<Facts>>,
    /// Whether a request was lent in this call.
    lent: bool,
    /// The document of that request, once the guest has a handle of it.
    judged: Option<Document>,
    /// Of a sealed guest.
    pub(crate) wasi: Option<Box<WasiCtx>>,
    /// What a fault of this call is told with.
    pub(crate) trace: Trace,
    /// What the guest knows beyond the plain facts of its request.
    pub(crate) knows: Knows,
}

/// What a guest knows or did in this call beyond the plain facts of its request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Knows {
    /// It looked at the definition, of which plain facts have the digest alone.
    pub(crate) definition: bool,
    /// It heard that the document of its request hides nothing.
    pub(crate) hides_nothing: bool,
    /// It looked at or did anything else, so that its answer holds for this request alone.
    pub(crate) more: bool,
}

impl Knows {
    /// Whether the plain facts do not account for its answer.
    pub(crate) fn anything(self) -> bool {
        self.definition || self.more
    }
}

/// What a guest did last in this call: should it end in a trap, this is what its author needs.
#[derive(Default)]
pub(crate) struct Trace {
    /// Its last line of level error; a panic hook, as the SDK's, writes the panic there.
    pub(crate) said: Option<String>,
    /// The last pointer that it looked up in a document.
    pub(crate) looked_up: Option<String>,
}

impl Shared {
    /// Of a plugin to which nothing is open.
    pub(crate) fn new(name: &str, limits: Limits, settings: Document) -> Self {
        Self {
            name: name.to_owned(),
            limits,
            settings,
            matching: Matching::default(),
            opened: Opened::default(),
            record: None,
        }
    }
}

impl State {
    /// For a new store.
    pub(crate) fn new(shared: Arc<Shared>, meter: Meter) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let growth = Growth::new(&shared.limits);
        let knows = Knows { more: !shared.opened.is_nothing(), ..Knows::default() };
        Self {
            shared,
            table,
            growth,
            meter,
            log_lines: 0,
            phase: Phase::Open,
            subject: None,
            lent: false,
            judged: None,
            wasi: None,
            trace: Trace::default(),
            knows,
        }
    }

    /// Begins another call in the same instance.
    pub(crate) fn renew(&mut self, meter: Meter) {
        self.meter = meter;
        self.log_lines = 0;
        self.trace = Trace::default();
        self.phase = Phase::Open;
        self.subject = None;
        self.lent = false;
        self.judged = None;
    }

    /// Makes a request for the guest. To be taken back with [`State::take_back`] after the call.
    pub(crate) fn lend(&mut self, facts: &Arc<Facts>) -> wasmtime::Result<Resource<SharedFacts>> {
        let same =
            |subject: &Arc<Facts>| subject.persona == facts.persona && subject.session == facts.session;
        match &self.subject {
            None if !self.lent => self.subject = Some(Arc::clone(facts)),
            Some(subject) if !same(subject) => self.subject = None,
            _ => {}
        }
        self.lent = true;
        Ok(self.table.push(Arc::clone(facts))?)
    }

    /// Removes a request, whether the guest has dropped its handle or not: a warm instance that
    /// never drops anything must not fill its table.
    pub(crate) fn take_back(&mut self, rep: u32) {
        // A warm instance must not keep the documents of a call that is over.
        self.subject = None;
        self.judged = None;
        let request = Resource::<SharedFacts>::new_own(rep);
        // A guest that dropped its own handle has freed the place, and a document may have taken it.
        if self.table.get(&request).is_ok() {
            let _ = self.table.delete(request);
        }
    }

    /// Notes that the guest has a handle of the document that its request is about. That there is one it may
    /// know like a plain fact; what it is told of it is noted by [`Self::look_into`].
    pub(crate) fn hand_out(&mut self, document: &Document) {
        // Of several requests at once only one can be told from other documents.
        self.knows.more |= self.judged.as_ref().is_some_and(|judged| !judged.is_same(document));
        self.judged = Some(document.clone());
    }

    /// The document behind a handle, for whoever tells the guest anything of it.
    pub(crate) fn look_into(&mut self, handle: &Resource<Document>) -> wasmtime::Result<Document> {
        let document = self.table.get(handle)?.clone();
        self.knows.more |= self.is_judged(&document);
        Ok(document)
    }

    /// Whether it is the document that the request at hand is about, and not a definition or the settings.
    pub(crate) fn is_judged(&self, document: &Document) -> bool {
        self.judged.as_ref().is_some_and(|judged| judged.is_same(document))
    }

    /// Refuses what reaches outside while an adapter may only propose.
    pub(crate) fn may_change(&self, what: &str) -> Result<(), Error> {
        match self.phase {
            Phase::Open => Ok(()),
            Phase::BeforeVerdict => {
                Err(Error::Denied(format!("an adapter has no {what} before the verdict")))
            }
        }
    }

    /// Runs a step that may wait for something outside, and tells it how long this call may still
    /// wait. The time is not the guest's; all waits of a call together are bounded.
    pub(crate) fn wait<T>(&mut self, step: impl FnOnce(Duration) -> Result<T, Error>) -> Result<T, Error> {
        let most = self.shared.limits.wait;
        let left = most.saturating_sub(self.meter.waited());
        if left.is_zero() {
            return Err(Error::LimitExceeded(format!(
                "the call has waited for {} ms in all, which is the limit",
                most.as_millis()
            )));
        }
        let started = Instant::now();
        let done = step(left);
        self.meter.add_wait(started.elapsed());
        done
    }

    /// Runs work on a document of `bytes` bytes and does not bill a large one to the guest.
    pub(crate) fn host_work<T>(&mut self, bytes: usize, work: impl FnOnce() -> T) -> T {
        if bytes < TIMED_FROM {
            return work();
        }
        let started = Instant::now();
        let done = work();
        self.meter.host_worked(started.elapsed());
        done
    }
}
