use std::fs;
use std::os::unix::fs::symlink;

use tempfile::TempDir;
use toolgate_grants::FilesGrant;
use toolgate_signing::FilesCapability;
use wasmtime::component::Resource;

use super::super::testing::{again, open};
use super::*;
use crate::ports::Ports;
use crate::state::Phase;

/// A directory `in` with a file, and a secret beside it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("in/sub")).unwrap();
        fs::write(dir.path().join("in/a.txt"), "0123456789").unwrap();
        fs::write(dir.path().join("secret"), "s3cret").unwrap();
        Self(dir)
    }

    fn inside(&self, name: &str) -> PathBuf {
        self.0.path().join("in").join(name)
    }

    fn state(&self, access: Access) -> State {
        open(toolgate_signing::Kind::Adapter, &Ports::default(), "{}", |release, grants| {
            release.capabilities.files.insert("work".into(), FilesCapability { access, settings: None });
            let directories = vec![self.0.path().join("in")];
            grants.files.insert("work".into(), FilesGrant { directories, access: None });
        })
        .unwrap()
    }

    fn locate(&self, path: &str) -> Option<String> {
        let path = self.inside(path).to_str().unwrap().to_owned();
        self.state(Access::Read).locate("work".into(), path).unwrap().unwrap()
    }
}

fn dir(state: &mut State) -> Resource<Directory> {
    HostDir::open(state, "work".into()).unwrap().unwrap()
}

fn read_of(state: &mut State, dir: &Resource<Directory>, path: &str) -> Result<Vec<u8>, Error> {
    HostDir::read(state, again(dir), path.into(), 0, 100).unwrap()
}

#[test]
fn works_below_a_directory_that_is_granted() {
    let place = Place::new();
    let mut state = place.state(Access::Write);
    let dir = dir(&mut state);
    assert_eq!(read_of(&mut state, &dir, "a.txt").unwrap(), b"0123456789");
    assert_eq!(HostDir::read(&mut state, again(&dir), "a.txt".into(), 8, 5).unwrap().unwrap(), b"89");
    let stat = state.stat(again(&dir), "a.txt".into()).unwrap().unwrap();
    assert!(matches!(stat.kind, Kind::File) && stat.size == 10);
    HostDir::write(&mut state, again(&dir), "sub/b".into(), b"new".to_vec()).unwrap().unwrap();
    assert_eq!(fs::read(place.inside("sub/b")).unwrap(), b"new");
    state.make_dir(again(&dir), "more".into()).unwrap().unwrap();
    let page = HostDir::entries(&mut state, again(&dir), ".".into(), None).unwrap().unwrap();
    let names: Vec<_> = page.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a.txt", "more", "sub"]);
    state.remove(again(&dir), "more".into()).unwrap().unwrap();
    assert!(matches!(state.stat(again(&dir), "more".into()).unwrap(), Err(Error::NotFound(_))));
    assert!(read_of(&mut state, &dir, "sub").is_err(), "a directory is no file");
}

#[test]
fn a_symlink_out_of_the_directory_is_denied() {
    let place = Place::new();
    symlink("../secret", place.inside("relative")).unwrap();
    symlink(place.0.path().join("secret"), place.inside("absolute")).unwrap();
    symlink(place.0.path(), place.inside("up")).unwrap();
    symlink("a.txt", place.inside("fine")).unwrap();
    let mut state = place.state(Access::Write);
    let dir = dir(&mut state);
    for path in ["relative", "absolute", "up/secret", "up"] {
        let said = read_of(&mut state, &dir, path);
        assert!(matches!(said, Err(Error::Denied(_))), "{path}: {said:?}");
        assert!(state.stat(again(&dir), path.into()).unwrap().is_err(), "{path}");
    }
    assert_eq!(read_of(&mut state, &dir, "fine").unwrap(), b"0123456789");
    // Writing over a link replaces the link.
    HostDir::write(&mut state, again(&dir), "relative".into(), b"x".to_vec()).unwrap().unwrap();
    assert_eq!(fs::read(place.0.path().join("secret")).unwrap(), b"s3cret");
    assert!(HostDir::write(&mut state, again(&dir), "up/new".into(), Vec::new()).unwrap().is_err());
    assert!(!place.0.path().join("new").exists());
}

