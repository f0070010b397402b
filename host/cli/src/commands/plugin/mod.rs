//! `toolgate plugin …`: one module for each verb; here is what several of them share.

mod build;
mod deny;
mod documents;
mod dry_run;
mod fetch;
mod inspect;
mod install;
mod list;
mod new;
mod publish;
mod rebuild;
mod refusal;
mod search;
mod sign;
mod test;
mod trust;
mod verify;

pub(crate) use publish::push;

use std::path::Path;

use serde_json::{Value, json};
use toolgate_config::{Config, Places};
use toolgate_gateway::assemble::{self, PluginFiles, Refusal, Wanted};
use toolgate_gateway::bundle;
use toolgate_plugins::{Admission, LoadErrorKind, Ports};
use toolgate_signing::{Kind, VerifiedRelease};

use crate::args::Plugin;
use crate::context;
use crate::exit::Failure;
use refusal::refused;

/// Runs one verb. An author's verbs need no configuration.
pub(crate) async fn run(explicit: Option<&Path>, command: &Plugin) -> Result<(), Failure> {
    let config = || context::config(explicit);
    match command {
        Plugin::New(args) => new::new(args),
        Plugin::Build(args) => build::build(args),
        Plugin::Test(args) => test::test(args),
        Plugin::Sign(args) => sign::run(args),
        Plugin::Publish(args) => publish::publish(args).await,
        Plugin::List(args) => list::list(&config()?, args.json),
        Plugin::Inspect(args) => inspect::inspect(&config()?, &args.plugin, args.json),
        Plugin::Verify(args) => verify::verify(&config()?, args),
        Plugin::Search(args) => search::search(&config()?, args).await,
        Plugin::Install(args) => install::install(&config()?, args).await,
        Plugin::Update(args) if args.dry_run => dry_run::dry_run(&config()?, args).await,
        Plugin::Update(args) => install::update(&config()?, args).await,
        Plugin::Remove(args) => install::remove(&config()?, args),
        Plugin::Deny(args) => deny::deny(&config()?, args),
        Plugin::Retry(args) => deny::retry(&config()?, args),
        Plugin::Trust(command) => trust::run(&config()?, command),
    }
}

/// Why an index gave nothing.
pub(crate) fn index_failure(config: &Config, error: &toolgate_gateway::indexes::IndexError) -> Failure {
    fetch::refused(config, error)
}

/// A verified release as a row of `plugin list`.
fn described(release: &VerifiedRelease) -> Value {
    let stated = release.release();
    json!({
        "name": stated.name,
        "version": stated.version.to_string(),
        "kind": stated.kind.as_str(),
        "state": "verified",
        "component": release.component().to_string(),
    })
}

/// The files of a name in the bundle or in `plugins.load`, or of a directory.
fn files(config: &Config, plugin: &str) -> Result<PluginFiles, Failure> {
    if let Some(files) = bundle::find(plugin) {
        return Ok(files);
    }
    let uses = assemble::uses(config, plugin).map_err(|refusal| refused(&refusal))?;
    if let Some(found) = uses.into_iter().next() {
        return Ok(found.wanted.files);
    }
    if Path::new(plugin).is_dir() {
        return PluginFiles::read(Path::new(plugin)).map_err(|refusal| refused(&refusal));
    }
    Err(Failure::usage(format!("{plugin} is neither a plugin of this configuration nor a directory"))
        .hint("see `toolgate plugin list`, or give the directory of component.wasm and release.dsse.json"))
}

/// Everything a load checks, compilation included, without putting the plugin in force.
fn checked(
    config: &Config,
    files: &PluginFiles,
    admission: &Admission,
    from: Option<(&str, u64)>,
    places: &Places,
) -> Result<VerifiedRelease, Refusal> {
    let release = files.verify(&config.plugins.trust)?;
    files.check_denied(config, &release, from)?;
    let host = context::plugin_host(config, Ports::default())
        .map_err(|error| Refusal::Entry { plugin: files.plugin.clone(), reason: error.message })?;
    match host.load(&files.component, &release, admission) {
        Ok(_) => Ok(release),
        Err(source) => Err(assemble::not_loaded(source, places)),
    }
}

/// As [`checked`], for an entry of its own. An adapter is given the settings and grants of each server that
/// uses it, so one that only misses those is what was signed.
fn checked_entry(config: &Config, wanted: &Wanted) -> Result<VerifiedRelease, Refusal> {
    checked_use(config, wanted).or_else(|refusal| {
        let release = wanted.files.verify(&config.plugins.trust)?;
        let is_adapter = release.release().kind == Kind::Adapter;
        let fits = match &refusal {
            Refusal::Settings { .. } => is_adapter,
            Refusal::Unloadable { source } => match source.kind {
                LoadErrorKind::NotConfigured(_) => true,
                LoadErrorKind::Ungranted { .. } => is_adapter,
                _ => false,
            },
            _ => false,
        };
        if fits { Ok(release) } else { Err(refusal) }
    })
}

/// As [`checked`], where it is in use: with the settings that it has there.
fn checked_use(config: &Config, wanted: &Wanted) -> Result<VerifiedRelease, Refusal> {
    checked(config, &wanted.files, &wanted.admission, wanted.from_index(), &wanted.places)
}

/// Whether nothing is wrong but that settings are missing which name what it works on.
fn misses_settings(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Unloadable { source } if matches!(source.kind, LoadErrorKind::NotConfigured(_)))
}

/// How many plugins the configuration wants, all of them verified and loadable.
pub(crate) fn all_verified(config: &Config) -> Result<usize, Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    for plugin in &wanted {
        checked_entry(config, plugin).map_err(|refusal| refused(&refusal))?;
    }
    for adapter in config.servers.values().filter_map(|server| server.adapter.as_ref()) {
        for used in assemble::uses(config, &adapter.plugin).map_err(|refusal| refused(&refusal))? {
            checked_use(config, &used.wanted).map_err(|refusal| refused(&refusal))?;
        }
    }
    Ok(wanted.len())
}
