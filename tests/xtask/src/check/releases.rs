//! Every first-party plugin has its signed blob, made from the sources as they stand.

use std::fs;

use crate::check::Finding;
use crate::metadata::Metadata;
use crate::plugin::Plugin;
use crate::project::Project;
use crate::{Outcome, keys, release, sources};

/// Plugins whose blobs are absent, stale, or not verified by the admitted keys.
pub(super) fn check(project: &Project, guests: &Metadata, for_release: bool) -> Outcome<Vec<Finding>> {
    let trusted = keys::admitted(project)?;
    let mut findings = Vec::new();
    if trusted.is_empty() {
        findings.push(Finding::new(keys::ADMITTED, "admits no key"));
    }
    if for_release {
        let development = keys::for_development(project)?;
        let what = |key| format!("admits the development key {key}, which a release must not");
        findings.extend(development.into_iter().map(|key| Finding::new(keys::ADMITTED, what(key))));
    }
    for plugin in Plugin::all(guests)? {
        let directory = plugin.blobs(project);
        let place = project.relative(&directory).display().to_string();
        let verified = fs::read(directory.join("release.dsse.json"))
            .and_then(|envelope| Ok((envelope, fs::read(directory.join("component.wasm"))?)))
            .map_err(Into::into)
            .and_then(|(envelope, bytes)| release::verify(&plugin, &envelope, &bytes, &trusted));
        match verified {
            Err(fault) => findings.push(Finding::new(place, fault.to_string())),
            Ok(verified) => {
                let now = sources::digest(project, guests, &plugin)?;
                let then = verified.release().sources.map(|digest| digest.to_string()).unwrap_or_default();
                if now != then {
                    findings.push(Finding::new(
                        place,
                        format!(
                            "was built from other sources ({then}, now {now}): run `cargo xtask \
                             build-plugins --dev-key`, or have it signed with the first-party key"
                        ),
                    ));
                }
            }
        }
    }
    Ok(findings)
}
