//! Policies: asked in a fresh instance each time, so that one request can teach them nothing about
//! another and a trap costs one answer (design.md 4 "Life").
//!
//! A call is synchronous and takes tens of microseconds; it may be made from any thread with a
//! stack of at least 1 MiB. Whatever goes wrong comes back as a denial that carries its fault.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toolgate_signing::Digest;
use wasmtime::component::{ComponentExportIndex, Resource};

use crate::answers;
use crate::bindings::types;
use crate::contract;
use crate::decision::{Decision, DecisionSet};
use crate::error::LoadErrorKind;
use crate::facts::{Facts, Hook, SharedFacts};
use crate::fault::{Fault, FaultKind};
use crate::guest::{Guest, Prepared};
use crate::identity::Identity;
use crate::limits::MAX_BATCH;
use crate::remembered::Remembered;
use crate::state::Knows;
use crate::strikes::Strikes;
use crate::waiting;

/// One loaded policy. Cheap to share behind an `Arc`.
pub struct Policy {
    prepared: Prepared,
    hooks: BTreeMap<Hook, ComponentExportIndex>,
    authority: DecisionSet,
    identity: Identity,
    uses_clock: bool,
    monitored: bool,
    strikes: Strikes,
    remembered: Remembered,
}

/// What a guest said about one request.
struct Answer {
    said: types::Decision,
    /// What it knew beyond plain facts (see [`Remembered`]).
    knew: Knows,
}

/// What a guest said about one batch.
struct Answers {
    said: Vec<types::Decision>,
    knew: Knows,
}

/// What the list hook said about several requests.
#[derive(Clone, Debug)]
pub struct Listed {
    /// One decision for each, in their order.
    pub decisions: Vec<Decision>,
    /// Whether they hold for these requests alone: the policy looked at the session, the clock or anything
    /// else that neither plain facts nor the bytes of a definition account for, wrote to the log, or failed.
    pub knew_more: bool,
}

/// Parameters of every hook but list.
type One = (Resource<SharedFacts>,);
/// Parameters of the list hook.
type Many = (Vec<Resource<SharedFacts>>,);

