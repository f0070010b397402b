//! From a name and a range to a release, and from a release to its bytes.

use semver::{Version, VersionReq};
use toolgate_signing::{Digest, MAX_ENVELOPE};

use super::refresh::{required, same};
use super::{Client, Fetched, ResolvedRelease, Skipped, judge};
use crate::error::RegistryError;
use crate::layout;
use crate::line::{self, Line, Listed};
use crate::names::NameEntry;
use crate::reference::{MAX_SCHEMA, named_schema};
use crate::source::Source;
use crate::state::{Current, Seen, Trusted};
use crate::time::Time;
use crate::{MAX_COMPONENT, layout::is_plugin_name};

impl Client {
    /// The newest release in a range that is neither yanked nor revoked, was signed by those to whom the
    /// registry delegates the plugin, and runs on this version of the host.
    ///
    /// # Errors
    /// [`RegistryError::Expired`] if what was refreshed is not fresh; the reason of the one release that
    /// fits, or [`RegistryError::NoVersion`] with all of them.
    pub async fn resolve(&self, name: &str, range: &VersionReq) -> Result<ResolvedRelease, RegistryError> {
        self.resolve_published(name, range, None).await
    }

    /// As [`Client::resolve`], without the releases that came into the index after a time: whoever waits
    /// until others have looked at a release.
    pub async fn resolve_published(
        &self,
        name: &str,
        range: &VersionReq,
        by: Option<Time>,
    ) -> Result<ResolvedRelease, RegistryError> {
        let trusted = self.fresh()?;
        let mut fitting = self.listed(name).await?;
        fitting.retain(|listed| range.matches(&listed.line.version));
        fitting.sort_by(|left, right| right.line.version.cmp(&left.line.version));
        let mut skipped: Vec<(Skipped, RegistryError)> = Vec::new();
        for listed in fitting {
            let version = listed.line.version.clone();
            let passed = match refused_by_line(&listed, by) {
                Some(refusal) => Err(refusal),
                None => self.judged(&trusted, listed).await,
            };
            match passed {
                Ok(mut resolved) => {
                    resolved.skipped = skipped.into_iter().map(|(skipped, _)| skipped).collect();
                    return Ok(resolved);
                }
                Err(error) if is_reason_to_skip(&error) => {
                    skipped.push((Skipped { version, code: error.code(), reason: error.to_string() }, error));
                }
                Err(error) => return Err(error),
            }
        }
        Err(nothing_fits(name, range, skipped))
    }

    /// The release that a lock names by the digest of its envelope, yanked or not. What is revoked is
    /// refused all the same.
    pub async fn locked(&self, name: &str, release: Digest) -> Result<ResolvedRelease, RegistryError> {
        let trusted = self.known()?;
        let listed = self.listed(name).await?;
        let found = listed.into_iter().find(|listed| listed.line.release == release);
        let found = found.ok_or_else(|| RegistryError::Absent(format!("release {release} of {name}")))?;
        self.judged(&trusted, found).await
    }

    /// The bytes of a release: the component, checked against the digest that was signed.
    pub async fn fetch(&self, resolved: &ResolvedRelease) -> Result<Fetched, RegistryError> {
        let expected = resolved.release.component();
        let size = resolved.line.component_size.min(MAX_COMPONENT);
        let component = required(&self.source, &layout::blob(expected), size).await?;
        let found = Digest::of(&component);
        if found != expected {
            return Err(RegistryError::Digest {
                what: format!("the component of {}", resolved.line.name),
                expected,
                found,
            });
        }
        let schema = self.schema(resolved).await?;
        Ok(Fetched { component, release: resolved.envelope.clone(), schema })
    }

    /// The schema of the settings; none where the release names none, or its publisher left it out.
    async fn schema(&self, resolved: &ResolvedRelease) -> Result<Option<Vec<u8>>, RegistryError> {
        let Some(expected) = resolved.release.release().settings_schema else { return Ok(None) };
        let found = self.source.read(&layout::blob(expected), MAX_SCHEMA).await?;
        named_schema(&resolved.line.name, expected, found)
    }

    /// What is known, if it can still be believed.
    fn fresh(&self) -> Result<std::sync::Arc<Trusted>, RegistryError> {
        let trusted = self.known()?;
        if trusted.current.is_none() {
            return Err(RegistryError::NeverSeen);
        }
        let now = Time::from_millis(self.clock.now_ms());
        let (until, what) = trusted.until();
        if now < until {
            return Ok(trusted);
        }
        Err(RegistryError::Expired { what: what.to_owned(), expired: until, now })
    }

    /// The envelope of a release, verified against its line, the delegations and the revocations.
    async fn judged(&self, trusted: &Trusted, listed: Listed) -> Result<ResolvedRelease, RegistryError> {
        let current = trusted.current.as_ref().ok_or(RegistryError::NeverSeen)?;
        judge::not_revoked(current, &listed.line)?;
        let line = &listed.line;
        let limit = line.release_size.min(MAX_ENVELOPE as u64);
        let envelope = required(&self.source, &layout::blob(line.release), limit).await?;
        let found = Digest::of(&envelope);
        if found != line.release {
            return Err(RegistryError::Digest {
                what: format!("the release of {} {}", line.name, line.version),
                expected: line.release,
                found,
            });
        }
        let release = judge::signed(current, line, &envelope)?;
        Ok(ResolvedRelease {
            line: listed.line,
            yanked: listed.yanked,
            envelope,
            release,
            skipped: Vec::new(),
        })
    }

