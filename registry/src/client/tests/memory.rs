//! What a machine remembers, and what it does when it cannot.

use std::fs;

use super::fixture::*;
use super::vector::{Place, code, version};
use crate::layout;

async fn visited() -> (Fixture, Place) {
    let registry = Fixture::with_releases();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    assert_eq!(version(&client.resolve("acme/guard", &semver::VersionReq::STAR).await), "1.1.0");
    (registry, place)
}

#[tokio::test]
async fn memory_is_private_and_survives_the_process() {
    use std::os::unix::fs::PermissionsExt as _;
    let (registry, place) = visited().await;
    for entry in fs::read_dir(place.memory()).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
    }
    let again = place.client(registry.fingerprint(), time(1)).unwrap();
    assert_eq!(version(&again.resolve("acme/guard", &semver::VersionReq::STAR).await), "1.1.0");
}

#[tokio::test]
async fn memory_that_is_damaged_or_gone_in_part_is_a_refusal_and_no_first_use() {
    let (registry, place) = visited().await;
    let files: Vec<_> = fs::read_dir(place.memory())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with("lock"))
        .collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for file in files {
        let good = fs::read(&file).unwrap();
        let mut flipped = good.clone();
        flipped[good.len() / 2] ^= 1;
        for bad in [Some(flipped), Some(b"{}".to_vec()), Some(Vec::new()), None] {
            match bad {
                Some(bytes) => fs::write(&file, bytes).unwrap(),
                None => fs::remove_file(&file).unwrap(),
            }
            let opened = place.client(registry.fingerprint(), time(1));
            assert!(
                matches!(code(&opened), "state" | "malformed" | "fingerprint"),
                "{}: {opened:?}",
                file.display()
            );
        }
        fs::write(&file, good).unwrap();
    }
    place.client(registry.fingerprint(), time(1)).unwrap();
}

#[tokio::test]
async fn memory_of_a_newer_format_is_refused_as_such() {
    let (registry, place) = visited().await;
    fs::write(place.memory().join("state.json"), r#"{"format":2,"more":true}"#).unwrap();
    assert_eq!(code(&place.client(registry.fingerprint(), time(1))), "newer-state");
}

#[tokio::test]
async fn memory_of_another_root_is_not_used() {
    let (mut registry, place) = visited().await;
    let first = registry.fingerprint();
    let mut other = first;
    other.digest = toolgate_signing::Digest::of(b"another");
    assert_eq!(code(&place.client(other, time(1))), "fingerprint");
    registry.rotate(&[ROOT], |root| root.expires = time(400));
    registry.publish();
    place.show(&registry);
    let client = place.client(first, time(1)).unwrap();
    client.refresh().await.unwrap();
    // The operator may name any root that was walked since.
    let second = client.root().unwrap();
    assert_eq!(second.version, 2);
    place.client(second, time(1)).unwrap();
    place.client(first, time(1)).unwrap();
    other.version = 3;
    assert_eq!(code(&place.client(other, time(1))), "state");
}

#[tokio::test]
async fn a_clock_that_goes_back_stops_everything_new() {
    let (registry, place) = visited().await;
    let back = crate::Time::from_seconds(NOW - 3600);
    assert_eq!(code(&place.client(registry.fingerprint(), back).unwrap().refresh().await), "clock");
    let little = crate::Time::from_seconds(NOW - 60);
    assert_eq!(code(&place.client(registry.fingerprint(), little).unwrap().refresh().await), "ok");
}

#[tokio::test]
async fn a_failed_visit_leaves_what_was_known_but_keeps_a_root_that_was_verified() {
    let (mut registry, place) = visited().await;
    registry.rotate(&[ROOT], |root| {
        root.keys.remove(&id(SNAPSHOT));
        root.keys.insert(id(STRANGER), public(STRANGER));
        root.roles.snapshot.keys = vec![id(STRANGER)];
    });
    // The snapshot under root 2 is still missing.
    place.show(&registry);
    let client = place.client(registry.fingerprint(), time(1)).unwrap();
    assert_eq!(code(&client.refresh().await), "absent");
    assert_eq!(client.root().unwrap().version, 2);
    assert_eq!(version(&client.resolve("acme/guard", &semver::VersionReq::STAR).await), "1.1.0");
    registry.snapshot_key = SNAPSHOT;
    registry.publish();
    place.show(&registry);
    assert_eq!(code(&client.refresh().await), "signature", "the old key signs nothing any more");
    registry.snapshot_key = STRANGER;
    registry.publish();
    place.show(&registry);
    assert_eq!(code(&client.refresh().await), "ok");
}

#[tokio::test]
async fn lines_that_are_not_published_yet_are_not_seen() {
    let (registry, place) = visited().await;
    let path = layout::index("acme/guard");
    let mut longer = registry.files[&path].clone();
    longer.extend_from_slice(b"{\"half\":");
    place.put(&path, Some(longer));
    let client = place.client(registry.fingerprint(), time(1)).unwrap();
    client.refresh().await.unwrap();
    assert_eq!(version(&client.resolve("acme/guard", &semver::VersionReq::STAR).await), "1.1.0");
}

/// Memory of format 1 as it was first written; every later version reads it or says that it does not.
#[tokio::test]
async fn memory_that_the_first_version_wrote_is_read() {
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/memory-1");
    let (registry, place) = visited().await;
    if std::env::var_os("TOOLGATE_WRITE_VECTORS").is_some() {
        fs::create_dir_all(&fixture).unwrap();
        for entry in fs::read_dir(place.memory()).unwrap().map(Result::unwrap) {
            if entry.file_name() != "lock" {
                fs::copy(entry.path(), fixture.join(entry.file_name())).unwrap();
            }
        }
    }
    fs::remove_dir_all(place.memory()).unwrap();
    fs::create_dir_all(place.memory()).unwrap();
    for entry in fs::read_dir(&fixture).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), place.memory().join(entry.file_name())).unwrap();
    }
    let client = place.client(registry.fingerprint(), time(1)).unwrap();
    assert_eq!(version(&client.resolve("acme/guard", &semver::VersionReq::STAR).await), "1.1.0");
    assert!(!client.refresh().await.unwrap().changed, "it is the same registry");
}
