//! `toolgate doctor`: what of this installation works, and what to do about the rest.

use std::path::Path;

use serde::Serialize;
use toolgate_gateway::indexes::{Standing, standings};
use toolgate_gateway::updates::{WaitingUpdate, waiting};
use toolgate_store::OperatorProof;

use crate::exit::Failure;
use crate::output::{self, Format};
use crate::{context, operator};

#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
    /// Whether it is only worth a look, and nothing to mend.
    #[serde(skip)]
    is_advice: bool,
}

impl Check {
    fn of<T>(what: &'static str, checked: Result<T, Failure>, detail: impl FnOnce(&T) -> String) -> Self {
        match checked {
            Ok(value) => Self { what, ok: true, detail: detail(&value), is_advice: false },
            Err(failure) => Self { what, ok: false, detail: failure.message, is_advice: false },
        }
    }
}

/// Runs every check, whatever the others say.
pub(crate) fn run(explicit: Option<&Path>, format: Format) -> Result<(), Failure> {
    let config = context::config(explicit);
    let mut checks = Vec::new();
    if let Ok(config) = &config {
        let data = config.data_dir.display().to_string();
        checks.push(Check::of("store", context::store(config, "cli"), |_| data.clone()));
        let audit = toolgate_store::Store::verify(&config.data_dir).map_err(context::store_failure);
        let audit = audit.and_then(|report| match report.findings.first() {
            None => Ok(report),
            Some(finding) => Err(Failure::integrity(&finding.detail)),
        });
        checks.push(Check::of("audit log", audit, |report| format!("{} chains, whole", report.chains.len())));
        checks.push(Check::of("plugins", super::plugin::all_verified(config), |count| {
            format!("{count} plugins are what was signed")
        }));
        let missing: Vec<&str> = config
            .servers
            .values()
            .filter(|server| !server.missing_env.is_empty())
            .map(|server| server.name.as_str())
            .collect();
        checks.push(Check {
            what: "credentials",
            ok: missing.is_empty(),
            detail: if missing.is_empty() {
                "none missing".into()
            } else {
                format!("missing for {}", missing.join(", "))
            },
            is_advice: false,
        });
        checks.extend(standings(config).iter().map(index));
        checks.extend(waiting(config).iter().map(update));
        checks.extend(super::audit::sinks::troubles(config).into_iter().map(|detail| Check {
            what: "audit sinks",
            ok: false,
            detail,
            is_advice: false,
        }));
        checks.extend(approvals_webhook(config));
        checks.push(operator_proof(config));
    }
    checks.insert(
        0,
        Check::of("configuration", config, |config| {
            config
                .path
                .as_ref()
                .map_or_else(|| "defaults, no file".to_owned(), |path| path.display().to_string())
        }),
    );
    let broken = checks.iter().any(|check| !check.ok && !check.is_advice);
    match format {
        Format::Json => output::json(&serde_json::json!({ "ok": !broken, "checks": checks }))?,
        Format::Text => {
            let rows: Vec<Vec<String>> = checks
                .iter()
                .map(|check| {
                    let state = if check.ok { "ok" } else { "look" };
                    vec![state.to_owned(), check.what.to_owned(), check.detail.clone()]
                })
                .collect();
            output::table(&["", "CHECK", "DETAIL"], &rows)?;
        }
    }
    if broken { Err(Failure::failed("something needs to be mended; see above")) } else { Ok(()) }
}

/// An index that cannot be believed any more has to be mended by somebody, here or there.
fn index(standing: &Standing) -> Check {
    let ok = standing.is_good();
    Check { what: "index", ok, detail: format!("{}: {}", standing.index, standing.detail), is_advice: false }
}

/// A webhook that lacks a variable is asked nothing, which nobody would notice before an ask.
fn approvals_webhook(config: &toolgate_config::Config) -> Option<Check> {
    let webhook = config.approvals.webhook.as_ref()?;
    let ok = webhook.missing.is_empty();
    let detail = if ok {
        format!("asks go to it; answers of {} keys count", webhook.keys.len())
    } else {
        let names = webhook.missing.join(", ");
        format!("not asked: {names} is not set; use `toolgate secret set`, or export it before `serve`")
    };
    Some(Check { what: "approvals webhook", ok, detail, is_advice: false })
}

/// A newer release that was not taken by itself is nothing broken, and somebody has to look at it.
fn update(note: &WaitingUpdate) -> Check {
    let wider = if note.wider.is_empty() { String::new() } else { format!(": {}", note.wider.join("; ")) };
    let detail = format!("{}{wider}; next: {}", note.told(), note.next());
    Check { what: "plugin update", ok: false, detail, is_advice: true }
}

/// That nothing is set is worth a look; that what was set is gone has to be mended.
fn operator_proof(config: &toolgate_config::Config) -> Check {
    let told = |proof: &OperatorProof| match proof {
        OperatorProof::None => operator::UNPROVEN.to_owned(),
        OperatorProof::Pin => "a PIN, typed at the terminal".to_owned(),
        OperatorProof::OtherUser { agents } => format!("agents run as user {agents}, and you do not"),
    };
    let proof = operator::proof(config);
    let unset = matches!(proof, Ok(OperatorProof::None));
    let check = Check::of("operator proof", proof, told);
    Check { ok: check.ok && !unset, is_advice: unset, ..check }
}
