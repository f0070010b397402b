//! `toolgate plugin install|update|remove`: what a plugin may do is shown in plain words, accepted by the
//! operator, and only then in force.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolgate_config::plugins_layer::{Installed, PluginsLayer, UpdateMode};
use toolgate_config::{Config, Updates};
use toolgate_gateway::install::{self, InstallError, Offer, Terms};
use toolgate_plugins::Ports;
use toolgate_store::{AuditRow, Event};

use super::fetch::{self, Newer};
use crate::args::{PluginInstall, PluginRemove, PluginUpdate};
use crate::context;
use crate::exit::{Code, Failure};
use crate::operator;
use crate::output;
use crate::terminal::Terminal;

/// `plugin install REF`.
pub(super) async fn install(config: &Config, args: &PluginInstall) -> Result<(), Failure> {
    let found = fetch::found(config, &args.reference).await?;
    let offer = install::offer(config, found).map_err(|error| refused(&error))?;
    let terms = Terms {
        decisions: args.decisions.clone().unwrap_or_else(|| install::default_decisions(offer.release())),
        settings: args.settings.clone(),
        grants: args.grants.clone(),
        update: match args.update.as_deref() {
            Some("auto") => UpdateMode::Auto,
            None if config.plugins.update == Updates::Auto => UpdateMode::Auto,
            _ => UpdateMode::Ask,
        },
        allow_older: args.allow_older,
    };
    let installed = accept(config, &offer, &terms, args.yes, args.json)?;
    report(&installed, args.json)
}

/// `plugin update [NAME]`.
pub(super) async fn update(config: &Config, args: &PluginUpdate) -> Result<(), Failure> {
    if config.plugins.update == Updates::Never && args.from.is_none() {
        return Err(no_updates());
    }
    let layer = PluginsLayer::of(&config.data_dir);
    let all = layer.installed().map_err(context::config_failure)?;
    let chosen: Vec<Installed> =
        all.into_iter().filter(|one| args.name.as_ref().is_none_or(|name| *name == one.name)).collect();
    if let (Some(name), true) = (&args.name, chosen.is_empty()) {
        return Err(refused(&InstallError::NotInstalled(name.clone())));
    }
    let mut rows = Vec::new();
    let mut first_failure = None;
    for old in &chosen {
        match update_one(config, args, old).await {
            Ok(row) => rows.push(row),
            // One plugin that cannot be updated keeps no other from it.
            Err(failure) => {
                rows.push(json!({ "name": old.name, "state": "failed", "reason": failure.message }));
                first_failure.get_or_insert(failure);
            }
        }
    }
    if args.json {
        output::json(&json!({ "plugins": rows }))?;
    } else {
        for row in &rows {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
            output::line(format!("{}: {} {}", text("name"), text("state"), text("reason")).trim_end())?;
        }
    }
    first_failure.map_or(Ok(()), Err)
}

/// Updates are switched off.
pub(super) fn no_updates() -> Failure {
    Failure::usage("toolgate.yaml says `plugins.update: never`, so no newer release is looked for")
        .hint("change it there, or name the release with --from")
}

async fn update_one(config: &Config, args: &PluginUpdate, old: &Installed) -> Result<Value, Failure> {
    let row = |state: &str, reason: String| json!({ "name": old.name, "state": state, "reason": reason });
    let reference = args.from.as_deref().unwrap_or(&old.source);
    let min_age = if args.any_age { Duration::ZERO } else { config.plugins.min_age };
    let found = match fetch::newer(config, reference, old, min_age).await? {
        Newer::Found(found) => *found,
        Newer::Unchanged => return Ok(row("unchanged", format!("{} is the newest there", old.version))),
        Newer::Waits(reason) => return Ok(row("waits", reason)),
    };
    let offer = install::offer(config, found).map_err(|error| refused(&error))?;
    let stated = offer.release().release();
    if stated.name != old.name {
        return Err(Failure::integrity(format!("{reference} holds {}, not {}", stated.name, old.name)));
    }
    if offer.is_installed() {
        return Ok(row("unchanged", format!("{} is the newest there", old.version)));
    }
    if Duration::from_millis(offer.age_ms()) < min_age {
        return Ok(row("waits", fetch::too_young(&stated.version, min_age)));
    }
    let terms = Terms::of(old, args.allow_older);
    // `auto` is the operator's choice, and only for a release that may do no more than the one before.
    let unasked = args.yes || (old.update == UpdateMode::Auto && offer.wider.is_empty());
    let installed = accept(config, &offer, &terms, unasked, args.json)?;
    Ok(row("updated", format!("{} to {}", old.version, installed.version)))
}

