//! What may be published: a release that is signed for its name, follows those before it, and says why.

use toolgate_signing::{Release, VerifiedRelease, verify_release};

use super::PublishError;
use super::change::Plugin;
use crate::MAX_COMPONENT;
use crate::client::load::Loaded;
use crate::document::is_words;
use crate::error::RegistryError;
use crate::line;

/// The release, signed by those whose keys count for its name from now on.
pub(super) fn judged(loaded: &Loaded, plugin: &Plugin) -> Result<VerifiedRelease, PublishError> {
    let log = loaded.current.hashes.len() as u64;
    let revocations = &loaded.current.revocations.document;
    let refused = |source| PublishError::Release { source: Box::new(source) };
    let release = verify_release(&plugin.release, &|name: &str| {
        let mut rule = loaded.current.delegations.document.rule(name, log)?;
        rule.keys.retain(|key| revocations.key(&key.id(), Some(log)).is_none());
        Some(rule)
    });
    let release = match release {
        Err(toolgate_signing::VerifyError::NoRule { name }) => {
            return Err(PublishError::Unfit(format!(
                "nobody may sign {name} in this registry; give its namespace a key with `toolgate registry rotate`"
            )));
        }
        other => other.map_err(refused)?,
    };
    release.check_component(&plugin.component).map_err(refused)?;
    if plugin.component.len() as u64 > MAX_COMPONENT {
        return Err(RegistryError::TooLarge { what: "the component".to_owned(), limit: MAX_COMPONENT }.into());
    }
    if revocations.release(release.digest()).or_else(|| revocations.release(release.component())).is_some() {
        return Err(PublishError::Unfit("this release, or its component, is revoked here".to_owned()));
    }
    Ok(release)
}

/// A release comes after those before it.
pub(super) fn check_follows(stated: &Release, listed: &[line::Listed]) -> Result<(), PublishError> {
    let Some(last) = listed.last() else { return Ok(()) };
    let (name, version) = (&stated.name, &stated.version);
    if listed.iter().any(|other| other.line.version.cmp_precedence(version).is_eq()) {
        return Err(PublishError::Unfit(format!(
            "{name} {version} is published already; a version is never replaced"
        )));
    }
    if stated.sequence <= last.line.sequence {
        return Err(PublishError::Unfit(format!(
            "the release of {name} {version} has the sequence {}, and the last one has {}; sign it with a higher one",
            stated.sequence, last.line.sequence
        )));
    }
    match stated.previous {
        Some(previous) if previous != last.line.release => Err(PublishError::Unfit(format!(
            "the release of {name} {version} follows {previous}, and the last one here is {}",
            last.line.release
        ))),
        _ => Ok(()),
    }
}

pub(super) fn check_reason(reason: &str) -> Result<(), PublishError> {
    if is_words(reason) {
        return Ok(());
    }
    Err(PublishError::Unfit(
        "the reason must be one line of at most 500 characters, without control characters".to_owned(),
    ))
}
