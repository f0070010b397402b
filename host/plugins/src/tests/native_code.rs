use std::fs;
use std::path::{Path, PathBuf};

use toolgate_plugins::{Admission, HostOptions, LoadError, Plugin, PluginHost};
use toolgate_signing::Kind;

use super::guests::{call_policy, release, says, signed};

/// Loads the same policy with a cache in `directory`; says how often it compiled and replaced.
fn load_with(directory: &Path, case: u32) -> (Result<Plugin, LoadError>, u64, u64) {
    let guest = call_policy(&says(case));
    let host = PluginHost::new(HostOptions { cache_dir: Some(directory.to_owned()) }).unwrap();
    let loaded = host.load(&guest, &signed(&release(Kind::Policy, &guest), &guest), &Admission::default());
    (loaded, host.compilations(), host.cache_replacements())
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(entries(&path));
        } else if path.extension().is_some_and(|extension| extension == "cwasm") {
            found.push(path);
        }
    }
    found
}

fn the_entry(directory: &Path) -> PathBuf {
    let found = entries(directory);
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn code_is_compiled_once_and_then_read() {
    let directory = tempfile::tempdir().unwrap();
    let (first, compiled, _) = load_with(directory.path(), 0);
    assert!(first.is_ok() && compiled == 1);
    let (second, compiled, replaced) = load_with(directory.path(), 0);
    assert!(second.is_ok());
    assert_eq!((compiled, replaced), (0, 0));
}

#[test]
fn a_damaged_entry_is_compiled_again_and_replaced_wa_01() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), 0).0.unwrap();
    let entry = the_entry(directory.path());
    let good = fs::read(&entry).unwrap();
    let mut flipped = good.clone();
    let last = flipped.len() - 1;
    *flipped.get_mut(last).unwrap() ^= 1;
    let mut foreign_tag = good.clone();
    *foreign_tag.get_mut(20).unwrap() ^= 1;
    let cut = good[..good.len() / 2].to_vec();
    let native = wasmtime::Engine::default().precompile_component(&call_policy(&says(0))).unwrap();
    for bad in [flipped, foreign_tag, cut, native, b"random bytes with the right name".to_vec(), Vec::new()] {
        fs::write(&entry, bad).unwrap();
        let (loaded, compiled, replaced) = load_with(directory.path(), 0);
        assert!(loaded.is_ok());
        assert_eq!((compiled, replaced), (1, 1));
        assert_eq!(load_with(directory.path(), 0).1, 0, "the entry was not replaced");
    }
}

#[test]
fn an_entry_of_another_engine_or_component_is_a_miss_wa_01() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), 0).0.unwrap();
    let entry = the_entry(directory.path());
    // As if another version had written it: the same entry under another engine's directory.
    let stale = directory.path().join("0".repeat(64));
    fs::create_dir(&stale).unwrap();
    fs::rename(&entry, stale.join(entry.file_name().unwrap())).unwrap();
    assert_eq!(load_with(directory.path(), 0).1, 1);
    // An entry of one component under the name of another: this policy would say something else.
    let other_directory = tempfile::tempdir().unwrap();
    fs::copy(directory.path().join("key"), other_directory.path().join("key")).unwrap();
    load_with(other_directory.path(), 3).0.unwrap();
    fs::copy(the_entry(other_directory.path()), &entry).unwrap();
    let (loaded, compiled, replaced) = load_with(directory.path(), 0);
    assert!(loaded.is_ok());
    assert_eq!((compiled, replaced), (1, 1));
}

#[test]
fn an_entry_of_another_installation_is_a_miss_wa_01() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    load_with(one.path(), 0).0.unwrap();
    load_with(two.path(), 0).0.unwrap();
    fs::copy(the_entry(one.path()), the_entry(two.path())).unwrap();
    let (loaded, compiled, replaced) = load_with(two.path(), 0);
    assert!(loaded.is_ok());
    assert_eq!((compiled, replaced), (1, 1));
}

#[test]
fn a_lost_or_foreign_key_costs_a_compilation_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    load_with(directory.path(), 0).0.unwrap();
    fs::write(directory.path().join("key"), b"short").unwrap();
    let (loaded, compiled, replaced) = load_with(directory.path(), 0);
    assert!(loaded.is_ok());
    assert_eq!((compiled, replaced), (1, 1));
    assert_eq!(load_with(directory.path(), 0).1, 0);
}

#[cfg(unix)]
#[test]
fn key_and_code_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let cache = directory.path().join("aot");
    load_with(&cache, 0).0.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&cache), 0o700);
    assert_eq!(mode(&cache.join("key")), 0o600);
    assert_eq!(mode(&the_entry(&cache)), 0o600);
}

#[test]
fn without_a_usable_directory_plugins_load_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let (loaded, compiled, _) = load_with(&file, 0);
    assert!(loaded.is_ok());
    assert_eq!(compiled, 1);
}
