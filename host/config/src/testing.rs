//! A home directory of its own for each test, with files in it and an environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::{Config, ConfigError, Found, Notice, discover, load};

pub(crate) struct Home {
    dir: TempDir,
    pub(crate) env: BTreeMap<String, String>,
}

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let env = BTreeMap::from([("HOME".to_owned(), dir.path().to_str().unwrap().to_owned())]);
        let home = Self { dir, env };
        std::fs::create_dir_all(home.path("work")).unwrap();
        home
    }

    /// With this text as the user's configuration.
    pub(crate) fn with_config(text: &str) -> Self {
        let home = Self::new();
        home.write(".config/toolgate/toolgate.yaml", text);
        home
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.dir.path().join(relative)
    }

    pub(crate) fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
        path
    }

    pub(crate) fn data_dir(&self) -> PathBuf {
        self.path(".local/share/toolgate")
    }

    pub(crate) fn user_dir(&self) -> PathBuf {
        self.path(".config/toolgate")
    }

    pub(crate) fn discover(&self, explicit: Option<&Path>) -> Result<Found, ConfigError> {
        discover(explicit, &|name| self.env.get(name).cloned(), &self.path("work"))
    }

    pub(crate) fn load(&self) -> Result<Config, ConfigError> {
        let found = self.discover(None)?;
        load(&found, &|name| self.env.get(name).cloned())
    }
}

#[cfg(unix)]
pub(crate) fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_path: &Path, _mode: u32) {}

/// Loads one text as the user's configuration.
pub(crate) fn config(text: &str) -> Config {
    Home::with_config(text).load().unwrap_or_else(|error| panic!("{error}"))
}

/// What loading one text says, with the path of the file cut to its name.
pub(crate) fn refusal(text: &str) -> String {
    let home = Home::with_config(text);
    let told = home.load().expect_err("this configuration must be refused").to_string();
    told.replace(&format!("{}/", home.user_dir().display()), "")
}

pub(crate) fn all(notices: &[Notice]) -> String {
    let lines: Vec<String> = notices.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
