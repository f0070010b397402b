//! The directory of a quickstart: a configuration, notes for the demo server, and a plugin to damage.

use std::fs;
use std::path::{Path, PathBuf};

use toolgate_downstream::local::Claim;

use crate::context;
use crate::exit::Failure;

/// Marks a directory as one that quickstart may replace.
const MARK: &str = ".toolgate-quickstart";

/// Where everything of a run is.
pub(crate) struct Place {
    pub(crate) dir: PathBuf,
    pub(crate) config: PathBuf,
    pub(crate) notes: PathBuf,
    /// Once this file exists the second demo server tells another story.
    pub(crate) story: PathBuf,
}

impl Place {
    /// Makes the directory; one that quickstart made before is replaced, any other is left alone.
    pub(crate) fn make(dir: &Path) -> Result<Self, Failure> {
        if dir.exists() {
            let ours = dir.join(MARK).exists();
            let empty = fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none());
            if !ours && !empty {
                return Err(Failure::usage(format!(
                    "{} is not empty and not a quickstart directory",
                    dir.display()
                ))
                .hint("name another directory with --dir"));
            }
            free(dir)?;
            fs::remove_dir_all(dir).map_err(|error| unwritable(dir, &error))?;
        }
        toolgate_base::files::create_private_dir(dir).map_err(|error| unwritable(dir, &error))?;
        let dir = dir.canonicalize().map_err(|error| unwritable(dir, &error))?;
        let place = Self {
            config: dir.join("toolgate.yaml"),
            notes: dir.join("notes"),
            story: dir.join("story-changed"),
            dir,
        };
        place.fill()?;
        Ok(place)
    }

    fn fill(&self) -> Result<(), Failure> {
        let write = |path: &Path, text: &str| {
            toolgate_base::files::write_private(path, text.as_bytes())
                .map_err(|error| unwritable(path, &error))
        };
        write(&self.dir.join(MARK), "made by `toolgate quickstart`, which may replace this directory\n")?;
        write(&self.notes.join("welcome.md"), "Toolgate stands between an agent and its tools.\n")?;
        write(&self.notes.join("old.md"), "Nobody needs this any more.\n")?;
        write(&self.config, &self.configuration()?)
    }

    fn configuration(&self) -> Result<String, Failure> {
        let program = context::own_program()?;
        let text = |path: &Path| serde_json::Value::from(path.display().to_string()).to_string();
        let (program, notes, story) = (text(&program), text(&self.notes), text(&self.story));
        Ok(format!(
            r#"# Written by `toolgate quickstart`.
data_dir: ./data
servers:
  notes:
    command: {program}
    args: ["__demo", {notes}, {never}]
    adapter: {{ plugin: toolgate/filesystem, settings: {{ roots: [{notes}] }} }}
  fickle:
    command: {program}
    args: ["__demo", {notes}, {story}]
approvals: {{ hold: 0s }}
personas:
  default:
    servers: [notes, fickle]
    capabilities:
      allow: ["mcp.call:notes/read_note", "mcp.call:fickle/read_note"]
      require_approval: ["mcp.call:notes/write_note"]
"#,
            never = text(&self.dir.join("story-never")),
        ))
    }

    /// Writes the bytes of a plugin of the bundle, one bit of its component flipped.
    pub(crate) fn damaged_plugin(&self) -> Result<PathBuf, Failure> {
        use toolgate_gateway::assemble::{COMPONENT_FILE, RELEASE_FILE};
        let files = toolgate_gateway::bundle::find("toolgate/capabilities")
            .ok_or_else(|| Failure::failed("the bundle has no toolgate/capabilities"))?;
        let dir = self.dir.join("damaged-plugin");
        let mut component = files.component.to_vec();
        let middle = component.len() / 2;
        if let Some(byte) = component.get_mut(middle) {
            *byte ^= 1;
        }
        for (name, bytes) in [(COMPONENT_FILE, component.as_slice()), (RELEASE_FILE, &files.release)] {
            let path = dir.join(name);
            toolgate_base::files::write_private(&path, bytes).map_err(|error| unwritable(&path, &error))?;
        }
        Ok(dir)
    }
}

/// Refuses where a gateway serves the directory: it would go on with files that nobody sees any more.
fn free(dir: &Path) -> Result<(), Failure> {
    match Claim::serving(&dir.join("data")).map_err(Failure::failed)? {
        None => Ok(()),
        Some(pid) => Err(Failure::failed(format!(
            "process {pid} serves {}, so the directory is not replaced",
            dir.join("data").display()
        ))
        .hint(format!("close its clients and stop it (kill {pid}), or name another directory with --dir"))),
    }
}

pub(crate) fn unwritable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("{} cannot be written: {error}", path.display()))
}