/// `plugin remove NAME`. A policy that goes denies nothing any more, which widens.
pub(super) fn remove(config: &Config, args: &PluginRemove) -> Result<(), Failure> {
    let layer = PluginsLayer::of(&config.data_dir);
    let found = layer.installed_one(&args.name).map_err(context::config_failure)?;
    let installed = found.ok_or_else(|| refused(&InstallError::NotInstalled(args.name.clone())))?;
    if installed.kind == "policy" {
        let what = format!("remove the policy {}: what it denies will pass", args.name);
        let _ = operator::prove(config, &what)?;
    }
    install::remove(config, &args.name).map_err(|error| refused(&error))?;
    note(
        config,
        AuditRow::new(Event::PluginRemoved)
            .with("plugin", args.name.as_str())
            .with("release", installed.release.to_string()),
    )?;
    if args.json {
        return output::json(&json!({ "name": args.name, "state": "removed" }));
    }
    output::line(&format!("{} is removed; a running gateway drops it within a second", args.name))
}

/// Shows, asks, proves, compiles, installs.
fn accept(
    config: &Config,
    offer: &Offer,
    terms: &Terms,
    unasked: bool,
    quiet: bool,
) -> Result<Installed, Failure> {
    let stated = offer.release().release();
    let what = describe(offer, terms);
    if !unasked {
        confirm(&what)?;
    } else if !quiet {
        for line in &what {
            output::line(line)?;
        }
    }
    let proven = if offer.wider.is_empty() && offer.installed.is_some() && !terms.allow_older {
        None
    } else {
        let what = format!("install {} {}, which may do more than before", stated.name, stated.version);
        Some(operator::prove(config, &what)?)
    };
    let installed = compiled(config, offer, terms)?;
    let by = proven.as_ref().map_or_else(|| "no proof needed".to_owned(), operator::Proven::approver);
    note(config, install::row(&installed).with("approver", by))?;
    Ok(installed)
}

/// Compiling a large component takes seconds, so the terminal is told that it goes on.
fn compiled(config: &Config, offer: &Offer, terms: &Terms) -> Result<Installed, Failure> {
    let host = context::plugin_host(config, Ports::default())?;
    let started = Instant::now();
    let name = offer.release().release().name.clone();
    let ticking = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            tracing::warn!("compiling {name}: {} s so far", started.elapsed().as_secs());
        }
    });
    let outcome = tokio::task::block_in_place(|| install::commit(config, &host, offer, terms));
    ticking.abort();
    outcome.map_err(|error| refused(&error))
}

/// Everything that the operator should know before saying yes.
fn describe(offer: &Offer, terms: &Terms) -> Vec<String> {
    let release = offer.release();
    let stated = release.release();
    let mut lines = vec![
        format!("{} {} ({}, sequence {})", stated.name, stated.version, stated.kind, stated.sequence),
        format!("  component  {}", release.component()),
        format!("  release    {}", release.digest()),
    ];
    lines
        .extend(release.signers().iter().map(|signer| format!("  signed by  {signer} ({})", signer.words())));
    lines.push(format!("  published  {}", stated.published));
    lines.push(format!("  from       {}", offer.from()));
    match &offer.installed {
        Some(old) if offer.wider.is_empty() => {
            lines.push(format!("It may do no more than {} {}, which is installed.", old.name, old.version));
        }
        Some(old) => lines.push(format!("It may do what {} may not:", old.version)),
        None => lines.push("It may:".to_owned()),
    }
    lines.extend(offer.wider.iter().map(|power| format!("  - {}", power.words)));
    lines.push(format!(
        "Of its decisions these count: {}",
        if terms.decisions.is_empty() { "none".to_owned() } else { terms.decisions.join(", ") }
    ));
    lines
}

/// The question, at the terminal: a pipe could be an agent's.
fn confirm(what: &[String]) -> Result<(), Failure> {
    let refuse = |why: String| {
        Failure::new(Code::Denied, why).hint("read what it may do, then add --yes, or run it at a terminal")
    };
    let terminal = Terminal::open()
        .map_err(|_| refuse(format!("{}\nnobody is at a terminal to say yes", what.join("\n"))))?;
    let unusable = |error: std::io::Error| Failure::failed(format!("the terminal cannot be used: {error}"));
    for line in what {
        terminal.line(line).map_err(unusable)?;
    }
    let answer = terminal.answer("Install it? Type yes: ").map_err(unusable)?;
    if answer.as_deref() == Some("yes") { Ok(()) } else { Err(refuse("not installed".to_owned())) }
}

fn report(installed: &Installed, as_json: bool) -> Result<(), Failure> {
    if as_json {
        return output::json(&json!({
            "name": installed.name,
            "version": installed.version,
            "sequence": installed.sequence,
            "kind": installed.kind,
            "component": installed.component,
            "release": installed.release,
            "decisions": installed.decisions,
            "state": "installed",
        }));
    }
    output::line(&format!(
        "{} {} is installed; a running gateway takes it within a second",
        installed.name, installed.version
    ))
}

pub(super) fn note(config: &Config, row: AuditRow) -> Result<(), Failure> {
    // Dropping the store writes the row.
    context::store(config, "cli")?.append_detached(row);
    Ok(())
}

fn refused(error: &InstallError) -> Failure {
    let code = match error {
        error if error.is_integrity() => Code::Integrity,
        InstallError::Io { .. } => Code::Failed,
        _ => Code::Usage,
    };
    let failure = Failure::new(code, error);
    match error {
        InstallError::Older { .. } => failure.hint("if you mean it, add --allow-older"),
        _ => failure,
    }
}
