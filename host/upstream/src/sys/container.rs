//! `docker run` and `podman run`: the command that is started is only a client, and killing it
//! leaves the container running (ST-17). So the engine is told where to write the container's id,
//! and the container is stopped by that id before the group is killed.
//!
//! The file is never an answer about a foreign container: it lies in a private directory made for
//! this start, and what it holds must look like an id, because it becomes an argument.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the id of the container of this start is found.
#[derive(Debug)]
pub(super) struct Container {
    engine: OsString,
    id_file: PathBuf,
    directory: PathBuf,
}

impl Container {
    /// Adds `--cidfile` to the arguments of a `docker run`, and nothing to any other command. A
    /// command that brings a `--cidfile` of its own is left alone: its operator looks after it.
    pub(super) fn plan(program: &OsStr, args: &mut Vec<OsString>) -> io::Result<Option<Self>> {
        let name = Path::new(program).file_name().and_then(OsStr::to_str);
        if !matches!(name, Some("docker" | "podman")) {
            return Ok(None);
        }
        let words: Vec<&str> = args.iter().take(2).filter_map(|word| word.to_str()).collect();
        let after_run = match words.as_slice() {
            ["run", ..] => 1,
            ["container", "run"] => 2,
            _ => return Ok(None),
        };
        let brings_own = args.iter().any(|word| {
            word.to_str().is_some_and(|word| word == "--cidfile" || word.starts_with("--cidfile="))
        });
        if brings_own {
            return Ok(None);
        }
        let random = toolgate_base::random_hex(16);
        let directory = std::env::temp_dir().join(format!("toolgate-{random}"));
        toolgate_base::files::create_private_dir(&directory)?;
        let id_file = directory.join("container-id");
        args.splice(after_run..after_run, ["--cidfile".into(), id_file.clone().into()]);
        Ok(Some(Self { engine: program.to_owned(), id_file, directory }))
    }

    /// `docker stop` for the container, if the engine has written its id.
    pub(super) fn stop_command(&self) -> Option<Command> {
        let id = std::fs::read_to_string(&self.id_file).ok()?;
        let id = id.trim();
        let is_id = (1..=128).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id {
            return None;
        }
        let mut command = Command::new(&self.engine);
        command.args(["stop", "-t", "1", id]);
        Some(command)
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.id_file);
        let _ = std::fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(list: &[&str]) -> Vec<OsString> {
        list.iter().map(Into::into).collect()
    }

    /// ST-17
    #[test]
    fn docker_run_gets_a_file_for_its_id_before_its_own_options() {
        let mut args = words(&["run", "-i", "--name", "x", "image", "cmd"]);
        let plan = Container::plan(OsStr::new("/usr/bin/docker"), &mut args).unwrap().unwrap();
        assert_eq!(args[0], "run");
        assert_eq!(args[1], "--cidfile");
        assert_eq!(args[3], "-i");
        assert!(plan.stop_command().is_none(), "nothing is stopped before there is an id");
        std::fs::write(&plan.id_file, "abc123\n").unwrap();
        let stop = plan.stop_command().unwrap();
        let stop: Vec<_> = stop.get_args().collect();
        assert_eq!(stop, ["stop", "-t", "1", "abc123"]);
        std::fs::write(&plan.id_file, "--all").unwrap();
        assert!(plan.stop_command().is_none(), "an option is no id");
        let directory = plan.directory.clone();
        drop(plan);
        assert!(!directory.exists());
    }

    #[test]
    fn other_commands_are_left_alone() {
        for (program, list) in [
            ("npx", &["run"][..]),
            ("docker", &["compose", "run"]),
            ("docker", &["run", "--cidfile=/x", "image"]),
        ] {
            let mut args = words(list);
            assert!(Container::plan(OsStr::new(program), &mut args).unwrap().is_none());
            assert_eq!(args, words(list));
        }
    }
}
