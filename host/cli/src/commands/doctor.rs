//! `toolgate doctor`: what of this installation works, and what to do about the rest.

use std::path::Path;

use serde::Serialize;
use toolgate_store::AuditReader;

use crate::context;
use crate::exit::Failure;
use crate::output::{self, Format};

#[derive(Serialize)]
struct Check {
    what: &'static str,
    ok: bool,
    detail: String,
}

impl Check {
    fn of<T>(what: &'static str, checked: Result<T, Failure>, detail: impl FnOnce(&T) -> String) -> Self {
        match checked {
            Ok(value) => Self { what, ok: true, detail: detail(&value) },
            Err(failure) => Self { what, ok: false, detail: failure.message },
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
        let audit = AuditReader::verify(&config.data_dir).map_err(context::store_failure);
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
        });
        checks.push(Check {
            what: "operator proof",
            ok: false,
            detail: "not set: an agent with a shell on this account can change this configuration as you can"
                .into(),
        });
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
    let broken = checks.iter().any(|check| !check.ok && check.what != "operator proof");
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