#[test]
fn a_path_that_climbs_or_starts_at_the_root_is_denied() {
    let place = Place::new();
    let mut state = place.state(Access::Read);
    let dir = dir(&mut state);
    for path in ["..", "../secret", "sub/../../secret", "/etc/passwd", "sub/.."] {
        assert!(matches!(read_of(&mut state, &dir, path), Err(Error::Denied(_))), "{path}");
    }
    for path in ["", "a\0b"] {
        assert!(matches!(read_of(&mut state, &dir, path), Err(Error::Invalid(_))), "{path:?}");
    }
}

#[test]
fn reading_is_not_writing_and_an_adapter_writes_nothing_before_the_verdict() {
    let place = Place::new();
    let mut reading = place.state(Access::Read);
    let of_reading = dir(&mut reading);
    let said = HostDir::write(&mut reading, again(&of_reading), "b".into(), Vec::new()).unwrap();
    assert!(matches!(said, Err(Error::Denied(_))));
    let mut writing = place.state(Access::Write);
    let of_writing = dir(&mut writing);
    writing.phase = Phase::BeforeVerdict;
    let said = HostDir::write(&mut writing, again(&of_writing), "b".into(), Vec::new()).unwrap();
    assert!(matches!(said, Err(Error::Denied(_))));
    assert!(matches!(writing.remove(again(&of_writing), "a.txt".into()).unwrap(), Err(Error::Denied(_))));
    assert!(read_of(&mut writing, &of_writing, "a.txt").is_ok(), "reading is fine");
}

#[test]
fn a_pipe_does_not_hold_the_call() {
    let place = Place::new();
    let made = std::process::Command::new("mkfifo").arg(place.inside("pipe")).status().unwrap();
    assert!(made.success());
    let mut state = place.state(Access::Read);
    let dir = dir(&mut state);
    assert!(matches!(read_of(&mut state, &dir, "pipe"), Err(Error::Invalid(_))));
}

#[test]
fn a_path_is_located_where_its_links_lead_or_nowhere() {
    let place = Place::new();
    symlink("../secret", place.inside("out")).unwrap();
    symlink("..", place.inside("up")).unwrap();
    symlink("sub", place.inside("link")).unwrap();
    symlink("nowhere", place.inside("dangling")).unwrap();
    symlink("/etc/new-file", place.inside("dangling-out")).unwrap();
    let at = |path: &str| Some(place.inside(path).to_str().unwrap().to_owned());
    assert_eq!(place.locate("a.txt"), at("a.txt"));
    assert_eq!(place.locate("link/new/file"), at("sub/new/file"));
    assert_eq!(place.locate("new"), at("new"));
    for path in ["out", "up/secret", "up/new", "dangling", "dangling-out", "dangling/x"] {
        assert_eq!(place.locate(path), None, "{path}");
    }
    let mut state = place.state(Access::Read);
    let elsewhere = place.0.path().join("secret").to_str().unwrap().to_owned();
    assert_eq!(state.locate("work".into(), elsewhere).unwrap().unwrap(), None);
    for path in ["a.txt", "/in/../x"] {
        assert!(
            matches!(state.locate("work".into(), path.into()).unwrap(), Err(Error::Invalid(_))),
            "{path}"
        );
    }
    assert!(matches!(state.locate("other".into(), "/x".into()).unwrap(), Err(Error::Denied(_))));
}

