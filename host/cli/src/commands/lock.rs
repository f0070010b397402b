//! `toolgate lock …`: the one verb for CI, and what it compares with.
//!
//! `lock update` writes files that somebody reviews, and pins nothing below the data directory. With `--locked`
//! this machine serves what stands in them, so a definition that was never approved, of a server that was, and a
//! release that may do more want the operator here as well.

mod sarif;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::json;
use toolgate_config::Config;
use toolgate_gateway::assemble::{Refusal, Revoked};
use toolgate_gateway::indexes;
use toolgate_gateway::lock::{
    Lock, LockError, LockedServer, LockedSurface, Mismatch, Moved, Place, RelockError, Surfaces, compare_all,
    compare_surface, fetch_missing, from_config, relock, unreviewed,
};
use toolgate_gateway::{Gateway, Locked};
use toolgate_registry::ErrorClass;
use toolgate_signing::Digest;
use toolgate_store::OperatorProof;

use crate::args::{LockCheck, LockCommand, LockUpdate};
use crate::context;
use crate::exit::{Code, Failure};
use crate::operator;
use crate::output;

/// Runs one verb. The lock is about the operator's file alone, so the layers do not count here.
pub(crate) async fn run(explicit: Option<&Path>, command: LockCommand) -> Result<(), Failure> {
    context::lock_layers();
    let config = context::config(explicit)?;
    match command {
        LockCommand::Check(args) => check(config, &args).await,
        LockCommand::Update(args) => update(config, &args).await,
    }
}

async fn check(config: Config, args: &LockCheck) -> Result<(), Failure> {
    let locked = read(&config)?;
    let mut silent = Vec::new();
    if !args.offline {
        for (index, refreshed) in indexes::refresh(&config).await {
            match refreshed {
                Ok(_) => {}
                Err(error) if error.class() == ErrorClass::Integrity => {
                    return Err(Failure::integrity(error));
                }
                Err(error) => silent.push((format!("the index {index}"), error.to_string())),
            }
        }
        match fetch_missing(&config).await {
            // The comparison says which.
            Ok(()) | Err(RelockError::Refused(_)) => {}
            Err(error) => return Err(not_had(&config, &error)),
        }
    }
    let mut mismatches = offline(&config, &locked)?;
    // A server under another identity is another server, and one that is judged by other plugins is not
    // judged: neither is started to see what it shows.
    let asks =
        !args.offline && mismatches.iter().all(|one| !matches!(one.about, "server" | "plugin" | REVOKED));
    if asks {
        let gateway = context::bare_gateway(config, "lock")?;
        gateway.hold_to(locked);
        let (more, unasked) = gateway.check_locked(None).await;
        gateway.shutdown().await;
        mismatches.extend(more);
        silent.extend(unasked);
    }
    print(&mismatches, &silent, if args.json { "json" } else { &args.format })?;
    if !mismatches.is_empty() {
        return Err(differs(&mismatches));
    }
    match silent.first() {
        Some((server, reason)) => Err(Failure::failed(format!("{server} could not be asked: {reason}"))
            .hint("`toolgate lock check --offline` compares everything but what servers show and indexes revoked since")),
        None => Ok(()),
    }
}

/// What was reviewed and must not run any more.
const REVOKED: &str = "revocation";

fn revoked(found: &Revoked) -> Mismatch {
    Mismatch {
        about: REVOKED,
        name: found.plugin.clone(),
        field: "its standing".to_owned(),
        locked: "good".to_owned(),
        found: found.to_string(),
        diff: String::new(),
    }
}

async fn update(mut config: Config, args: &LockUpdate) -> Result<(), Failure> {
    if !args.offline {
        fetch_missing(&config).await.map_err(|error| not_had(&config, &error))?;
        let moved = relock(&mut config, args.upgrade).await.map_err(|error| not_had(&config, &error))?;
        accept(&config, &moved, args.json)?;
    }
    let place = Place::beside(config.path.as_deref()).map_err(|error| of_lock(&error))?;
    let locked = place.read().map_err(|error| of_lock(&error))?;
    let is_first = locked.is_none();
    let old = locked.unwrap_or_default();
    let reviewed = Surfaces::read(&place.surface_dir(), &old.servers).unwrap_or_default();
    let mut new = from_config(&config).map_err(|error| of_lock(&error))?;
    let mut surfaces = Surfaces::default();
    let known = if args.offline { Known::default() } else { Known::of(&config, &old)? };
    let prover = config.clone();
    let gateway = if args.offline { None } else { Some(context::bare_gateway(config, "lock")?) };
    let mut mismatches = Vec::new();
    let mut wider = Vec::new();
    for server in &mut new.servers {
        let before = old.servers.iter().find(|before| before.name == server.name);
        let kept = reviewed.get(&server.name).cloned().unwrap_or_default();
        let (taken, surface) = match &gateway {
            Some(gateway) => shown(gateway, server).await?,
            None => kept_surface(server, before, &kept),
        };
        if let Some(before) = before {
            mismatches.extend(compare_surface(before, &kept, &taken.era, &taken.revision, &surface));
        }
        wider.extend(known.unapproved(&taken));
        surfaces.set(&server.name, surface);
        *server = taken;
    }
    if let Some(gateway) = gateway {
        gateway.shutdown().await;
    }
    // What was never reviewed has no old side to differ from.
    if !is_first {
        mismatches.splice(0..0, changed(&old, &new));
    }
    accept_surfaces(&prover, &wider, &mismatches)?;
    place.write(&new, &surfaces).map_err(|error| of_lock(&error))?;
    report(&place, &new, &mismatches, args.json)
}