impl Policy {
    /// Looks up the hooks and makes one instance, to see that it starts and has the right types.
    pub(crate) fn new(
        prepared: Prepared,
        authority: DecisionSet,
        identity: Identity,
        uses_clock: bool,
        monitored: bool,
    ) -> Result<Self, LoadErrorKind> {
        let hooks: BTreeMap<_, _> = Hook::ALL
            .into_iter()
            .filter_map(|hook| Some((hook, prepared.function(&contract::hook_interface(hook), "check")?)))
            .collect();
        let mut guest =
            prepared.instantiate(prepared.shared.limits.init).map_err(LoadErrorKind::DoesNotStart)?;
        for (hook, check) in &hooks {
            let fits = match hook {
                Hook::List => guest.has_type::<Many, Vec<types::Decision>>(check),
                _ => guest.has_type::<One, types::Decision>(check),
            };
            fits.map_err(|detail| LoadErrorKind::DoesNotFit {
                contract: contract::VERSION,
                detail: format!("{}: {detail}", contract::hook_interface(*hook)),
            })?;
        }
        drop(guest);
        Ok(Self {
            prepared,
            hooks,
            authority,
            identity,
            uses_clock,
            monitored,
            strikes: Strikes::default(),
            remembered: Remembered::default(),
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

    /// The decisions it may give: what its release declares and the operator granted.
    pub fn authority(&self) -> DecisionSet {
        self.authority
    }

    /// Whether it has this hook. One that it does not have it abstains from.
    pub fn has(&self, hook: Hook) -> bool {
        self.hooks.contains_key(&hook)
    }

    /// Whether what it says is only recorded (`mode: monitor`).
    pub fn is_monitored(&self) -> bool {
        self.monitored
    }

    /// Whether it can look at the clock or at anything outside of this process.
    pub fn uses_clock(&self) -> bool {
        self.uses_clock
    }

    /// Whether it failed too often and now denies everything it guards (see [`crate::MAX_STRIKES`]).
    pub fn is_put_aside(&self) -> bool {
        self.strikes.is_out()
    }

    /// How many of its decisions need not be asked for again.
    #[cfg(test)]
    pub(crate) fn remembered_decisions(&self) -> usize {
        self.remembered.len()
    }

    /// Asks about one request. Faults are denials; authority is applied.
    pub fn check(&self, hook: Hook, facts: &Arc<Facts>) -> Decision {
        if hook == Hook::List {
            let one = self.check_list(std::slice::from_ref(facts)).pop();
            return one.unwrap_or_else(|| answers::denial(self.wrong_count(0, 1)));
        }
        let Some(function) = self.hooks.get(&hook) else {
            return Decision::Abstain;
        };
        if self.strikes.is_out() {
            return answers::denial(Strikes::fault(self.name()));
        }
        let key = self.remembered.key(hook, facts);
        if let Some(decision) = self.remembered.get(key, facts) {
            return decision;
        }
        let answer = self.ask_one(function, facts).and_then(|answer| {
            let decision = answers::decision(answer.said, hook, self.authority, &self.prepared.shared)?;
            if !answer.knew.anything() {
                self.remembered.keep(key, decision.clone(), answer.knew.hides_nothing);
            }
            Ok(decision)
        });
        self.settle(answer.map_err(|fault| fault.within(hook.word())))
    }

    /// Asks the list hook, in batches of 256; one decision for each of `requests`, in their order.
    /// A fault denies its whole batch.
    pub fn check_list(&self, requests: &[Arc<Facts>]) -> Vec<Decision> {
        self.look_at_list(requests).decisions
    }

    /// The same, and whether the answers can be kept for equal requests.
    pub fn look_at_list(&self, requests: &[Arc<Facts>]) -> Listed {
        let Some(function) = self.hooks.get(&Hook::List) else {
            return Listed { decisions: vec![Decision::Abstain; requests.len()], knew_more: false };
        };
        let mut decisions = Vec::with_capacity(requests.len());
        let mut knew_more = false;
        for batch in requests.chunks(MAX_BATCH) {
            if self.strikes.is_out() {
                knew_more = true;
                decisions.extend(batch.iter().map(|_| answers::denial(Strikes::fault(self.name()))));
                continue;
            }
            match self.ask_many(function, batch) {
                Ok(Answers { said, knew }) => {
                    self.strikes.well();
                    knew_more |= knew.more || knew.hides_nothing;
                    decisions.extend(said.into_iter().map(|said| {
                        answers::decision(said, Hook::List, self.authority, &self.prepared.shared)
                            .unwrap_or_else(|fault| self.denied(fault))
                    }));
                }
                Err(fault) => {
                    knew_more = true;
                    let denial = self.denied(fault.within(Hook::List.word()));
                    decisions.extend(batch.iter().map(|_| denial.clone()));
                }
            }
        }
        Listed { decisions, knew_more }
    }

    /// Whether a call may wait for something outside this process. It is then run where it holds
    /// no thread that serves others, and costs accordingly more.
    pub fn waits(&self) -> bool {
        self.prepared.shared.opened.waits()
    }

    fn ask_one(&self, function: &ComponentExportIndex, facts: &Arc<Facts>) -> Result<Answer, Fault> {
        if self.waits() {
            return waiting::apart(|| self.ask_one_here(function, facts))
                .unwrap_or_else(|| Err(self.prepared.busy()));
        }
        self.ask_one_here(function, facts)
    }

    fn ask_one_here(&self, function: &ComponentExportIndex, facts: &Arc<Facts>) -> Result<Answer, Fault> {
        let mut guest = self.prepared.instantiate(self.prepared.shared.limits.call)?;
        let owned = self.lend(&mut guest, facts)?;
        // The store goes with the guest, and the request with the store.
        let said = guest.call(function, (Resource::<SharedFacts>::new_borrow(owned.rep()),))?;
        Ok(Answer { said, knew: guest.state().knows })
    }

    fn ask_many(&self, function: &ComponentExportIndex, batch: &[Arc<Facts>]) -> Result<Answers, Fault> {
        if self.waits() {
            return waiting::apart(|| self.ask_many_here(function, batch))
                .unwrap_or_else(|| Err(self.prepared.busy()));
        }
        self.ask_many_here(function, batch)
    }

    fn ask_many_here(&self, function: &ComponentExportIndex, batch: &[Arc<Facts>]) -> Result<Answers, Fault> {
        let budget = self.prepared.shared.limits.batch(batch.len());
        let mut guest = self.prepared.instantiate(budget)?;
        let owned = batch.iter().map(|facts| self.lend(&mut guest, facts)).collect::<Result<Vec<_>, _>>()?;
        let said: Vec<types::Decision> = guest.call(function, (owned,))?;
        if said.len() != batch.len() {
            return Err(self.wrong_count(said.len(), batch.len()));
        }
        Ok(Answers { said, knew: guest.state().knows })
    }

    fn lend(&self, guest: &mut Guest, facts: &Arc<Facts>) -> Result<Resource<SharedFacts>, Fault> {
        guest
            .state()
            .lend(facts)
            .map_err(|error| self.prepared.shared.misbehaved(FaultKind::Limit, format!("{error:#}")))
    }

    fn wrong_count(&self, said: usize, asked: usize) -> Fault {
        let detail = format!("it gave {said} decisions for {asked} requests");
        self.prepared.shared.misbehaved(FaultKind::WrongCount, detail)
    }

    fn settle(&self, answer: Result<Decision, Fault>) -> Decision {
        match answer {
            Ok(decision) => {
                self.strikes.well();
                decision
            }
            Err(fault) => self.denied(fault),
        }
    }

    fn denied(&self, fault: Fault) -> Decision {
        tracing::warn!(plugin = self.name(), code = fault.kind.code(), %fault, "a policy failed, so it denies");
        self.strikes.failed(&fault);
        answers::denial(fault)
    }
}

impl fmt::Debug for Policy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Policy").field("identity", &self.identity).finish_non_exhaustive()
    }
}
