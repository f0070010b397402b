//! Published vectors: what a client visits, in order, and what each visit ends with.
//!
//! `registry/vectors/<name>.json` holds them for implementations in other languages. They are made by the
//! tests beside this file; where one no longer fits, `TOOLGATE_WRITE_VECTORS=1` writes it anew, and the
//! change shows in the diff.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use toolgate_base::ManualClock;

use super::fixture::Fixture;
use crate::client::{Client, ResolvedRelease};
use crate::error::RegistryError;
use crate::layout::Fingerprint;
use crate::source::Source;
use crate::time::Time;

/// One attack, or one honest course of events.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Vector {
    /// What happens, for the reader.
    about: String,
    /// The root that the client is told to trust.
    root: Fingerprint,
    visits: Vec<Visit>,
}

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
struct Visit {
    /// What the clock says.
    at: Time,
    /// Files that are new, changed (text, or `base64:…`) or gone since the visit before.
    files: BTreeMap<String, Option<String>>,
    /// `ok`, or the code of the error of the refresh.
    refresh: String,
    /// `acme/guard` in any version is then looked for: its version, or the code of the error.
    resolve: String,
}

impl Vector {
    pub(crate) fn new(about: &str, fixture: &Fixture) -> Self {
        Self { about: about.to_owned(), root: fixture.fingerprint(), visits: Vec::new() }
    }

    /// A visit of what is published now, and what must come of it.
    pub(crate) fn visit(&mut self, fixture: &Fixture, at: Time, refresh: &str, resolve: &str) -> &mut Self {
        let mut before: BTreeMap<String, String> = BTreeMap::new();
        for visit in &self.visits {
            for (path, text) in &visit.files {
                match text {
                    Some(text) => before.insert(path.clone(), text.clone()),
                    None => before.remove(path),
                };
            }
        }
        let mut files: BTreeMap<String, Option<String>> = BTreeMap::new();
        for (path, bytes) in &fixture.files {
            let text = written(bytes);
            if before.remove(path).as_ref() != Some(&text) {
                files.insert(path.clone(), Some(text));
            }
        }
        files.extend(before.into_keys().map(|gone| (gone, None)));
        let words = [refresh, resolve].map(str::to_owned);
        let [refresh, resolve] = words;
        self.visits.push(Visit { at, files, refresh, resolve });
        self
    }

    /// Compares with the published vector, and plays it.
    pub(crate) async fn holds(&self, name: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(format!("{name}.json"));
        if std::env::var_os("TOOLGATE_WRITE_VECTORS").is_some() {
            std::fs::write(&path, serde_json::to_string_pretty(self).unwrap() + "\n").unwrap();
        }
        let published: Self = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(&published, self, "{name} is not what is published");
        let place = Place::new();
        for (number, visit) in published.visits.iter().enumerate() {
            for (path, text) in &visit.files {
                place.put(path, text.as_deref().map(read));
            }
            let client = place.client(self.root, visit.at).unwrap();
            let refreshed = client.refresh().await;
            assert_eq!(code(&refreshed), visit.refresh, "{name}, visit {number}: {refreshed:?}");
            let resolved = client.resolve("acme/guard", &semver::VersionReq::STAR).await;
            let found = version(&resolved);
            assert_eq!(found, visit.resolve, "{name}, visit {number}: {resolved:?}");
        }
    }
}

/// `ok` or the code of an error.
pub(crate) fn code<T>(result: &Result<T, RegistryError>) -> &'static str {
    result.as_ref().map_or_else(RegistryError::code, |_| "ok")
}

/// The version that was found or the code of an error.
pub(crate) fn version(result: &Result<ResolvedRelease, RegistryError>) -> String {
    match result {
        Ok(resolved) => resolved.line.version.to_string(),
        Err(error) => error.code().to_owned(),
    }
}

/// A registry and the memory of one machine, each in a directory.
pub(crate) struct Place {
    directory: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// With everything that a fixture publishes.
    pub(crate) fn of(fixture: &Fixture) -> Self {
        let place = Self::new();
        place.show(fixture);
        place
    }

    /// Publishes exactly what the fixture has.
    pub(crate) fn show(&self, fixture: &Fixture) {
        let _ = std::fs::remove_dir_all(self.registry());
        for (path, bytes) in &fixture.files {
            self.put(path, Some(bytes.clone()));
        }
    }

    pub(crate) fn put(&self, path: &str, bytes: Option<Vec<u8>>) {
        let file = self.registry().join(path);
        match bytes {
            Some(bytes) => {
                std::fs::create_dir_all(file.parent().unwrap()).unwrap();
                std::fs::write(file, bytes).unwrap();
            }
            None => std::fs::remove_file(file).unwrap(),
        }
    }

    pub(crate) fn registry(&self) -> PathBuf {
        self.directory.path().join("registry")
    }

    pub(crate) fn memory(&self) -> PathBuf {
        self.directory.path().join("memory")
    }

    pub(crate) fn client(&self, root: Fingerprint, now: Time) -> Result<Client, RegistryError> {
        let clock = Arc::new(ManualClock::new(now.seconds() * 1000));
        Client::open_with(&self.memory(), Source::directory(self.registry()), root, clock)
    }
}

fn written(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.starts_with("base64:") => text.to_owned(),
        _ => format!("base64:{}", STANDARD.encode(bytes)),
    }
}

fn read(text: &str) -> Vec<u8> {
    text.strip_prefix("base64:")
        .map_or_else(|| text.as_bytes().to_vec(), |text| STANDARD.decode(text).unwrap())
}
