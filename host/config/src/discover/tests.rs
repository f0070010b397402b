use super::*;
use crate::testing::{Home, all, set_mode};
use crate::{load, trust};

const EMPTY: &str = "personas: {}\n";

#[test]
fn no_file_at_all_is_fine() {
    let home = Home::new();
    let found = home.discover(None).unwrap();
    assert_eq!((found.path, found.found_by), (None, FoundBy::Defaults));
    assert_eq!(found.config_dir, home.user_dir());
    let config = home.load().unwrap();
    assert_eq!(config.data_dir, home.data_dir());
    assert_eq!(config.personas.keys().collect::<Vec<_>>(), ["default"]);
    assert!(config.warnings.is_empty());
}

#[test]
fn the_argument_stands_before_the_variable_and_the_variable_before_the_user_directory() {
    let mut home = Home::with_config(EMPTY);
    assert_eq!(home.discover(None).unwrap().found_by, FoundBy::UserDirectory);
    let named = home.write("other/b.yaml", EMPTY);
    home.set("TOOLGATE_CONFIG", named.to_str().unwrap());
    let found = home.discover(None).unwrap();
    assert_eq!((found.path.as_ref(), found.found_by), (Some(&named), FoundBy::Environment));
    assert_eq!(found.config_dir, home.path("other"));
    let argument = home.write("work/a.yaml", EMPTY);
    let found = home.discover(Some(Path::new("a.yaml"))).unwrap();
    assert_eq!((found.path, found.found_by), (Some(argument), FoundBy::Argument));
    home.set("TOOLGATE_CONFIG", "");
    assert_eq!(home.discover(None).unwrap().found_by, FoundBy::UserDirectory);
}

#[test]
fn a_named_file_that_is_missing_is_an_error_that_says_who_named_it() {
    let mut home = Home::with_config(EMPTY);
    let told = home.discover(Some(Path::new("none.yaml"))).unwrap_err().to_string();
    assert!(told.contains("--config") && told.contains("none.yaml"), "{told}");
    home.set("TOOLGATE_CONFIG", "/none.yaml");
    assert!(home.discover(None).unwrap_err().to_string().contains("$TOOLGATE_CONFIG"));
}

#[test]
fn xdg_directories_count_only_if_they_are_absolute() {
    let mut home = Home::new();
    let elsewhere = home.path("xdg");
    let file = home.write("xdg/toolgate/toolgate.yaml", EMPTY);
    home.set("XDG_CONFIG_HOME", elsewhere.to_str().unwrap()).set("XDG_DATA_HOME", "relative");
    let found = home.discover(None).unwrap();
    assert_eq!(found.path, Some(file));
    assert_eq!(home.load().unwrap().data_dir, home.data_dir());
    home.set("XDG_DATA_HOME", "/data");
    assert_eq!(home.load().unwrap().data_dir, Path::new("/data/toolgate"));
}

#[test]
fn the_search_says_where_it_looked_fp_21() {
    let home = Home::with_config(EMPTY);
    let found = home.discover(None).unwrap();
    let looked: Vec<(PathBuf, &str)> = found.looked_at.into_iter().map(|at| (at.path, at.outcome)).collect();
    assert_eq!(
        looked,
        [
            (home.path("work/toolgate.yaml"), "no file"),
            (home.user_dir().join("toolgate.yaml"), "used: the user's configuration")
        ]
    );
}

#[test]
fn an_untrusted_file_in_the_working_directory_is_named_and_never_used() {
    let home = Home::new();
    // Not even read: it is no YAML, and its .env no env file.
    home.write("work/toolgate.yaml", "servers: {evil: {command: sh}}\n: [");
    home.write("work/.env", "A=from-a-stranger\n");
    let config = home.load().unwrap();
    assert_eq!(config.path, None);
    assert!(config.servers.is_empty());
    let told = all(&config.warnings);
    assert!(
        told.contains("work/toolgate.yaml is not used") && told.contains("toolgate config trust"),
        "{told}"
    );
}

