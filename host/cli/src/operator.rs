//! Proof that the operator acts, and not an agent with a shell (design.md section 6).
//!
//! Contract: [`prove`] is the one function that every verb which widens what agents may do calls
//! before it changes anything. Proof is the PIN of `operator init`, typed at the terminal that
//! controls the process, or being another OS user than the agents and owning the data directory.
//! There is no flag, variable or pipe for it. While nothing is set, the verb goes on and says what
//! that means, as `quickstart`, `mcp status` and `doctor` do.
//!
//! Threat: an agent with a shell, and with a pseudo-terminal, runs these verbs. It has a terminal but
//! not the PIN, and wrong ones cost it ever longer pauses. That a PIN was set, and the digest of its record, is
//! also in the audit log, so that taking its file away or putting another in its place is a refusal.

use std::time::Duration;

use toolgate_base::{Secret, SystemClock};
use toolgate_config::Config;
use toolgate_store::{AuditRow, Event, Memory, Operator, OperatorError, OperatorProof, log_is_gone};

use crate::context;
use crate::exit::{Code, Failure};
use crate::terminal::Terminal;

/// What it means that nothing is set; told by whoever widens and whoever looks.
pub(crate) const UNPROVEN: &str = "no operator PIN is set, so an agent with a shell on this account could approve itself; \
     set one with `toolgate operator init`";

/// The operator was proven, or nothing is set that could prove one.
#[derive(Debug, Clone)]
#[must_use = "the audit row says how the operator was proven"]
pub(crate) struct Proven {
    how: &'static str,
}

impl Proven {
    /// Who answered, for the audit log: the account, and how it was proven.
    pub(crate) fn approver(&self) -> String {
        format!("uid {} ({})", crate::sys::user(), self.how)
    }

    /// Says in a row who approved, and how that was proven: `pin`, `other_user` or `none`.
    pub(crate) fn on(&self, row: AuditRow) -> AuditRow {
        row.with("approver", self.approver()).with("proof", self.how)
    }
}

/// Proves the operator before something is widened. `what` says what, and is shown before the PIN is
/// asked for: it may quote servers and agents, and is escaped.
///
/// # Errors
/// Exit code 3 where the operator is not proven, 5 where the proof that was set is gone.
pub(crate) fn prove(config: &Config, what: &str) -> Result<Proven, Failure> {
    let operator = of(config);
    match proof(config)? {
        OperatorProof::None => {
            tracing::warn!("{UNPROVEN}");
            Ok(Proven { how: "none" })
        }
        OperatorProof::OtherUser { agents } => {
            other_user(config, agents).inspect_err(|_| note_refusal(config, what, "other_user"))
        }
        OperatorProof::Pin => pin(&operator, what).inspect_err(|_| note_refusal(config, what, "pin")),
    }
}

/// How the operator of this data directory is proven.
pub(crate) fn proof(config: &Config) -> Result<OperatorProof, Failure> {
    let operator = of(config);
    let proof = operator.proof().map_err(failure)?;
    let memory = remembered(config)?;
    let Some(set) = memory.proof() else { return Ok(proof) };
    let is = operator.digest().map_err(failure)?;
    let what = match (&is, set.record) {
        (None, _) => "its file is gone",
        (Some(is), Some(record)) if is != record => "its file is another one than was set",
        _ => return Ok(proof),
    };
    Err(Failure::integrity(format!(
        "an operator proof was set for {}, as the audit log says, and {what}",
        config.data_dir.display()
    ))
    .hint("restore operator.json from a copy; docs/operators.md says what to do where there is none"))
}

/// What the audit log remembers, sealed rows included. Where it certainly had more than it has, nobody can
/// say how the operator is proven, and a file that says so may be one that somebody put there.
fn remembered(config: &Config) -> Result<Memory, Failure> {
    let directory = config.data_dir.display();
    if let Some(evidence) = log_is_gone(&config.data_dir).map_err(context::store_failure)? {
        return Err(Failure::integrity(format!(
            "the audit log of {directory} is gone, though {evidence}: what proves the operator cannot be known"
        ))
        .hint("put audit.db back from a copy; docs/operators.md says what to do where there is none"));
    }
    let memory = Memory::read(&config.data_dir).map_err(context::store_failure)?;
    // A younger row says it all, whatever stood in a segment.
    if let (None, Some(file)) = (memory.proof(), memory.missing().first()) {
        return Err(Failure::integrity(format!(
            "{} is not the file that was sealed, and it may say how the operator of {directory} is proven",
            file.display()
        ))
        .hint("bring the segment back to its place"));
    }
    Ok(memory)
}

