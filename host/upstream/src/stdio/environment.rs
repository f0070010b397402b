//! What a child inherits: a short list of harmless variables and its entry's own (ST-18), and
//! where its command is found.
//!
//! The threat is quiet: a shell that holds cloud keys starts Toolgate, and every server would
//! read them. So nothing is passed that is not on the list.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use toolgate_base::Secret;

use crate::error::ConnectError;

/// Variables a child may see. They say where things are and how to write text; none is a secret.
/// `XDG_RUNTIME_DIR` is among them because rootless podman does not start without it.
const INHERITED: [&str; 10] =
    ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER", "XDG_RUNTIME_DIR"];

/// The whole environment of a child: the allowed part of `host`, then the entry's own variables.
pub(crate) fn child_environment(
    host: impl Iterator<Item = (OsString, OsString)>,
    own: &[(String, Secret)],
) -> BTreeMap<OsString, OsString> {
    let allowed =
        |name: &OsStr| name.to_str().is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"));
    let mut all: BTreeMap<_, _> = host.filter(|(name, _)| allowed(name)).collect();
    for (name, value) in own {
        all.insert(name.into(), value.expose().into());
    }
    all
}

/// The file that `program` names in the environment and directory the child will have. A name
/// without a slash is searched in its `PATH`; an error says which directories were looked at.
pub(crate) fn find_program(
    server: &str,
    program: &str,
    environment: &BTreeMap<OsString, OsString>,
    cwd: Option<&Path>,
) -> Result<PathBuf, ConnectError> {
    let missing = |detail: String| ConnectError::CommandNotFound {
        server: server.to_owned(),
        program: program.to_owned(),
        detail,
    };
    let base = match cwd {
        Some(cwd) => std::path::absolute(cwd),
        None => std::env::current_dir(),
    }
    .map_err(|error| missing(format!("the working directory is unusable: {error}")))?;
    if !base.is_dir() {
        return Err(missing(format!("the working directory {} does not exist", base.display())));
    }
    if program.is_empty() {
        return Err(missing("it is empty".to_owned()));
    }
    if program.contains('/') {
        let path = base.join(program);
        return if is_executable(&path) {
            Ok(path)
        } else {
            Err(missing(format!("{} is no executable file", path.display())))
        };
    }
    let Some(search) = environment.get(OsStr::new("PATH")) else {
        return Err(missing("PATH is not set".to_owned()));
    };
    std::env::split_paths(search)
        .map(|directory| base.join(directory).join(program))
        .find(|path| is_executable(path))
        .ok_or_else(|| missing(format!("PATH searched: {}", search.to_string_lossy())))
}

fn is_executable(path: &Path) -> bool {
    crate::sys::is_executable_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> impl Iterator<Item = (OsString, OsString)> {
        let owned: Vec<_> = list.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
        owned.into_iter()
    }

    /// ST-18
    #[test]
    fn a_child_sees_the_allowed_variables_and_its_own_only() {
        let host = [
            ("AWS_SECRET_ACCESS_KEY", "zzz"),
            ("PATH", "/bin"),
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("LD_PRELOAD", "/evil.so"),
        ];
        let own = [("A".to_owned(), Secret::new("1")), ("HOME".to_owned(), Secret::new("/x"))];
        let all = child_environment(pairs(&host), &own);
        let expected: BTreeMap<_, _> =
            pairs(&[("A", "1"), ("HOME", "/x"), ("LC_ALL", "C"), ("PATH", "/bin")]).collect();
        assert_eq!(all, expected);
    }

    #[test]
    fn a_missing_command_says_where_it_was_searched() {
        let environment = pairs(&[("PATH", "/nowhere:/bin")]).collect();
        let error = find_program("s", "no-such-command-here", &environment, None).unwrap_err();
        assert!(error.to_string().contains("/nowhere:/bin"), "{error}");
        let found = find_program("s", "sh", &environment, None).unwrap();
        assert_eq!(found, Path::new("/bin/sh"));
    }

    #[test]
    fn a_missing_working_directory_is_named() {
        let environment = pairs(&[("PATH", "/bin")]).collect();
        let cwd = Path::new("/no/such/dir");
        let error = find_program("s", "sh", &environment, Some(cwd)).unwrap_err();
        assert!(error.to_string().contains("/no/such/dir"), "{error}");
    }
}