#[test]
fn a_dotenv_beside_an_untrusted_file_fills_nothing() {
    let home = Home::with_config("servers: {a: {command: x, env: {A: \"${A}\"}}}\n");
    home.write("work/.env", "A=from-a-stranger\n");
    let told = all(&home.load().unwrap().warnings);
    assert!(told.contains("variable A is not set"), "{told}");
}

#[test]
fn a_trusted_file_counts_with_its_dotenv_and_stands_before_the_users_own() {
    let home = Home::with_config(EMPTY);
    let file = home.write("work/toolgate.yaml", "servers: {a: {command: \"${PROGRAM}\"}}\n");
    home.write("work/.env", "PROGRAM=tool\n");
    trust::record(&home.user_dir(), &file).unwrap();
    let found = home.discover(None).unwrap();
    assert_eq!((found.path.as_ref(), found.found_by), (Some(&file), FoundBy::WorkingDirectory));
    assert_eq!(found.config_dir, home.user_dir(), "no secret lands in a repository");
    assert!(home.load().unwrap().servers.contains_key("a"));
}

#[test]
fn a_file_that_changed_after_it_was_trusted_is_refused() {
    let home = Home::with_config(EMPTY);
    let file = home.write("work/toolgate.yaml", EMPTY);
    trust::record(&home.user_dir(), &file).unwrap();
    for (name, text) in [("toolgate.yaml", "personas: {x: {}}\n"), (".env", "LD_PRELOAD=x\n")] {
        let changed = home.write(&format!("work/{name}"), text);
        let error = home.load().unwrap_err();
        assert!(matches!(error, ConfigError::ChangedAfterTrust { .. }), "{error}");
        assert!(error.to_string().contains("toolgate config trust"), "{error}");
        if name == "toolgate.yaml" {
            home.write("work/toolgate.yaml", EMPTY);
        } else {
            std::fs::remove_file(changed).unwrap();
        }
        assert!(home.load().is_ok());
    }
    std::fs::remove_file(&file).unwrap();
    assert_eq!(home.discover(None).unwrap().found_by, FoundBy::UserDirectory);
}

#[test]
fn what_is_loaded_is_what_was_judged() {
    let home = Home::with_config("servers: {a: {command: x}}\n");
    let found = home.discover(None).unwrap();
    home.write(".config/toolgate/toolgate.yaml", "servers: {b: {command: x}}\n");
    let config = load(&found, &|_| None).unwrap();
    assert_eq!(config.servers.keys().collect::<Vec<_>>(), ["a"]);
}

#[cfg(unix)]
#[test]
fn what_others_can_write_is_refused() {
    let home = Home::with_config(EMPTY);
    let file = home.user_dir().join("toolgate.yaml");
    for mode in [0o620, 0o602, 0o666] {
        set_mode(&file, mode);
        let error = home.load().unwrap_err();
        assert!(matches!(error, ConfigError::WritableByOthers { .. }), "{error}");
        assert!(error.to_string().contains("chmod go-w"), "{error}");
    }
    set_mode(&file, 0o644);
    assert!(home.load().is_ok());
    home.write(".config/toolgate/.env", "A=b\n");
    set_mode(&home.user_dir().join(".env"), 0o666);
    assert!(home.load().is_err());
}

#[cfg(unix)]
#[test]
fn a_data_directory_that_others_can_write_is_refused() {
    let home = Home::new();
    std::fs::create_dir_all(home.data_dir()).unwrap();
    set_mode(&home.data_dir(), 0o777);
    let error = home.load().unwrap_err();
    assert!(matches!(error, ConfigError::WritableByOthers { .. }), "{error}");
    set_mode(&home.data_dir(), 0o755);
    assert!(home.load().is_ok());
}

#[test]
fn a_file_without_end_is_not_read_whole() {
    let home = Home::with_config(&"#".repeat(1024 * 1024 + 1));
    assert!(matches!(home.load().unwrap_err(), ConfigError::TooLarge { .. }));
}

#[test]
fn found_shows_no_text_of_the_file() {
    let home = Home::with_config("servers: {a: {command: x, env: {T: sk-9f}}}\n");
    assert!(!format!("{:?}", home.discover(None).unwrap()).contains("sk-9f"));
}
