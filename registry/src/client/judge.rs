//! Whether a release counts: revocations, delegations, and agreement with its line.

use toolgate_signing::{Threshold, VerifiedRelease, verify_release};

use super::Revocation;
use crate::document::{Delegations, Revocations};
use crate::error::RegistryError;
use crate::line::ReleaseLine;
use crate::state::Current;

/// A release that was revoked, or whose component was.
pub(super) fn not_revoked(current: &Current, line: &ReleaseLine) -> Result<(), RegistryError> {
    let revocations = &current.revocations.document;
    match revocations.release(line.release).or_else(|| revocations.release(line.component)) {
        Some(revoked) => Err(RegistryError::Revoked {
            name: line.name.clone(),
            version: line.version.clone(),
            at: revoked.at,
            reason: revoked.reason.clone(),
        }),
        None => Ok(()),
    }
}

/// Verifies an envelope by the delegation of its place in the log, without the keys that are revoked there.
pub(crate) fn signed(
    current: &Current,
    line: &ReleaseLine,
    envelope: &[u8],
) -> Result<VerifiedRelease, RegistryError> {
    let rule = current
        .delegations
        .document
        .rule(&line.name, line.log)
        .ok_or_else(|| RegistryError::NotDelegated { name: line.name.clone(), log: line.log })?;
    let release = verify(line, envelope, &rule)?;
    let minimum = rule.minimum;
    let valid = release
        .signers()
        .iter()
        .filter(|key| current.revocations.document.key(key, Some(line.log)).is_none());
    if (valid.count() as u64) < u64::from(minimum) {
        return Err(key_revoked(current, line, &release));
    }
    agrees(line, &release)?;
    Ok(release)
}

fn verify(line: &ReleaseLine, envelope: &[u8], rule: &Threshold) -> Result<VerifiedRelease, RegistryError> {
    let trust = |name: &str| (name == line.name).then(|| rule.clone());
    verify_release(envelope, &trust).map_err(|source| RegistryError::Unsigned {
        what: format!("release of {} {}", line.name, line.version),
        source: Box::new(source),
    })
}

fn key_revoked(current: &Current, line: &ReleaseLine, release: &VerifiedRelease) -> RegistryError {
    let revocations = &current.revocations.document;
    let mut signers = release.signers().iter();
    let revoked = signers.find_map(|key| Some((key, revocations.key(key, Some(line.log))?)));
    match revoked {
        Some((key, revoked)) => RegistryError::KeyRevoked {
            name: line.name.clone(),
            version: line.version.clone(),
            key: key.clone(),
            at: revoked.at,
            reason: revoked.reason.clone(),
        },
        None => RegistryError::NotDelegated { name: line.name.clone(), log: line.log },
    }
}

/// The line says nothing that was not signed.
fn agrees(line: &ReleaseLine, release: &VerifiedRelease) -> Result<(), RegistryError> {
    let stated = release.release();
    let said = |version: &semver::Version,
                sequence: u64,
                component: toolgate_signing::Digest,
                min_host: &semver::Version,
                kind,
                imports: &[String]| {
        format!(
            "{version} (sequence {sequence}, {kind}, component {component}, host {min_host}, imports {})",
            imports.join(" ")
        )
    };
    let expected =
        said(&line.version, line.sequence, line.component, &line.min_host, line.kind, &line.imports);
    let found = said(
        &stated.version,
        stated.sequence,
        release.component(),
        &stated.min_host,
        stated.kind,
        &stated.imports,
    );
    if expected == found {
        return Ok(());
    }
    Err(RegistryError::Disagrees { name: line.name.clone(), expected, found })
}

/// Whether too few of a release's signers are left.
pub(super) fn without_signers(
    revocations: &Revocations,
    delegations: &Delegations,
    release: &VerifiedRelease,
    log: Option<u64>,
) -> Option<Revocation> {
    let name = &release.release().name;
    // Without a place in the log one signer that is left is enough.
    let minimum = log.and_then(|log| delegations.rule(name, log)).map_or(1, |rule| rule.minimum);
    let left = release.signers().iter().filter(|key| revocations.key(key, log).is_none()).count();
    if left as u64 >= u64::from(minimum) {
        return None;
    }
    let revoked = release.signers().iter().find_map(|key| revocations.key(key, log))?;
    Some(Revocation { reason: revoked.reason.clone(), at: revoked.at, by_key: true })
}
