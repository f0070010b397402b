#![cfg(unix)]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::{create_private_dir, is_writable_by_others, open_private_append, write_private};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_private_file_is_0600_in_directories_of_0700_se_09() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("a/b/token.json");
    write_private(&path, b"one").unwrap();
    write_private(&path, b"two").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"two");
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&root.path().join("a")), 0o700);
    assert_eq!(mode(&root.path().join("a/b")), 0o700);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left behind");
}

#[test]
fn a_wide_file_becomes_private_when_it_is_written_again() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("state");
    fs::write(&path, "old").unwrap();
    set_mode(&path, 0o666);
    write_private(&path, b"new").unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_link_at_the_target_is_replaced_and_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let victim = root.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let path = root.path().join("state");
    symlink(&victim, &path).unwrap();
    write_private(&path, b"new").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"untouched");
    assert_eq!(fs::read(&path).unwrap(), b"new");
}

#[test]
fn a_failed_write_leaves_the_old_content_and_no_temporary_file() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("taken");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("inside"), "x").unwrap();
    assert!(write_private(&path, b"new").is_err());
    assert!(write_private(Path::new("/"), b"new").is_err());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn an_existing_directory_loses_the_access_of_others() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("data");
    fs::create_dir(&path).unwrap();
    set_mode(&path, 0o755);
    create_private_dir(&path).unwrap();
    assert_eq!(mode(&path), 0o700);
    let file = root.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(create_private_dir(&file).is_err());
}

#[test]
fn appending_makes_a_private_file_and_keeps_what_is_there() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("log");
    open_private_append(&path).unwrap().write_all(b"a").unwrap();
    open_private_append(&path).unwrap().write_all(b"b").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"ab");
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_file_that_others_can_write_is_told_from_one_they_cannot() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("toolgate.yaml");
    fs::write(&path, "x").unwrap();
    for (bits, expected) in [(0o600, false), (0o644, false), (0o664, true), (0o646, true)] {
        set_mode(&path, bits);
        assert_eq!(is_writable_by_others(&path).unwrap(), expected, "{bits:o}");
    }
    set_mode(&path, 0o600);
    set_mode(root.path(), 0o777);
    assert!(is_writable_by_others(&path).unwrap(), "the file can be replaced");
    set_mode(root.path(), 0o1777);
    assert!(!is_writable_by_others(&path).unwrap(), "the sticky bit protects it");
    assert!(is_writable_by_others(&root.path().join("none")).is_err());
}

#[test]
fn a_new_file_never_replaces_one_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    super::create_private(&path, b"first").unwrap();
    let refused = super::create_private(&path, b"second").unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read(&path).unwrap(), b"first");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
}
