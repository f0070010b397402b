//! A registry as it is published, wholly: for whoever changes, copies or checks it.
//!
//! The same checks as a client's first visit, without a clock: what expired can still be renewed.

use std::collections::BTreeMap;
use std::path::Path;

use toolgate_signing::{Digest, MAX_ENVELOPE};

use super::{refresh, resolve};
use crate::document::{self, Root};
use crate::error::RegistryError;
use crate::layout::{self, Fingerprint};
use crate::line::Line;
use crate::source::Source;
use crate::state::Current;
use crate::time::Time;

/// Everything but the blobs.
pub(crate) struct Loaded {
    /// The newest root.
    pub(crate) root: Root,
    /// The digest of every root.
    pub(crate) roots: BTreeMap<u64, Digest>,
    pub(crate) current: Current,
    /// The lines of every plugin.
    pub(crate) lines: BTreeMap<String, Vec<Line>>,
    /// The same as text.
    pub(crate) texts: BTreeMap<String, String>,
}

impl Loaded {
    /// The registry in a directory of its own maintainers, who trust its first root.
    pub(crate) async fn of(directory: &Path) -> Result<Self, RegistryError> {
        let root = Self::first(directory)?;
        Self::from(&Source::directory(directory), root, Time::from_seconds(0)).await
    }

    /// The fingerprint of the first root in a directory.
    pub(crate) fn first(directory: &Path) -> Result<Fingerprint, RegistryError> {
        let path = directory.join(layout::root(1));
        let Some(first) = crate::files::read(&path, MAX_ENVELOPE as u64)? else {
            let what = directory.display().to_string();
            let why = if directory.join(crate::publisher::PROPOSAL).exists() {
                "its first root is not signed yet; see `toolgate registry root sign` and `root finish`"
            } else {
                "it has no root/1.json; `toolgate registry init` makes a registry"
            };
            return Err(RegistryError::Source { what, why: why.to_owned() });
        };
        let payload = document::claimed_payload(&first)
            .ok_or_else(|| RegistryError::malformed("root", "it is no envelope"))?;
        Ok(Fingerprint { version: 1, digest: Digest::of(&payload) })
    }

    /// The registry of a source from a root on, as it is at a time.
    pub(crate) async fn from(source: &Source, root: Fingerprint, now: Time) -> Result<Self, RegistryError> {
        let mut trusted = refresh::first(source, root).await?;
        refresh::roots(source, &mut trusted).await?;
        let current = refresh::current(source, &trusted, now).await?;
        let (mut lines, mut texts) = (BTreeMap::new(), BTreeMap::new());
        let mut places = vec![false; current.hashes.len()];
        for entry in current.names.values() {
            let (text, read) = resolve::lines(source, &current, entry, None).await?;
            for line in &read {
                if let Some(place) = usize::try_from(line.log()).ok().and_then(|place| places.get_mut(place))
                {
                    *place = true;
                }
            }
            lines.insert(entry.name.clone(), read);
            texts.insert(entry.name.clone(), text);
        }
        // A line of the log that stands in no file would be one that nobody can look up.
        if let Some(missing) = places.iter().position(|there| !there) {
            return Err(RegistryError::MixAndMatch {
                what: "index".to_owned(),
                expected: format!("line {missing} of the log"),
                found: "nothing".to_owned(),
            });
        }
        Ok(Self { root: trusted.root, roots: trusted.anchors, current, lines, texts })
    }
}
