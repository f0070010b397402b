//! What comes out: releases, their bytes, and what is known of them without asking.

use std::sync::Arc;

use semver::VersionReq;
use toolgate_signing::{Digest, sign_release};

use super::fixture::*;
use super::vector::{Place, code, version};
use crate::document::{RevokedKey, RevokedRelease};
use crate::layout;
use crate::line::Line;

fn range(text: &str) -> VersionReq {
    text.parse().unwrap()
}

#[tokio::test]
async fn a_range_chooses_the_newest_release_that_fits_and_its_bytes_come_out() {
    let registry = Fixture::with_releases();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    let newest = client.resolve("acme/guard", &range("^1")).await.unwrap();
    assert_eq!((newest.line.version.to_string().as_str(), newest.line.log), ("1.1.0", 1));
    let fetched = client.fetch(&newest).await.unwrap();
    assert_eq!(fetched.component, b"component 1.1.0");
    assert_eq!(Digest::of(&fetched.release), newest.line.release);
    assert_eq!(version(&client.resolve("acme/guard", &range("=1.0.0")).await), "1.0.0");
    assert_eq!(version(&client.resolve("acme/guard", &range("^2")).await), "no-version");
    assert_eq!(version(&client.resolve("acme/other", &range("*")).await), "absent");
    assert_eq!(version(&client.resolve("../guard", &range("*")).await), "reference");
    assert_eq!(client.names().unwrap()[0].name, "acme/guard");
}

#[tokio::test]
async fn a_component_or_a_release_with_another_digest_is_refused() {
    let registry = Fixture::with_releases();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    let newest = client.resolve("acme/guard", &range("*")).await.unwrap();
    place.put(&layout::blob(newest.line.component), Some(b"component 1.1.x".to_vec()));
    assert_eq!(code(&client.fetch(&newest).await), "digest");
    place.put(&layout::blob(newest.line.component), Some(b"component 1.1.0 and more".to_vec()));
    assert_eq!(code(&client.fetch(&newest).await), "too-large");
    place.put(&layout::blob(newest.line.release), Some(b"{}".to_vec()));
    assert_eq!(version(&client.resolve("acme/guard", &range("*")).await), "digest");
}

#[tokio::test]
async fn a_line_that_says_more_than_was_signed_is_refused() {
    let mut registry = Fixture::new();
    let signed = registry.release("1.0.0", 1, ACME);
    let other = sign_release(&release("1.0.0", 2), b"component 1.0.0", &key(ACME));
    registry.files.insert(layout::blob(Digest::of(&other)), other.clone());
    let mut line = signed;
    (line.release, line.release_size) = (Digest::of(&other), other.len() as u64);
    registry.lines = vec![Line::Release(line)];
    registry.publish();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    assert_eq!(version(&client.resolve("acme/guard", &range("*")).await), "disagrees");
}

#[tokio::test]
async fn a_release_for_a_newer_host_is_passed_over_with_the_reason() {
    let mut registry = Fixture::new();
    registry.release("1.0.0", 1, ACME);
    let mut line = registry.release("2.0.0", 2, ACME);
    line.min_host = "99.0.0".parse().unwrap();
    registry.lines[1] = Line::Release(line);
    registry.publish();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    let chosen = client.resolve("acme/guard", &range("*")).await.unwrap();
    assert_eq!(chosen.line.version.to_string(), "1.0.0");
    assert!(chosen.skipped[0].reason.contains("needs Toolgate 99.0.0"), "{:?}", chosen.skipped);
}

#[tokio::test]
async fn a_lock_still_loads_a_yanked_release_and_never_a_revoked_one() {
    let mut registry = Fixture::with_releases();
    let Line::Release(newest) = registry.lines[1].clone() else { panic!() };
    registry.yank("1.1.0", 2);
    registry.publish();
    let place = Place::of(&registry);
    let client = place.client(registry.fingerprint(), time(0)).unwrap();
    client.refresh().await.unwrap();
    assert_eq!(version(&client.resolve("acme/guard", &range("=1.1.0")).await), "yanked");
    let locked = client.locked("acme/guard", newest.release).await.unwrap();
    assert_eq!(locked.yanked.as_deref(), Some("breaks on Tuesdays"));
    assert_eq!(client.revocation(&locked.release, Some(1)), None);

    registry.revocations.version += 1;
    registry.revocations.releases =
        vec![RevokedRelease { digest: newest.component, reason: "steals".to_owned(), at: time(1) }];
    registry.publish();
    place.show(&registry);
    client.refresh().await.unwrap();
    assert_eq!(version(&client.locked("acme/guard", newest.release).await), "revoked");
    assert_eq!(client.revocation(&locked.release, Some(1)).unwrap().reason, "steals");
}

#[tokio::test]
async fn what_is_revoked_is_known_without_the_registry_and_after_it_expired() {
    let mut registry = Fixture::with_releases();
    let digest = Digest::of(b"bad");
    registry.revocations.releases = vec![RevokedRelease { digest, reason: "steals".to_owned(), at: time(0) }];
    registry.revocations.keys =
        vec![RevokedKey { key: id(ACME), from_log: 1, reason: "stolen".to_owned(), at: time(0) }];
    registry.publish();
    let place = Place::of(&registry);
    let root = registry.fingerprint();
    let client = place.client(root, time(0)).unwrap();
    client.refresh().await.unwrap();
    let kept = client.resolve("acme/guard", &range("=1.0.0")).await.unwrap();
    std::fs::remove_dir_all(place.registry()).unwrap();
    let later = place.client(root, time(400)).unwrap();
    assert!(later.refresh().await.is_err());
    assert_eq!(later.remembered().unwrap().revoked(digest).unwrap().reason, "steals");
    assert_eq!(later.remembered().unwrap().revoked(Digest::of(b"good")), None);
    // At its place in the log the release is older than the revocation; with no place it may not be.
    assert_eq!(later.revocation(&kept.release, Some(0)), None);
    assert!(later.revocation(&kept.release, None).unwrap().by_key);
    assert!(!later.freshness().unwrap().fresh);
}

#[tokio::test]
async fn a_client_is_shared_between_tasks() {
    let registry = Fixture::with_releases();
    let place = Place::of(&registry);
    let client = Arc::new(place.client(registry.fingerprint(), time(0)).unwrap());
    client.refresh().await.unwrap();
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let client = Arc::clone(&client);
            tokio::spawn(async move {
                client.refresh().await.unwrap();
                version(&client.resolve("acme/guard", &VersionReq::STAR).await)
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), "1.1.0");
    }
}