    /// The releases of a plugin, from lines that belong to the log and continue those seen before.
    pub(super) async fn listed(&self, name: &str) -> Result<Vec<Listed>, RegistryError> {
        if !is_plugin_name(name) {
            return Err(RegistryError::Reference {
                what: name.to_owned(),
                why: "a plugin is named namespace/name in lowercase letters, digits and `-`".to_owned(),
            });
        }
        let trusted = self.known()?;
        let current = trusted.current.as_ref().ok_or(RegistryError::NeverSeen)?;
        let entry = current.names.get(name).ok_or_else(|| RegistryError::Absent(format!("plugin {name}")))?;
        let (_, lines) = lines(&self.source, current, entry, trusted.seen.get(name)).await?;
        self.remember(entry, &lines).await?;
        Ok(line::listed(&lines))
    }

    /// Remembers what was seen of a plugin, under the lock, beside what others saw meanwhile.
    async fn remember(&self, entry: &NameEntry, lines: &[Line]) -> Result<(), RegistryError> {
        let sequence = line::listed(lines).iter().map(|listed| listed.line.sequence).max().unwrap_or(0);
        let seen = Seen { lines: entry.lines, size: entry.size, digest: entry.sha256, sequence };
        if self.known()?.seen.get(&entry.name) == Some(&seen) {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        let _lock = self.lock().await?;
        let mut trusted = super::load(&self.directory, self.root)?.ok_or(RegistryError::NeverSeen)?;
        // Another process may have seen more.
        if trusted.seen.get(&entry.name).is_none_or(|known| known.lines < seen.lines) {
            trusted.seen.insert(entry.name.clone(), seen);
        }
        self.keep(trusted)
    }
}

/// The lines of a plugin, as text and read: complete, in the log, and continuing those seen before.
pub(crate) async fn lines(
    source: &Source,
    current: &Current,
    entry: &NameEntry,
    seen: Option<&Seen>,
) -> Result<(String, Vec<Line>), RegistryError> {
    let path = layout::index(&entry.name);
    let bytes = source.read_head(&path, entry.size).await?;
    let bytes = bytes.ok_or_else(|| RegistryError::Absent(path.clone()))?;
    if let Some(seen) = seen {
        check_continues(&entry.name, seen, &bytes)?;
    }
    same(&path, &entry.sha256, &Digest::of(&bytes))?;
    let lines = line::read(&entry.name, &bytes)?;
    check_in_log(current, entry, &lines)?;
    // Canonical JSON was read from it, so it is UTF-8.
    Ok((String::from_utf8(bytes).unwrap_or_default(), lines))
}

/// Append-only: the bytes that were seen are still the first ones.
fn check_continues(name: &str, seen: &Seen, bytes: &[u8]) -> Result<(), RegistryError> {
    let size = usize::try_from(seen.size).unwrap_or(usize::MAX);
    if bytes.get(..size).is_some_and(|head| Digest::of(head) == seen.digest) {
        return Ok(());
    }
    Err(RegistryError::Rewritten { name: name.to_owned() })
}

/// Every line stands in the log at the place that it names.
fn check_in_log(current: &Current, entry: &NameEntry, lines: &[Line]) -> Result<(), RegistryError> {
    let what = format!("index of {}", entry.name);
    same(&what, &format!("{} lines", entry.lines), &format!("{} lines", lines.len()))?;
    for line in lines {
        let place = usize::try_from(line.log()).unwrap_or(usize::MAX);
        let logged = current.hashes.get(place).map(|hash| Digest::from_bytes(*hash));
        let found = Digest::from_bytes(line.leaf());
        let logged = logged.map_or_else(|| "nothing".to_owned(), |digest| digest.to_string());
        same(&format!("{what} at line {} of the log", line.log()), &logged, &found.to_string())?;
    }
    Ok(())
}

/// What a line alone says against a release.
fn refused_by_line(listed: &Listed, by: Option<Time>) -> Option<RegistryError> {
    let (name, version) = (listed.line.name.clone(), listed.line.version.clone());
    if by.is_some_and(|by| listed.line.published > by) {
        return Some(RegistryError::Young { name, version, published: listed.line.published });
    }
    if let Some(reason) = &listed.yanked {
        return Some(RegistryError::Yanked { name, version, reason: reason.clone() });
    }
    let host = Version::parse(env!("CARGO_PKG_VERSION")).ok()?;
    (listed.line.min_host > host).then(|| RegistryError::NoVersion {
        name,
        range: format!("Toolgate {host}"),
        why: format!("{version} needs Toolgate {}", listed.line.min_host),
    })
}

/// Whether an older release may be taken instead: not where something is not what was signed.
fn is_reason_to_skip(error: &RegistryError) -> bool {
    matches!(
        error,
        RegistryError::Yanked { .. }
            | RegistryError::Revoked { .. }
            | RegistryError::KeyRevoked { .. }
            | RegistryError::NoVersion { .. }
            | RegistryError::Young { .. }
    )
}

fn nothing_fits(name: &str, range: &VersionReq, mut skipped: Vec<(Skipped, RegistryError)>) -> RegistryError {
    if skipped.len() == 1
        && let Some((_, error)) = skipped.pop()
    {
        return error;
    }
    let reasons: Vec<String> = skipped.iter().map(|(skipped, _)| skipped.reason.clone()).collect();
    let why = if reasons.is_empty() {
        "see what there is with `plugin search`".to_owned()
    } else {
        reasons.join("; ")
    };
    RegistryError::NoVersion { name: name.to_owned(), range: range.to_string(), why }
}
