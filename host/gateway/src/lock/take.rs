//! What there is now, in the form of a lock.

use std::io::Read as _;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use toolgate_config::{Config, Server, Transport, masked_server};
use toolgate_signing::{DefinitionKind, Digest, VerifiedRelease, surface_digest};

use super::{Lock, LockError, LockedDefinition, LockedPlugin, LockedServer, LockedSurface};
use crate::assemble;

/// Largest program whose digest is taken, bytes.
const MAX_PROGRAM: u64 = 512 * 1024 * 1024;

/// Plugins and servers of a configuration, without any server being asked.
pub fn from_config(config: &Config) -> Result<Lock, LockError> {
    let mut servers = Vec::new();
    for server in config.servers.values().filter(|server| server.enabled) {
        servers.push(server_of(config, server)?);
    }
    Ok(Lock { version: super::FORMAT, plugins: plugins_of(config)?, servers })
}

/// The plugins of a configuration, each verified.
pub fn plugins_of(config: &Config) -> Result<Vec<LockedPlugin>, LockError> {
    let mut plugins = Vec::new();
    for wanted in assemble::wanted(config)? {
        let release = wanted.verify(config)?;
        plugins.push(locked(&release, wanted.grants, wanted.from_index()));
    }
    plugins.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(plugins)
}

/// A server without its surface.
pub fn server_of(config: &Config, server: &Server) -> Result<LockedServer, LockError> {
    let adapter = match &server.adapter {
        Some(used) => {
            let wanted = assemble::adapter_wanted(config, used)?;
            let release = wanted.verify(config)?;
            server.adapter_grants_digest().map(|grants| locked(&release, grants, wanted.from_index()))
        }
        None => None,
    };
    Ok(LockedServer {
        name: server.name.clone(),
        target: target_of(server),
        identity: server.identity(),
        artifact: artifact_of(server),
        adapter,
        era: String::new(),
        revision: String::new(),
        surface: None,
        definitions: Vec::new(),
    })
}

impl LockedServer {
    /// With the surface that it shows, or that was reviewed.
    #[must_use]
    pub fn with_surface(mut self, era: &str, revision: &str, surface: &LockedSurface) -> Self {
        era.clone_into(&mut self.era);
        revision.clone_into(&mut self.revision);
        self.definitions = surface
            .definitions
            .iter()
            .map(|found| LockedDefinition {
                kind: found.kind.clone(),
                name: found.name.clone(),
                digest: found.digest,
            })
            .collect();
        self.surface = Some(digest_of(surface));
        self
    }
}

/// The digest of a whole surface.
pub(super) fn digest_of(surface: &LockedSurface) -> Digest {
    let parts: Vec<(DefinitionKind, String, Digest)> = surface
        .definitions
        .iter()
        .filter_map(|found| Some((found.kind.parse().ok()?, found.name.clone(), found.digest)))
        .collect();
    surface_digest(&parts)
}

fn locked(release: &VerifiedRelease, grants: Digest, from: Option<(&str, u64)>) -> LockedPlugin {
    let stated = release.release();
    LockedPlugin {
        name: stated.name.clone(),
        version: stated.version.to_string(),
        sequence: stated.sequence,
        kind: stated.kind.as_str().to_owned(),
        component: release.component(),
        release: release.digest(),
        signers: release.signers().iter().map(ToString::to_string).collect(),
        imports: stated.imports.clone(),
        grants,
        index: from.map(|(index, _)| index.to_owned()),
        log: from.map(|(_, log)| log),
    }
}

/// For the reader of a pull request; what could be a secret is masked.
fn target_of(server: &Server) -> String {
    let shown = masked_server(server);
    let text = |key: &str| shown.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let words = shown.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let mut line = if text("url").is_empty() { text("command") } else { text("url") };
    for word in words {
        line.push(' ');
        line.push_str(word);
    }
    line
}

/// The digest of the program that is started, where the command is a path. A bare name is looked up by
/// each machine for itself, so its file says nothing that could be compared elsewhere.
fn artifact_of(server: &Server) -> Option<Digest> {
    let Transport::Stdio { command, .. } = &server.transport else { return None };
    if !command.contains('/') {
        return None;
    }
    let path = Path::new(command);
    let found = std::fs::metadata(path).ok().filter(|found| found.is_file() && found.len() <= MAX_PROGRAM)?;
    let mut file = std::fs::File::open(path).ok()?.take(found.len());
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(Digest::from_bytes(hasher.finalize().into())),
            count => hasher.update(buffer.get(..count)?),
        }
    }
}