/// The proof of this configuration's data directory.
pub(crate) fn of(config: &Config) -> Operator {
    Operator::of(&config.data_dir, std::sync::Arc::new(SystemClock))
}

/// Asks for a new PIN, twice.
pub(crate) fn new_pin() -> Result<Secret, Failure> {
    let terminal = terminal()?;
    let told = terminal.line(&format!(
        "The PIN is typed here each time something is widened. It is not shown. It has {} to {} characters, and \
         not one alone.",
        toolgate_store::operator::MIN_PIN,
        toolgate_store::operator::MAX_PIN
    ));
    told.map_err(|error| unusable(&error))?;
    let first = ask(&terminal, "New operator PIN: ")?;
    // Nobody types twice what cannot be set.
    toolgate_store::operator::check_fit(&first).map_err(failure)?;
    let second = ask(&terminal, "The same again: ")?;
    if first != second {
        return Err(Failure::failed("the two PINs differ, so nothing was set"));
    }
    Ok(first)
}

/// An error of the proof itself.
pub(crate) fn failure(error: OperatorError) -> Failure {
    let code = match error {
        OperatorError::WrongPin(_) | OperatorError::Wait(_) | OperatorError::NotSet => Code::Denied,
        OperatorError::Unfit => Code::Usage,
        OperatorError::Damaged { .. } => Code::Integrity,
        _ => Code::Failed,
    };
    let next = match error {
        OperatorError::WrongPin(_) | OperatorError::Wait(_) => Some(
            "nothing was changed; run the same command again. docs/operators.md says what to do about a \
             PIN that is lost",
        ),
        OperatorError::NotSet => Some("set one with `toolgate operator init`"),
        _ => None,
    };
    let failure = Failure::new(code, error);
    match next {
        Some(next) => failure.hint(next),
        None => failure,
    }
}

fn pin(operator: &Operator, what: &str) -> Result<Proven, Failure> {
    let pause = operator.pause().map_err(failure)?;
    if pause > Duration::ZERO {
        return Err(failure(OperatorError::Wait(pause)));
    }
    let terminal = terminal()?;
    terminal.line(what).map_err(|error| unusable(&error))?;
    let typed = ask(&terminal, "Operator PIN: ")?;
    operator.check_pin(&typed).map_err(failure)?;
    Ok(Proven { how: "pin" })
}

/// The account says it all: agents do not have this one, and the data directory is its own.
fn other_user(config: &Config, agents: u32) -> Result<Proven, Failure> {
    let user = crate::sys::user();
    let owner = crate::sys::owner(&config.data_dir).map_err(Failure::failed)?;
    if user == owner && user != agents {
        return Ok(Proven { how: "other_user" });
    }
    Err(Failure::new(
        Code::Denied,
        format!(
            "this is for the operator: user {owner}, who owns the data directory, and you are user {user}"
        ),
    ))
}

fn terminal() -> Result<Terminal, Failure> {
    Terminal::open().map_err(|error| {
        Failure::new(
            Code::Denied,
            format!("the operator PIN is typed at a terminal, and this process has none ({error})"),
        )
        .hint("run the same command in a terminal of your own; there is no flag or variable for the PIN")
    })
}

fn ask(terminal: &Terminal, prompt: &str) -> Result<Secret, Failure> {
    terminal
        .secret(prompt)
        .map_err(|error| unusable(&error))?
        .ok_or_else(|| Failure::new(Code::Denied, "given up; nothing was changed"))
}

fn unusable(error: &std::io::Error) -> Failure {
    Failure::failed(format!("the terminal cannot be used: {error}"))
}

/// An attempt that failed is evidence. That it cannot be written changes nothing about the refusal.
fn note_refusal(config: &Config, what: &str, how: &str) {
    match context::store(config, "operator") {
        // Dropping the store writes the row.
        Ok(store) => store.append_detached(
            AuditRow::new(Event::OperatorProofRefused)
                .with("what", what)
                .with("proof", how)
                .with("uid", crate::sys::user()),
        ),
        Err(failure) => tracing::error!("a refused proof is not in the audit log: {}", failure.message),
    }
}
