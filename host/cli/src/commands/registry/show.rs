//! `toolgate registry status|verify|serve|mirror`.

use std::path::Path;

use serde_json::{Value, json};
use toolgate_base::{Clock as _, SystemClock};
use toolgate_registry::{Reach, Server, Source, Status, Time};

use super::{change::open, failure, fingerprint, own_fingerprint, read_pem, refused};
use crate::args::registry::{Reached, RegistryMirror, RegistryServe, RegistryStatus, RegistryVerify};
use crate::exit::Failure;
use crate::output;

/// How a registry stands.
pub(super) async fn status(args: &RegistryStatus) -> Result<(), Failure> {
    let status = open(&args.at.dir)?.status().await.map_err(|error| failure(&error))?;
    if args.at.json {
        output::json(&described(&status))?;
    } else {
        print(&status)?;
    }
    let soonest = status.documents.iter().min_by_key(|row| row.expires);
    match (args.fail_under, soonest) {
        (Some(days), Some(row)) if row.expired || row.days < days => {
            Err(Failure::failed(format!("the {} expires in {} days, at {}", row.what, row.days, row.expires))
                .hint("renew a snapshot with `toolgate registry refresh`; delegations and revocations are renewed by their next change, a root by `root propose`"))
        }
        _ => Ok(()),
    }
}

fn described(status: &Status) -> Value {
    let documents: Vec<Value> = status
        .documents
        .iter()
        .map(|row| {
            json!({
                "document": row.what, "version": row.version, "expires": row.expires,
                "days": row.days, "expired": row.expired,
            })
        })
        .collect();
    let roles: Vec<Value> = status
        .roles
        .iter()
        .map(|(role, keys, threshold)| json!({ "role": role.as_str(), "keys": keys, "threshold": threshold }))
        .collect();
    let namespaces: Vec<Value> = status
        .namespaces
        .iter()
        .map(|(name, keys, threshold)| json!({ "plugins": name, "keys": keys, "threshold": threshold }))
        .collect();
    json!({
        "origin": status.origin, "fingerprint": status.fingerprint, "first": status.first,
        "documents": documents, "roles": roles, "namespaces": namespaces, "plugins": status.plugins,
        "log": { "lines": status.log.0, "epoch": status.log.1 },
        "revoked": { "releases": status.revoked.0, "keys": status.revoked.1 },
        "proposal": status.proposal,
    })
}

fn print(status: &Status) -> Result<(), Failure> {
    output::line(&format!(
        "{}: {} plugins, {} lines in the log",
        status.origin, status.plugins, status.log.0
    ))?;
    output::line(&format!("  first root   {}", status.first))?;
    output::line(&format!("  newest root  {}", status.fingerprint))?;
    let rows: Vec<Vec<String>> = status
        .documents
        .iter()
        .map(|row| {
            let left = if row.expired { "expired".to_owned() } else { format!("{} days", row.days) };
            vec![row.what.to_owned(), row.version.to_string(), left, row.expires.to_string()]
        })
        .collect();
    output::table(&["DOCUMENT", "VERSION", "LEFT", "EXPIRES"], &rows)?;
    let mut rows: Vec<Vec<String>> = status
        .roles
        .iter()
        .map(|(role, keys, threshold)| vec![role.to_string(), format!("{threshold} of {keys}")])
        .collect();
    rows.extend(
        status
            .namespaces
            .iter()
            .map(|(name, keys, threshold)| vec![name.clone(), format!("{threshold} of {keys}")]),
    );
    output::table(&["WHO SIGNS", "KEYS"], &rows)?;
    output::line(&format!("revoked: {} releases, {} keys", status.revoked.0, status.revoked.1))?;
    if status.proposal {
        output::line("a root waits for signatures: `toolgate registry root sign`")?;
    }
    Ok(())
}

/// Checks everything in a registry.
pub(super) async fn verify(args: &RegistryVerify) -> Result<(), Failure> {
    let source = source(&args.registry, &args.reached)?;
    let root = match &args.root {
        Some(text) => fingerprint(text)?,
        None if args.registry.contains("://") => {
            return Err(Failure::usage(
                "a registry elsewhere is checked from a root that you trust; give --root FINGERPRINT",
            ));
        }
        None => own_fingerprint(Path::new(&args.registry))?,
    };
    let verified = toolgate_registry::verify(&source, root, now()).await.map_err(|error| failure(&error))?;
    if args.json {
        return output::json(&json!({
            "fingerprint": verified.fingerprint, "snapshot": verified.snapshot, "plugins": verified.plugins,
            "releases": verified.releases, "log": verified.log,
        }));
    }
    output::line(&format!(
        "verified: {} releases of {} plugins, {} lines in the log, snapshot {} under root {}",
        verified.releases, verified.plugins, verified.log, verified.snapshot, verified.fingerprint
    ))
}

/// Serves the files of a registry until it is told to stop.
pub(super) async fn serve(args: &RegistryServe) -> Result<(), Failure> {
    let tls = match args.tls_cert.as_ref().zip(args.tls_key.as_ref()) {
        Some((certificate, key)) => {
            let (certificate, key) = (read_pem(certificate)?, read_pem(key)?);
            Some(toolgate_net::server_tls(&certificate, &key).map_err(Failure::usage)?)
        }
        None => None,
    };
    let server = Server::bind(&args.dir, args.listen, tls).await.map_err(|error| refused(&error))?;
    output::line(&format!("serving {} on {}", args.dir.display(), server.url()))?;
    server.run(stopped()).await;
    Ok(())
}

/// Copies a registry.
pub(super) async fn mirror(args: &RegistryMirror) -> Result<(), Failure> {
    let (source, root) = (source(&args.from, &args.reached)?, fingerprint(&args.root)?);
    let mirrored =
        toolgate_registry::mirror(&source, root, &args.dir, now()).await.map_err(|error| failure(&error))?;
    if args.json {
        return output::json(&json!({
            "fingerprint": mirrored.fingerprint, "snapshot": mirrored.snapshot,
            "releases": mirrored.releases, "copied": mirrored.copied,
        }));
    }
    output::line(&format!(
        "{} has snapshot {} under root {}: {} releases, {} new files",
        args.dir.display(),
        mirrored.snapshot,
        mirrored.fingerprint,
        mirrored.releases,
        mirrored.copied
    ))
}

/// Ends with SIGINT or SIGTERM.
async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

fn source(text: &str, reached: &Reached) -> Result<Source, Failure> {
    let reach = Reach::new(vec![reached.host(text)?]);
    Source::parse(text, Path::new(""), &reach).map_err(|error| refused(&error))
}

fn now() -> Time {
    Time::from_millis(SystemClock.now_ms())
}
