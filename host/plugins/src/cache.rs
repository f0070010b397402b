//! The native-code cache: compiled plugins on disk, so that a start costs milliseconds.
//!
//! `<dir>/key` holds 32 random bytes of this installation (0600); an entry is
//! `<dir>/<compatibility>/<component sha256>.cwasm`: a magic line, a MAC, and wasmtime's own code.
//! The directory name is the engine's `precompile_compatibility_hash`, which covers version,
//! target and settings, so that a patched engine never runs code of its predecessor.
//!
//! Threat: an entry is native code and would be run. Nothing is deserialised that this
//! installation did not write itself for exactly this engine and component (WA-01). Anything else
//! is a miss: the component is compiled again, the entry replaced, and one line logged. Whoever can
//! read the key can run code as this user already. A cache that cannot be written costs time only.

mod native;

use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use toolgate_base::files;
use toolgate_signing::Digest;
use wasmtime::Engine;
use wasmtime::component::Component;

use native::Key;

/// First bytes of every entry; a change of the format changes the number.
const MAGIC: &[u8] = b"toolgate-aot 1\n";

/// Bytes of an entry that are read at most. Code is about five times its component.
const MAX_ENTRY: u64 = 128 << 20;

/// The cache of one directory for one engine.
pub(crate) struct Cache {
    directory: PathBuf,
    compatibility: String,
    key: Key,
}

/// What looking for an entry came to.
pub(crate) enum Found {
    /// The code, checked and loaded.
    Code(Component),
    /// No entry.
    Nothing,
    /// An entry that must not be used, and why.
    Unusable(String),
}

impl Cache {
    /// Opens the cache below `directory`, making directory and key where they are missing.
    pub(crate) fn open(directory: &Path, engine: &Engine) -> io::Result<Self> {
        files::create_private_dir(directory)?;
        let key = Key::new(&read_or_make_key(&directory.join("key"))?);
        let compatibility = compatibility_of(engine);
        let directory = directory.join(&compatibility);
        files::create_private_dir(&directory)?;
        Ok(Self { directory, compatibility, key })
    }

    /// Looks for the code of a component.
    pub(crate) fn get(&self, engine: &Engine, component: &Digest) -> Found {
        let bytes = match read_bounded(&self.path_of(component)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Found::Nothing,
            Err(error) => return Found::Unusable(format!("it cannot be read: {error}")),
        };
        let Some(sealed) = bytes.strip_prefix(MAGIC) else {
            return Found::Unusable("it is of another format".to_owned());
        };
        let Some(code) = self.key.open(&self.context_of(component), sealed) else {
            return Found::Unusable("its MAC is not of this installation, engine and component".to_owned());
        };
        match native::load(engine, &code) {
            Ok(component) => Found::Code(component),
            Err(error) => Found::Unusable(format!("the engine does not take it: {error:#}")),
        }
    }

    /// Writes the code of a component, replacing what is there.
    pub(crate) fn put(&self, component: &Digest, compiled: &Component) -> io::Result<()> {
        let code = compiled.serialize().map_err(io::Error::other)?;
        let mut entry = MAGIC.to_vec();
        entry.extend_from_slice(&self.key.seal(&self.context_of(component), &code));
        entry.extend_from_slice(&code);
        files::write_private(&self.path_of(component), &entry)
    }

    fn path_of(&self, component: &Digest) -> PathBuf {
        let text = component.to_string();
        let hex = text.rsplit(':').next().unwrap_or_default();
        self.directory.join(format!("{hex}.cwasm"))
    }

    /// What the MAC covers beside the code: an entry cannot be moved to another name or directory.
    fn context_of(&self, component: &Digest) -> String {
        format!("toolgate-aot 1\n{}\n{component}\n", self.compatibility)
    }
}

/// The key, or a new one where there is none, or none that can be trusted: all entries then miss.
fn read_or_make_key(path: &Path) -> io::Result<Vec<u8>> {
    match read_bounded(path) {
        Ok(bytes) if bytes.len() == native::KEY_BYTES && !files::is_writable_by_others(path)? => {
            return Ok(bytes);
        }
        Ok(_) => {
            tracing::warn!(path = %path.display(), "the key of the native-code cache is unusable and replaced");
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut key = vec![0_u8; native::KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    files::write_private(path, &key)?;
    Ok(key)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    files::read_bounded(path, MAX_ENTRY)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The engine's compatibility hash as a name of 64 hex characters.
fn compatibility_of(engine: &Engine) -> String {
    let mut hasher = Sha256Hasher(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut hasher);
    hex::encode(hasher.0.finalize())
}

/// `Hash` feeds bytes; this one keeps all of them, where the usual hashers keep 64 bits.
struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        let digest = self.0.clone().finalize();
        digest.iter().take(8).fold(0, |value, byte| (value << 8) | u64::from(*byte))
    }
}
