//! Where the project's files are, and how its own commands are run.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::metadata::Metadata;

/// The checked-out tree.
pub(crate) struct Project {
    root: PathBuf,
}

impl Project {
    /// The tree that this program was compiled in.
    pub(crate) fn here() -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        Ok(Self { root: root.canonicalize()? })
    }

    /// An absolute path inside the tree.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The path of a file as it is written in messages.
    pub(crate) fn relative<'a>(&self, path: &'a Path) -> &'a Path {
        path.strip_prefix(&self.root).unwrap_or(path)
    }

    /// What `cargo metadata` says of a workspace of the tree (`.` or `plugins`). Nothing is
    /// fetched that the lock file does not name.
    pub(crate) fn metadata(&self, workspace: &str, platform: &str) -> Outcome<Metadata> {
        let mut command = Command::new(cargo());
        command.current_dir(self.path(workspace)).args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            platform,
        ]);
        Ok(serde_json::from_slice(&output(&mut command)?)?)
    }

    /// The files that git tracks or would track, relative, sorted; those ending with one of `ends`.
    pub(crate) fn files(&self, ends: &[&str]) -> Outcome<Vec<String>> {
        let mut command = Command::new("git");
        command.current_dir(&self.root).args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]);
        let listed = String::from_utf8(output(&mut command)?)?;
        let mut files: Vec<String> = listed
            .split('\0')
            .filter(|file| ends.iter().any(|end| file.ends_with(end)) && self.path(file).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }
}

/// The cargo that runs this program.
pub(crate) fn cargo() -> String {
    std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// What a command prints; its own words where it fails.
pub(crate) fn output(command: &mut Command) -> Outcome<Vec<u8>> {
    let done = command.output().map_err(|fault| format!("cannot run {command:?}: {fault}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(format!("{command:?} failed ({}): {}", done.status, said.trim()).into())
}