/// What was approved of servers before this update, on this machine or in the lock that is replaced.
#[derive(Default)]
struct Known(BTreeMap<String, BTreeSet<(String, String, Digest)>>);

impl Known {
    fn of(config: &Config, old: &Lock) -> Result<Self, Failure> {
        let mut known: BTreeMap<String, BTreeSet<_>> = BTreeMap::new();
        for server in &old.servers {
            let definitions = server.definitions.iter();
            let all = definitions.map(|one| (one.kind.clone(), one.name.clone(), one.digest));
            known.entry(server.name.clone()).or_default().extend(all);
        }
        let store = context::store(config, "lock")?;
        for server in config.servers.values() {
            let pins = store.pins_of(&server.identity()).map_err(context::store_failure)?;
            let Some(pins) = pins else { continue };
            let all = pins.definitions.into_iter().map(|pin| (pin.kind, pin.name, pin.digest));
            known.entry(server.name.clone()).or_default().extend(all);
        }
        Ok(Self(known))
    }

    /// The definitions that nobody approved, of a server of which something was.
    fn unapproved(&self, server: &LockedServer) -> Vec<String> {
        let Some(known) = self.0.get(&server.name).filter(|known| !known.is_empty()) else {
            return Vec::new();
        };
        let is_new =
            |kind: &str, name: &str, digest| !known.contains(&(kind.to_owned(), name.to_owned(), digest));
        let definitions = server.definitions.iter();
        definitions
            .filter(|one| is_new(&one.kind, &one.name, one.digest))
            .map(|one| format!("{}/{}/{}", server.name, one.kind, one.name))
            .collect()
    }
}

/// With `--locked` this machine serves what the lock holds, so that a definition which takes the place of an
/// approved one is let in by `lock update` as `mcp pin --accept` lets it in: it wants the operator, where one was
/// set. What was accepted here already, what the lock has, and what is new altogether do not.
fn accept_surfaces(config: &Config, wider: &[String], mismatches: &[Mismatch]) -> Result<(), Failure> {
    if wider.is_empty() {
        return Ok(());
    }
    // Where nobody is asked, the report that follows shows the same.
    let nobody = operator::proof(config)? == OperatorProof::None;
    for mismatch in mismatches.iter().filter(|_| !nobody).filter(|mismatch| !mismatch.diff.is_empty()) {
        tracing::warn!("{}\n{}", mismatch.sentence(), mismatch.diff.trim_end());
    }
    let what = format!("lock what was never approved of servers that are known here: {}", wider.join(", "));
    operator::prove(config, &what).map(drop)
}

/// What a server shows now. One that cannot be asked ends the update: a lock without it would be a lock
/// that lets it show anything.
async fn shown(
    gateway: &std::sync::Arc<Gateway>,
    server: &LockedServer,
) -> Result<(LockedServer, LockedSurface), Failure> {
    match gateway.shown_now(&server.name).await {
        Ok(Some(now)) => {
            let taken = server.clone().with_surface(now.era, &now.revision, &now.surface);
            Ok((taken, now.surface))
        }
        Ok(None) => Ok((server.clone(), LockedSurface::default())),
        Err(reason) => Err(Failure::failed(format!("{} could not be asked: {reason}", server.name)).hint(
            "nothing was written; repair the server, disable it, or keep what was reviewed with --offline",
        )),
    }
}

/// The reviewed surface of a server that is still the same one.
fn kept_surface(
    server: &LockedServer,
    before: Option<&LockedServer>,
    kept: &LockedSurface,
) -> (LockedServer, LockedSurface) {
    match before.filter(|before| before.identity == server.identity) {
        Some(before) => (server.clone().with_surface(&before.era, &before.revision, kept), kept.clone()),
        None => (server.clone(), LockedSurface::default()),
    }
}

