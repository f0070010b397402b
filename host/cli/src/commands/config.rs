//! `toolgate config …`: says what counts, and why.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use toolgate_config::{VariableSource, VariableUse};

use crate::args::ConfigCommand;
use crate::exit::Failure;
use crate::{context, operator, output};

/// Runs one verb.
pub(crate) async fn run(explicit: Option<&Path>, command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Check(args) => check(explicit, args.json),
        ConfigCommand::Show(args) => show(explicit, args.json),
        ConfigCommand::Env(args) => env(explicit, args.json),
        ConfigCommand::Schema => output::json(&toolgate_config::Config::json_schema()),
        ConfigCommand::Trust(args) => trust(args.file).await,
    }
}

fn check(explicit: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let config = context::quiet_config(explicit)?;
    let notices: Vec<String> = config.warnings.iter().map(ToString::to_string).collect();
    let file = config.path.as_ref().map(|path| path.display().to_string());
    if as_json {
        return output::json(&json!({
            "file": file, "servers": config.servers.len(), "personas": config.personas.len(), "notices": notices,
        }));
    }
    notices.iter().try_for_each(|notice| output::line(notice))?;
    let file = file.unwrap_or_else(|| "no configuration file: defaults".to_owned());
    output::line(&format!(
        "{file}: {}, {}, {}",
        output::count(config.servers.len(), "server"),
        output::count(config.personas.len(), "persona"),
        output::count(notices.len(), "notice")
    ))
}

fn show(explicit: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let masked = toolgate_config::masked(&config);
    if as_json {
        return output::json(&masked);
    }
    output::line(&serde_json::to_string_pretty(&masked).map_err(Failure::failed)?)
}

/// Every variable with its source, and 2 where one has none (SEC-006). Values are never printed.
fn env(explicit: Option<&Path>, as_json: bool) -> Result<(), Failure> {
    let config = context::quiet_config(explicit)?;
    let mut variables: BTreeMap<&str, Vec<&VariableUse>> = BTreeMap::new();
    for used in &config.variables {
        variables.entry(&used.name).or_default().push(used);
    }
    // A variable can have a fallback in one place and none in another.
    let source = |uses: &[&VariableUse]| match uses.iter().find(|used| used.source.is_none()) {
        Some(_) => None,
        None => uses.first().and_then(|used| used.source),
    };
    let missing: Vec<&str> =
        variables.iter().filter(|(_, uses)| source(uses).is_none()).map(|(name, _)| *name).collect();
    if as_json {
        let rows: Vec<_> = variables
            .iter()
            .map(|(name, uses)| {
                let places: Vec<String> = uses.iter().map(|used| used.place.to_string()).collect();
                json!({ "name": name, "source": source(uses).map(source_word), "used": places })
            })
            .collect();
        output::json(&json!({ "variables": rows, "missing": missing }))?;
    } else {
        let rows: Vec<Vec<String>> = variables
            .iter()
            .map(|(name, uses)| {
                let first = uses.first().map(|used| used.place.to_string()).unwrap_or_default();
                let more = uses.len().saturating_sub(1);
                let place = if more == 0 { first } else { format!("{first} and {more} more") };
                vec![(*name).to_owned(), source(uses).map_or("missing", source_word).to_owned(), place]
            })
            .collect();
        output::table(&["VARIABLE", "FROM", "USED"], &rows)?;
    }
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(", ");
    Err(Failure::usage(format!("{} without a value: {names}", output::count(missing.len(), "variable")))
        .hint("set it, store it with `toolgate secret set NAME`, or write ${NAME:-text}"))
}

fn source_word(source: VariableSource) -> &'static str {
    match source {
        VariableSource::Process => "environment",
        VariableSource::Secrets => "secrets.env",
        VariableSource::DotEnv => ".env",
        VariableSource::Fallback => "default",
    }
}

/// Records the digest of a file in the working directory, so that it counts as it is now.
async fn trust(file: Option<PathBuf>) -> Result<(), Failure> {
    let file = file.unwrap_or_else(|| PathBuf::from("toolgate.yaml"));
    let env = |name: &str| std::env::var(name).ok();
    let file = file
        .canonicalize()
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
    let config = context::config(Some(&file))?;
    let user_dir = toolgate_config::user_config_dir(&env).ok_or_else(|| {
        Failure::usage("neither XDG_CONFIG_HOME nor HOME is set, so trust has no place to be recorded")
    })?;
    // The proof of the user's own configuration: the file at hand may name any data directory.
    let what = format!("This lets {} count as a configuration, as it is now.", file.display());
    let proven = operator::prove(&context::own_config()?, &what)?;
    let recorded = toolgate_config::trust::record(&user_dir, &file).map_err(context::config_failure)?;
    let store = context::store(&config, "cli")?;
    let digest = recorded.config.parse().map_err(Failure::failed)?;
    let row = toolgate_store::AuditRow::config_trusted(&file.display().to_string(), &digest);
    let row = proven.on(row);
    store.append(row).await.map_err(context::store_failure)?;
    output::line(&format!("trusted {} as it is now; a change has to be trusted again", file.display()))
}
