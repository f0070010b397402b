//! Where the bytes of a plugin come from: what the operator typed, and why it cannot be had.

use std::path::Path;
use std::time::Duration;

use toolgate_config::Config;
use toolgate_config::plugins_layer::Installed;
use toolgate_gateway::indexes::{self, Found, IndexError, refused_row};
use toolgate_gateway::updates;
use toolgate_registry::{ErrorClass, Reference};

use crate::exit::{Code, Failure};
use crate::next_step;

/// The bytes behind a reference.
pub(super) async fn found(config: &Config, text: &str) -> Result<Found, Failure> {
    let reference = reference(text)?;
    indexes::find(config, &reference, &here()?).await.map_err(|error| refused(config, &error))
}

/// What there is in place of an installed release.
pub(super) enum Newer {
    /// Another release.
    Found(Box<Found>),
    /// The installed one is the newest.
    Unchanged,
    /// There is a newer one that may not be taken yet, for this reason.
    Waits(String),
}

/// A release to take in place of an installed one. Of an index it is the newest that is old enough; of other
/// places there is only the one.
pub(super) async fn newer(
    config: &Config,
    text: &str,
    old: &Installed,
    min_age: Duration,
) -> Result<Newer, Failure> {
    let Reference::Registry { name, range } = reference(text)? else {
        return found(config, text).await.map(|found| Newer::Found(Box::new(found)));
    };
    match updates::newer(config, &name, &range, old, min_age)
        .await
        .map_err(|error| refused(config, &error))?
    {
        updates::Newer::Found(found) => Ok(Newer::Found(found)),
        updates::Newer::Unchanged => Ok(Newer::Unchanged),
        updates::Newer::Waits(version) => Ok(Newer::Waits(too_young(&version, min_age))),
    }
}

/// Why a release is not taken yet.
pub(super) fn too_young(version: &semver::Version, min_age: Duration) -> String {
    format!(
        "{version} is younger than plugins.min_age ({} h); it is taken later, or now with --any-age",
        min_age.as_secs() / 3600
    )
}

/// What was typed. A directory may stand without `./` where it cannot be taken for a name.
pub(super) fn reference(text: &str) -> Result<Reference, Failure> {
    Reference::parse(text).or_else(|error| {
        if Path::new(text).is_dir() {
            return Ok(Reference::Directory(Path::new(text).to_owned()));
        }
        Err(Failure::usage(error).hint(
            "give NAMESPACE/NAME@RANGE, ./DIR with component.wasm and release.dsse.json, https://…/release.dsse.json or oci://HOST/REPOSITORY@sha256:…",
        ))
    })
}

/// Why an index gave nothing, with what to do. What is no accident is in the audit log too.
pub(super) fn refused(config: &Config, error: &IndexError) -> Failure {
    let code = match error.class() {
        ErrorClass::Integrity => Code::Integrity,
        ErrorClass::Usage => Code::Usage,
        ErrorClass::Authentication => Code::Authentication,
        ErrorClass::Failed => Code::Failed,
    };
    if let (Code::Integrity, Some(index)) = (code, error.index())
        && let Err(failure) = super::install::note(config, refused_row(index, error))
    {
        tracing::error!("it could not be noted in the audit log: {}", failure.message);
    }
    let failure = Failure::new(code, error);
    match next_step::of(error.code()) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn here() -> Result<std::path::PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("the current directory cannot be read: {error}")))
}