/// Plugins and servers that differ from the old lock; surfaces are compared one by one.
fn changed(old: &Lock, new: &Lock) -> Vec<Mismatch> {
    let all = compare_all(old, new, &Surfaces::default());
    all.into_iter().filter(|mismatch| mismatch.about != "surface").collect()
}

fn report(place: &Place, lock: &Lock, mismatches: &[Mismatch], as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({
            "lock": place.lock_file(),
            "plugins": lock.plugins.len(),
            "servers": lock.servers.len(),
            "changes": mismatches,
        }));
    }
    for mismatch in mismatches {
        output::line(&mismatch.sentence())?;
        output::line(mismatch.diff.trim_end()).ok();
    }
    output::line(&format!(
        "{} pins {} and {}; review it and {} and commit both",
        place.lock_file().display(),
        output::count(lock.plugins.len(), "plugin"),
        output::count(lock.servers.len(), "server"),
        place.surface_dir().display()
    ))
}

/// Reads the lock of a configuration and the surfaces beside it.
pub(crate) fn read(config: &Config) -> Result<Locked, Failure> {
    let place = Place::beside(config.path.as_deref()).map_err(|error| of_lock(&error))?;
    let lock = place.read_existing().map_err(|error| of_lock(&error))?;
    let surfaces = Surfaces::read(&place.surface_dir(), &lock.servers).map_err(|error| of_lock(&error))?;
    Ok(Locked { lock, surfaces })
}

/// Everything that can be compared without asking a server.
pub(crate) fn offline(config: &Config, locked: &Locked) -> Result<Vec<Mismatch>, Failure> {
    match from_config(config) {
        Ok(found) => Ok(compare_all(&locked.lock, &found, &locked.surfaces)),
        Err(LockError::Plugin(Refusal::Revoked(found))) => Ok(vec![revoked(&found)]),
        Err(LockError::Plugin(Refusal::Unresolved { plugin, reason })) => {
            Ok(vec![unreviewed(&plugin, &reason)])
        }
        Err(error) => Err(of_lock(&error)),
    }
}

/// What names stand for now. A release that may do more than the one that was locked counts on this machine
/// from the next start on, before anybody reviewed it elsewhere: that wants the operator.
fn accept(config: &Config, moved: &[Moved], quiet: bool) -> Result<(), Failure> {
    for one in moved {
        let Some(from) = &one.from else { continue };
        let what = format!("{} {from} to {}", one.plugin, one.to);
        if one.wider.is_empty() {
            if !quiet {
                output::line(&format!("{what}: it may do no more than before"))?;
            }
            continue;
        }
        // Not on standard output, which may be a program's.
        tracing::warn!("{what}: it may do what {from} may not");
        one.wider.iter().for_each(|power| tracing::warn!("  {}", power.words));
        let _ = operator::prove(config, &format!("lock {what}, which may do more than before"))?;
    }
    Ok(())
}

/// A release of the lock, or of an index for it, that is not to be had.
pub(crate) fn not_had(config: &Config, error: &RelockError) -> Failure {
    match error {
        RelockError::Index(error) => super::plugin::index_failure(config, error),
        RelockError::Refused(refusal) if refusal.is_integrity() => Failure::integrity(refusal),
        RelockError::Install(error) if error.is_integrity() => Failure::integrity(error),
        RelockError::Refused(_) | RelockError::Layer(_) => Failure::usage(error),
        RelockError::Install(_) => Failure::failed(error),
    }
}

/// The failure of a mismatch: both sides of each, and what to do.
pub(crate) fn differs(mismatches: &[Mismatch]) -> Failure {
    let lines: Vec<String> = mismatches
        .iter()
        .map(|mismatch| format!("{}\n{}", mismatch.sentence(), mismatch.diff).trim_end().to_owned())
        .collect();
    Failure::integrity(format!("this is not what was reviewed in toolgate.lock:\n{}", lines.join("\n")))
        .hint("if it is meant, run `toolgate lock update`, have the change reviewed, and commit it")
}

fn print(mismatches: &[Mismatch], silent: &[(String, String)], format: &str) -> Result<(), Failure> {
    match format {
        "sarif" => output::json(&sarif::log(mismatches)),
        "json" => {
            let unasked: Vec<_> =
                silent.iter().map(|(server, reason)| json!({ "server": server, "reason": reason })).collect();
            output::json(
                &json!({ "ok": mismatches.is_empty(), "mismatches": mismatches, "unasked": unasked }),
            )
        }
        _ if mismatches.is_empty() && silent.is_empty() => {
            output::line("everything is what was reviewed in toolgate.lock")
        }
        // The failure that follows says it.
        _ => Ok(()),
    }
}

fn of_lock(error: &LockError) -> Failure {
    let code = match error {
        error if error.is_integrity() => Code::Integrity,
        LockError::Io { .. } => Code::Failed,
        _ => Code::Usage,
    };
    Failure::new(code, error)
}
