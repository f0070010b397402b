//! `plugin new`: the project of a new plugin.

use std::path::{Path, PathBuf};

use serde_json::json;
use toolgate_kit::{Kind, Name, Project, ProjectError};

use crate::args::plugin::{PluginKind, PluginNew};
use crate::exit::Failure;
use crate::output;

/// Writes the project and says what to do next.
pub(super) fn new(args: &PluginNew) -> Result<(), Failure> {
    let kind = match args.kind {
        PluginKind::Policy => Kind::Policy,
        PluginKind::Installer => Kind::Installer,
        PluginKind::Adapter => Kind::Adapter,
    };
    let name = Name::parse(&args.name).map_err(Failure::usage)?;
    let directory = args.dir.clone().unwrap_or_else(|| PathBuf::from(name.short()));
    let project = Project::new(kind, &name, env!("CARGO_PKG_VERSION"));
    project.write(&directory).map_err(|error| match error {
        ProjectError::NotEmpty(_) => Failure::usage(&error).hint("choose another with --dir DIR"),
        ProjectError::Io { .. } => Failure::failed(&error),
    })?;
    if args.json {
        let files: Vec<&str> = project.files().map(|(name, _)| name).collect();
        return output::json(&json!({
            "name": name.to_string(),
            "kind": kind.word(),
            "directory": directory,
            "files": files,
        }));
    }
    told(kind, &name, &directory)
}

fn told(kind: Kind, name: &Name, directory: &Path) -> Result<(), Failure> {
    let shown = directory.display();
    output::line(&format!("wrote the {} {name} into {shown}", kind.word()))?;
    output::line("next:")?;
    output::line(&format!("  toolgate plugin build {shown}    compiles it"))?;
    output::line(&format!("  toolgate plugin test {shown}     asks it every document of {shown}/documents"))?;
    output::line(&format!("  {shown}/README.md says what is where"))
}
