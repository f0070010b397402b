//! Labels as they are open to one plugin: what its release declares, met with what the operator
//! grants, worked out once when the plugin is loaded. A call only looks a label up.

use std::collections::BTreeMap;

use toolgate_grants::Grants;
use toolgate_signing::{Release, Wasi};

use crate::capability::{files, http, kv, secrets};
use crate::error::LoadErrorKind;
use crate::facts::Document;
use crate::inspect::Inspection;
use crate::limits::Limits;
use crate::ports::Ports;

/// Everything that is open to a plugin.
#[derive(Default)]
pub(crate) struct Opened {
    /// Labels of `kv`.
    pub(crate) kv: BTreeMap<String, kv::Label>,
    /// Labels of `http`.
    pub(crate) http: BTreeMap<String, http::Label>,
    /// Labels of `secrets`.
    pub(crate) secrets: BTreeMap<String, secrets::Label>,
    /// Labels of `files`.
    pub(crate) files: BTreeMap<String, files::Label>,
    /// Whether it runs with an empty WASI.
    pub(crate) sealed_wasi: bool,
}

/// What a release is validated against.
pub(crate) struct Given<'a> {
    /// The signed release.
    pub(crate) release: &'a Release,
    /// What the component imports.
    pub(crate) inspection: &'a Inspection,
    /// The operator's grants.
    pub(crate) grants: &'a Grants,
    /// The operator's settings for this plugin.
    pub(crate) settings: &'a Document,
    /// What the host is connected to.
    pub(crate) ports: &'a Ports,
    /// The plugin's limits.
    pub(crate) limits: &'a Limits,
}

impl Opened {
    /// Whether nothing outside its own store is open to the plugin.
    pub(crate) fn is_nothing(&self) -> bool {
        let labels = self.kv.len() + self.http.len() + self.secrets.len() + self.files.len();
        labels == 0 && !self.sealed_wasi
    }

    /// Compares the first two gates. The third, the linker, is built from the same imports.
    pub(crate) fn validate(given: &Given<'_>) -> Result<Self, LoadErrorKind> {
        let opened = Self {
            kv: kv::validate(given)?,
            http: http::validate(given)?,
            secrets: secrets::validate(given)?,
            files: files::validate(given)?,
            sealed_wasi: given.release.capabilities.wasi == Some(Wasi::Sealed),
        };
        opened.check_imports(given)?;
        Ok(opened)
    }

    /// An interface without a single open label would only be denied in every call: say so now.
    fn check_imports(&self, given: &Given<'_>) -> Result<(), LoadErrorKind> {
        let declared = &given.release.capabilities;
        let reveals = declared.secrets.values().any(|secret| secret.reveal);
        let capabilities = [
            ("kv", keys(&declared.kv), !self.kv.is_empty()),
            ("http", keys(&declared.http), !self.http.is_empty()),
            ("secrets", keys(&declared.secrets), !self.secrets.is_empty()),
            (
                "secrets-reveal",
                if reveals { keys(&declared.secrets) } else { Vec::new() },
                self.secrets.values().any(|label| label.reveal),
            ),
            ("files", keys(&declared.files), !self.files.is_empty()),
        ];
        for (interface, labels, open) in capabilities {
            if !given.inspection.imports.iter().any(|import| crate::contract::is(import, interface)) {
                continue;
            }
            if labels.is_empty() {
                return Err(LoadErrorKind::Capability(interface.to_owned()));
            }
            if !open && let Some(pointer) = files_of_settings(given, interface) {
                return Err(LoadErrorKind::NotConfigured(format!("they name no directory at {pointer}")));
            }
            if !open {
                return Err(LoadErrorKind::Ungranted { interface, labels: labels.join(", ") });
            }
        }
        Ok(())
    }

    /// Whether a call may wait for something outside this process: then it must not hold a thread
    /// that serves others, and its answer may depend on more than the request.
    pub(crate) fn waits(&self) -> bool {
        self.sealed_wasi
            || !self.kv.is_empty()
            || !self.http.is_empty()
            || !self.files.is_empty()
            || !self.secrets.is_empty()
    }
}

fn keys<T>(map: &BTreeMap<String, T>) -> Vec<&str> {
    map.keys().map(String::as_str).collect()
}

/// Where the settings would name the directories that are missing, if a label takes them from there.
fn files_of_settings<'a>(given: &Given<'a>, interface: &str) -> Option<&'a str> {
    let declared = given.release.capabilities.files.values();
    let mut pointers = declared.filter_map(|label| label.settings.as_deref());
    if interface == "files" { pointers.next() } else { None }
}

/// Refuses a grant of a label that the release does not declare.
pub(crate) fn only_declared<'a, T, U>(
    interface: &'static str,
    declared: &'a BTreeMap<String, T>,
    granted: &'a BTreeMap<String, U>,
) -> Result<impl Iterator<Item = (&'a String, &'a T, &'a U)>, LoadErrorKind> {
    if let Some(label) = granted.keys().find(|label| !declared.contains_key(*label)) {
        let known = if declared.is_empty() { "none".to_owned() } else { keys(declared).join(", ") };
        return Err(LoadErrorKind::Grant(format!(
            "grants.{interface}.{label} is for a label that its release does not declare (it declares: {known})"
        )));
    }
    Ok(granted.iter().filter_map(|(label, grant)| Some((label, declared.get(label)?, grant))))
}
