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

use std::path::Path;

use serde_json::{Value, json};
use toolgate_config::{Config, Places};
use toolgate_gateway::assemble::{self, PluginFiles, Refusal};
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

/// Everything a load checks, compilation included, without putting the plugin in force. An adapter
/// that only misses the settings of a server is what was signed.
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
        Err(error) if matches!(error.kind, LoadErrorKind::NotConfigured(_)) => Ok(release),
        Err(error)
            if matches!(error.kind, LoadErrorKind::SettingsRefused(_))
                && release.release().kind == Kind::Adapter =>
        {
            Ok(release)
        }
        Err(source) => Err(assemble::not_loaded(source, places)),
    }
}

/// How many plugins the configuration wants, all of them verified and loadable.
pub(crate) fn all_verified(config: &Config) -> Result<usize, Failure> {
    let wanted = assemble::wanted(config).map_err(|refusal| refused(&refusal))?;
    for plugin in &wanted {
        checked(config, &plugin.files, &plugin.admission, plugin.from_index(), &plugin.places)
            .map_err(|refusal| refused(&refusal))?;
    }
    Ok(wanted.len())
}