#[test]
fn directories_come_from_the_settings_where_the_release_says_so() {
    let place = Place::new();
    let settings = serde_json::json!({ "roots": [place.0.path().join("in")] }).to_string();
    let opened = |settings: &str| {
        open(toolgate_signing::Kind::Adapter, &Ports::default(), settings, |release, _| {
            let capability = FilesCapability { access: Access::Read, settings: Some("/roots".into()) };
            release.capabilities.files.insert("work".into(), capability);
        })
    };
    let mut state = opened(&settings).unwrap();
    let dir = dir(&mut state);
    assert!(read_of(&mut state, &dir, "a.txt").is_ok());
    assert!(matches!(opened(r#"{"roots":["relative"]}"#), Err(LoadErrorKind::Settings(_))));
    let mut none = opened("{}").unwrap();
    assert!(matches!(HostDir::open(&mut none, "work".into()).unwrap(), Err(Error::Denied(_))));
}

#[test]
fn a_grant_that_widens_is_refused_when_the_plugin_is_loaded() {
    let widened = |directory: &str, access| {
        open(toolgate_signing::Kind::Adapter, &Ports::default(), "{}", |release, grants| {
            let capability = FilesCapability { access: Access::Read, settings: None };
            release.capabilities.files.insert("work".into(), capability);
            let directories = vec![PathBuf::from(directory)];
            grants.files.insert("work".into(), FilesGrant { directories, access });
        })
        .err()
    };
    assert!(widened("/srv", None).is_none());
    assert!(matches!(widened("/srv", Some(Access::Write)), Some(LoadErrorKind::Grant(_))));
    assert!(matches!(widened("srv", None), Some(LoadErrorKind::Grant(_))));
}

#[test]
fn fr_32_a_directory_that_takes_the_path_of_the_granted_one_is_not_the_granted_one() {
    let place = Place::new();
    let mut state = place.state(Access::Read);
    let first = dir(&mut state);
    let (inside, away) = (place.0.path().join("in"), place.0.path().join("away"));
    fs::rename(&inside, &away).unwrap();
    // Another directory, and a link to one: neither is what the operator granted.
    fs::create_dir_all(&inside).unwrap();
    fs::write(inside.join("a.txt"), "planted").unwrap();
    let mut refused = || match HostDir::open(&mut state, "work".into()).unwrap() {
        Err(Error::Denied(why)) => why,
        other => panic!("{:?}", other.map(|_| ())),
    };
    assert!(refused().contains("another directory"));
    fs::remove_dir_all(&inside).unwrap();
    symlink(place.0.path(), &inside).unwrap();
    assert!(refused().contains("another directory"));
    let located = state.locate("work".into(), place.inside("secret").to_str().unwrap().to_owned()).unwrap();
    assert!(matches!(located, Err(Error::Denied(_))), "{located:?}");
    // What is open stays what it was, and the directory itself is welcome back.
    assert_eq!(read_of(&mut state, &first, "a.txt").unwrap(), b"0123456789");
    fs::remove_file(&inside).unwrap();
    fs::rename(&away, &inside).unwrap();
    let again = dir(&mut state);
    assert_eq!(read_of(&mut state, &again, "a.txt").unwrap(), b"0123456789");
}

#[test]
fn a_directory_that_is_not_there_yet_is_known_from_its_first_opening() {
    let place = Place::new();
    let inside = place.0.path().join("in");
    fs::remove_dir_all(&inside).unwrap();
    let mut state = place.state(Access::Read);
    assert!(matches!(HostDir::open(&mut state, "work".into()).unwrap(), Err(Error::Unavailable(_))));
    fs::create_dir(&inside).unwrap();
    assert!(HostDir::open(&mut state, "work".into()).unwrap().is_ok());
}

#[test]
fn fr_30_no_label_leads_into_toolgates_own_directories_or_to_write_above_them() {
    let place = Place::new();
    let own = place.inside("own");
    fs::create_dir_all(own.join("log")).unwrap();
    symlink(&own, place.inside("link")).unwrap();
    let opened = |directory: PathBuf, access| {
        let ports = Ports { own: [own.clone()].into(), ..Ports::default() };
        open(toolgate_signing::Kind::Adapter, &ports, "{}", |release, grants| {
            release.capabilities.files.insert("work".into(), FilesCapability { access, settings: None });
            let directories = vec![directory];
            grants.files.insert("work".into(), FilesGrant { directories, access: None });
        })
    };
    for directory in [own.clone(), own.join("log"), own.join("not-there-yet"), place.inside("link")] {
        for access in [Access::Read, Access::Write] {
            let refused = opened(directory.clone(), access).err().map(|error| error.to_string());
            assert!(
                refused.as_ref().is_some_and(|error| error.contains("Toolgate's own")),
                "{directory:?}: {refused:?}"
            );
        }
    }
    // What holds them may be read, as a home directory is, and not be written.
    assert!(opened(place.inside(""), Access::Write).is_err());
    assert!(opened(place.inside(""), Access::Read).is_ok());
    assert!(opened(place.inside("sub"), Access::Write).is_ok());
    // A directory that is made later, as a link to them, is none either.
    let mut state = opened(place.inside("later"), Access::Write).unwrap();
    symlink(&own, place.inside("later")).unwrap();
    let refused = HostDir::open(&mut state, "work".into()).unwrap();
    assert!(matches!(refused, Err(Error::Denied(text)) if text.contains("Toolgate's own")));
}
