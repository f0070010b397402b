//! The publisher, seen by clients: every change arrives, none arrives half, and no key can do what its
//! role does not.

use std::collections::BTreeMap;
use std::path::PathBuf;

use semver::VersionReq;
use tempfile::TempDir;
use toolgate_base::ManualClock;
use toolgate_signing::{Digest, SigningKey, sign_release};

use super::*;
use crate::client::Client;
use crate::client::tests::fixture::{self, *};
use crate::layout::Fingerprint;
use crate::source::Source;

struct World {
    directory: TempDir,
    clock: Arc<ManualClock>,
}

impl World {
    fn empty() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), clock: Arc::new(ManualClock::new(NOW * 1000)) }
    }

    /// A registry in which acme may publish.
    async fn new() -> (Self, Fingerprint) {
        let world = Self::empty();
        let made = Publisher::init(&world.registry(), &init(1), &all(), world.clock.clone()).unwrap();
        world.publisher().rotate("acme/*", vec![public(ACME)], 1, &all()).await.unwrap();
        (world, made.fingerprint.unwrap())
    }

    fn registry(&self) -> PathBuf {
        self.directory.path().join("registry")
    }

    fn publisher(&self) -> Publisher {
        Publisher::open_with(&self.registry(), self.clock.clone()).unwrap()
    }

    fn client(&self, memory: &str, root: Fingerprint) -> Client {
        let memory = self.directory.path().join(memory);
        Client::open_with(&memory, Source::directory(self.registry()), root, self.clock.clone()).unwrap()
    }

    /// What a client that remembers everything finds.
    async fn newest(&self, root: Fingerprint) -> String {
        let client = self.client("memory", root);
        if let Err(error) = client.refresh().await {
            return format!("refresh: {}", error.code());
        }
        match client.resolve("acme/guard", &VersionReq::STAR).await {
            Ok(resolved) => {
                client.fetch(&resolved).await.unwrap();
                resolved.line.version.to_string()
            }
            Err(error) => error.code().to_owned(),
        }
    }
}

fn init(root_threshold: u32) -> Init {
    let roots =
        if root_threshold == 1 { vec![public(ROOT)] } else { vec![public(ROOT), public(SECOND_ROOT)] };
    Init {
        name: "main".to_owned(),
        origin: "plugins.example/main".to_owned(),
        roles: BTreeMap::from([
            (Role::Root, (roots, root_threshold)),
            (Role::Delegate, (vec![public(DELEGATE)], 1)),
            (Role::Revoke, (vec![public(REVOKE)], 1)),
            (Role::Snapshot, (vec![public(SNAPSHOT)], 1)),
            (Role::Refresh, (vec![public(REFRESH)], 1)),
        ]),
        refresh_days: 30,
    }
}

fn signers(seeds: &[u8]) -> Vec<Box<dyn Signer>> {
    seeds.iter().map(|seed| Box::new(SigningKey::from_seed(&[*seed; 32])) as Box<dyn Signer>).collect()
}

fn all() -> Vec<Box<dyn Signer>> {
    signers(&[ROOT, SECOND_ROOT, DELEGATE, REVOKE, SNAPSHOT, REFRESH])
}

fn plugin(version: &str, sequence: u64) -> Plugin {
    let component = format!("component {version}").into_bytes();
    let mut stated = fixture::release(version, sequence);
    stated.readme = Some(Digest::of(b"read me"));
    let release = sign_release(&stated, &component, &key(ACME));
    Plugin { component, release, others: vec![b"read me".to_vec(), b"something else".to_vec()] }
}

fn code<T>(result: &Result<T, PublishError>) -> &'static str {
    result.as_ref().map_or_else(PublishError::code, |_| "ok")
}

#[tokio::test]
async fn from_nothing_to_published_yanked_revoked_and_rotated() {
    let (world, root) = World::new().await;
    assert_eq!(world.newest(root).await, "absent");
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0");
    world.publisher().publish(&plugin("1.1.0", 2), &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.1.0");
    let blobs = world.registry().join("blob");
    assert!(blobs.join(Digest::of(b"read me").hex()).exists());
    assert!(!blobs.join(Digest::of(b"something else").hex()).exists(), "only what the release names");

    let newest: semver::Version = "1.1.0".parse().unwrap();
    world.publisher().yank("acme/guard", &newest, "too slow", false, &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0");
    world.publisher().yank("acme/guard", &newest, "fast again", true, &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.1.0");
    let revoke = Revoke::Release("acme/guard".to_owned(), newest);
    world.publisher().revoke(&revoke, "it steals", &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0");
    assert_eq!(code(&world.publisher().revoke(&revoke, "it steals", &all()).await), "unfit");

    world.publisher().rotate("acme/*", vec![public(ACME_NEW)], 1, &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0", "what the old key signed stays");
    assert_eq!(code(&world.publisher().publish(&plugin("1.2.0", 3), &all()).await), "signature");
    let revoke = Revoke::Key(id(ACME), Some(0));
    world.publisher().revoke(&revoke, "stolen", &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "no-version");
    let verified = verify(&Source::directory(world.registry()), root, time(0)).await.unwrap();
    assert_eq!((verified.plugins, verified.releases, verified.log), (1, 2, 4));
}

#[tokio::test]
async fn a_release_that_does_not_follow_or_is_not_signed_for_its_name_is_not_published() {
    let (world, _) = World::new().await;
    let publisher = world.publisher();
    let signers = all();
    publisher.publish(&plugin("1.0.0", 5), &signers).await.unwrap();
    assert_eq!(
        code(&publisher.publish(&plugin("1.0.0", 6), &signers).await),
        "unfit",
        "one version, one release"
    );
    assert_eq!(
        code(&publisher.publish(&plugin("1.0.1", 5), &signers).await),
        "unfit",
        "the sequence goes up"
    );
    let mut other = plugin("1.0.2", 7);
    other.component.push(0);
    assert_eq!(code(&publisher.publish(&other, &signers).await), "component");
    let mut stated = fixture::release("1.0.3", 8);
    stated.name = "other/guard".to_owned();
    let stranger =
        Plugin { release: sign_release(&stated, b"x", &key(ACME)), component: b"x".to_vec(), others: vec![] };
    assert_eq!(code(&publisher.publish(&stranger, &signers).await), "unfit", "nobody signs other/*");
    let mut stated = fixture::release("1.0.4", 9);
    stated.previous = Some(Digest::of(b"another"));
    let astray =
        Plugin { release: sign_release(&stated, b"x", &key(ACME)), component: b"x".to_vec(), others: vec![] };
    assert_eq!(code(&publisher.publish(&astray, &signers).await), "unfit", "previous is the last release");
}

#[tokio::test]
async fn each_role_needs_its_own_keys_and_nothing_is_written_without_them() {
    let (world, root) = World::new().await;
    let publisher = world.publisher();
    let without = |role: u8| {
        let rest: Vec<u8> =
            [ROOT, DELEGATE, REVOKE, SNAPSHOT, REFRESH].into_iter().filter(|seed| *seed != role).collect();
        signers(&rest)
    };
    let before = std::fs::read(world.registry().join("snapshot/1.json")).unwrap();
    assert_eq!(code(&publisher.publish(&plugin("1.0.0", 1), &without(SNAPSHOT)).await), "missing-keys");
    assert_eq!(
        code(&publisher.rotate("acme/*", vec![public(9)], 1, &without(DELEGATE)).await),
        "missing-keys"
    );
    let revoke = Revoke::Digest(Digest::of(b"x"));
    assert_eq!(code(&publisher.revoke(&revoke, "bad", &without(REVOKE)).await), "missing-keys");
    assert_eq!(code(&publisher.refresh(&without(REFRESH)).await), "missing-keys");
    assert_eq!(std::fs::read(world.registry().join("snapshot/1.json")).unwrap(), before);
    assert_eq!(world.newest(root).await, "absent");
}

#[tokio::test]
async fn the_online_key_renews_and_status_counts_the_days() {
    let (world, root) = World::new().await;
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    let days = |status: &Status| status.documents.iter().map(|row| row.days).collect::<Vec<_>>();
    assert_eq!(days(&world.publisher().status().await.unwrap()), [365, 30, 365, 365]);
    world.clock.advance(29 * 86_400_000);
    assert_eq!(days(&world.publisher().status().await.unwrap()), [336, 1, 336, 336]);
    world.publisher().refresh(&signers(&[REFRESH])).await.unwrap();
    assert_eq!(days(&world.publisher().status().await.unwrap()), [336, 30, 336, 336]);
    world.clock.advance(29 * 86_400_000);
    assert_eq!(world.newest(root).await, "1.0.0");
    world.clock.advance(2 * 86_400_000);
    assert_eq!(world.newest(root).await, "refresh: freeze");
    let status = world.publisher().status().await.unwrap();
    assert!(status.documents[1].expired);
    world.publisher().refresh(&signers(&[REFRESH])).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0", "what expired can be renewed");
}

#[tokio::test]
async fn two_root_keys_sign_on_two_machines_before_a_registry_begins() {
    let world = World::empty();
    let made = Publisher::init(
        &world.registry(),
        &init(2),
        &signers(&[ROOT, DELEGATE, REVOKE, SNAPSHOT]),
        world.clock.clone(),
    )
    .unwrap();
    let proposal = made.proposal.unwrap();
    assert_eq!((made.fingerprint, proposal.signed.len(), proposal.missing), (None, 1, (0, 1)));
    let publisher = world.publisher();
    assert_eq!(code(&publisher.publish(&plugin("1.0.0", 1), &all()).await), "source", "it has no root yet");
    assert_eq!(code(&publisher.finish_root(&all()).await), "signature", "one of two is not enough");
    // The second key is elsewhere: the file goes there, the signature comes back.
    let (root, fingerprint, payload) = read_proposal(&proposal.file).unwrap();
    assert_eq!((root.version, fingerprint), (1, proposal.fingerprint));
    let (name, text) = sign_proposal(&payload, &key(SECOND_ROOT)).unwrap();
    std::fs::write(world.registry().join("proposal").join(name), text + "\n").unwrap();
    let finished = publisher.finish_root(&all()).await.unwrap();
    assert_eq!(finished.fingerprint, fingerprint);
    drop(publisher);
    assert_eq!(world.newest(fingerprint).await, "absent");
}

#[tokio::test]
async fn a_new_root_needs_old_and_new_keys_and_signs_anew_what_it_must() {
    let (world, first) = World::new().await;
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    assert_eq!(world.newest(first).await, "1.0.0");
    let change = RootChange {
        roles: BTreeMap::from([
            (Role::Root, (vec![public(SECOND_ROOT)], 1)),
            (Role::Snapshot, (vec![public(STRANGER)], 1)),
            (Role::Delegate, (vec![public(ACME_NEW)], 1)),
        ]),
        ..RootChange::default()
    };
    let publisher = world.publisher();
    assert_eq!(publisher.propose_root(&change).await.unwrap().missing, (1, 1));
    assert_eq!(publisher.sign_root(&signers(&[STRANGER])).unwrap(), Vec::<String>::new(), "no root key");
    publisher.sign_root(&signers(&[SECOND_ROOT])).unwrap();
    let new = signers(&[STRANGER, ACME_NEW]);
    assert_eq!(code(&publisher.finish_root(&new).await), "root-old-keys");
    publisher.sign_root(&signers(&[ROOT])).unwrap();
    assert_eq!(
        code(&publisher.finish_root(&all()).await),
        "missing-keys",
        "the new snapshot key must be here"
    );
    let finished = publisher.finish_root(&new).await.unwrap();
    assert_eq!((finished.fingerprint.version, finished.signed_anew), (2, vec!["snapshot", "delegations"]));
    drop(publisher);
    assert_eq!(world.newest(first).await, "1.0.0", "an old client walks to the new root");
    assert_eq!(code(&world.publisher().publish(&plugin("1.1.0", 2), &all()).await), "missing-keys");
    world.publisher().publish(&plugin("1.1.0", 2), &new).await.unwrap();
    assert_eq!(world.newest(first).await, "1.1.0");
    let client = world.client("another", finished.fingerprint);
    client.refresh().await.unwrap();
}

#[tokio::test]
async fn after_a_theft_the_root_begins_a_new_log() {
    let (world, root) = World::new().await;
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0");
    let publisher = world.publisher();
    let change = RootChange { new_log: true, ..RootChange::default() };
    publisher.propose_root(&change).await.unwrap();
    publisher.sign_root(&all()).unwrap();
    publisher.finish_root(&all()).await.unwrap();
    drop(publisher);
    assert_eq!(world.newest(root).await, "absent");
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    assert_eq!(world.newest(root).await, "1.0.0");
}

#[tokio::test]
async fn a_mirror_is_the_registry_and_never_goes_back() {
    let (world, root) = World::new().await;
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    let copy = world.directory.path().join("mirror");
    let source = Source::directory(world.registry());
    let first = mirror(&source, root, &copy, time(0)).await.unwrap();
    assert_eq!((first.releases, first.copied), (1, 3));
    let old = Source::directory(world.directory.path().join("old"));
    mirror(&source, root, &world.directory.path().join("old"), time(0)).await.unwrap();
    world.publisher().publish(&plugin("1.1.0", 2), &all()).await.unwrap();
    let second = mirror(&source, root, &copy, time(0)).await.unwrap();
    assert_eq!((second.releases, second.copied), (2, 2), "the readme is there already");
    let verified = verify(&Source::directory(&copy), root, time(0)).await.unwrap();
    assert_eq!(verified, verify(&source, root, time(0)).await.unwrap());
    assert_eq!(code(&mirror(&old, root, &copy, time(0)).await), "rollback");
    assert_eq!(code(&mirror(&source, root, &copy, time(31)).await), "freeze");
}

#[tokio::test]
async fn verify_reads_every_blob() {
    let (world, root) = World::new().await;
    world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
    let blob = world.registry().join("blob").join(Digest::of(b"component 1.0.0").hex());
    std::fs::write(&blob, b"component 1.0.x").unwrap();
    assert_eq!(code(&verify(&Source::directory(world.registry()), root, time(0)).await), "digest");
    std::fs::remove_file(&blob).unwrap();
    assert_eq!(code(&verify(&Source::directory(world.registry()), root, time(0)).await), "absent");
}

/// Stops a change after each of its writing steps in turn: a client finds the old state or the new one,
/// and the next publisher goes on from there.
async fn stopped_everywhere(what: &str, change: impl AsyncFn(&Publisher) -> Result<(), PublishError>) {
    let (mut killed, mut steps) = (0, 0);
    loop {
        let (world, root) = World::new().await;
        world.publisher().publish(&plugin("1.0.0", 1), &all()).await.unwrap();
        assert_eq!(world.newest(root).await, "1.0.0");
        let mut publisher = world.publisher();
        publisher.stop_after(steps);
        let ended = change(&publisher).await;
        drop(publisher);
        let found = world.newest(root).await;
        assert!(matches!(found.as_str(), "1.0.0" | "1.1.0"), "{what} stopped after {steps} steps: {found}");
        let verified = verify(&Source::directory(world.registry()), root, time(0)).await;
        assert!(verified.is_ok(), "{what} stopped after {steps} steps: {verified:?}");
        if ended.is_ok() {
            break;
        }
        killed += 1;
        // Whoever comes next does not trip over what was left.
        change(&world.publisher()).await.or_else(again).unwrap();
        assert_eq!(world.newest(root).await, "1.1.0", "{what} stopped after {steps} steps, then again");
        steps += 1;
    }
    assert!(killed > 8, "{what} was stopped {killed} times");
}

/// Stopped after the step that publishes: there is nothing left to do.
fn again(error: PublishError) -> Result<(), PublishError> {
    if matches!(error, PublishError::Unfit(_)) { Ok(()) } else { Err(error) }
}

#[tokio::test]
async fn a_publish_that_is_killed_at_any_step_leaves_the_old_registry_or_the_new_one() {
    stopped_everywhere("publish", async |publisher| {
        publisher.publish(&plugin("1.1.0", 2), &all()).await.map(|_| ())
    })
    .await;
}

#[tokio::test]
async fn a_rotation_of_the_root_that_is_killed_at_any_step_leaves_the_old_root_or_the_new_one() {
    stopped_everywhere("rotation", async |publisher| {
        let keys = signers(&[ROOT, DELEGATE, REVOKE, STRANGER, SNAPSHOT]);
        let change = RootChange {
            roles: BTreeMap::from([(Role::Snapshot, (vec![public(STRANGER)], 1))]),
            ..RootChange::default()
        };
        publisher.propose_root(&change).await?;
        publisher.sign_root(&keys)?;
        publisher.finish_root(&keys).await?;
        publisher.publish(&plugin("1.1.0", 2), &keys).await.map(|_| ())
    })
    .await;
}
