//! Each lie that a registry, its mirror or a thief of one key can tell, and the reason it is refused for.

use super::fixture::{self, *};
use super::vector::Vector;
use crate::checkpoint::Checkpoint;
use crate::document::{RevokedKey, RevokedRelease, RoleRule};
use crate::layout;
use crate::merkle;

fn role(seeds: &[u8], threshold: u32) -> RoleRule {
    let mut keys: Vec<String> = seeds.iter().map(|seed| id(*seed)).collect();
    keys.sort();
    RoleRule { keys, threshold }
}

#[tokio::test]
async fn an_honest_registry_is_followed_through_releases_rotation_and_renewal() {
    let mut registry = Fixture::new();
    let mut vector = Vector::new("An honest registry, visited as it grows.", &registry);
    vector.visit(&registry, time(0), "ok", "absent");
    registry.release("1.0.0", 1, ACME);
    registry.publish();
    vector.visit(&registry, time(1), "ok", "1.0.0");
    registry.release("1.1.0", 2, ACME);
    registry.publish();
    vector.visit(&registry, time(2), "ok", "1.1.0");
    registry.renew(time(50), REFRESH);
    vector.visit(&registry, time(40), "ok", "1.1.0");
    registry.rotate(&[ROOT, SECOND_ROOT], |root| {
        root.keys.remove(&id(ROOT));
        root.keys.insert(id(SECOND_ROOT), public(SECOND_ROOT));
        root.roles.root = role(&[SECOND_ROOT], 1);
    });
    registry.expires = time(80);
    registry.publish();
    vector.visit(&registry, time(60), "ok", "1.1.0");
    vector.holds("honest").await;
}

#[tokio::test]
async fn an_older_snapshot_is_a_rollback() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("A mirror shows an older snapshot with a valid signature.", &registry);
    let older = registry.clone();
    registry.release("1.2.0", 3, ACME);
    registry.publish();
    vector.visit(&registry, time(0), "ok", "1.2.0").visit(&older, time(1), "rollback", "rewritten");
    vector.holds("rollback").await;
}

#[tokio::test]
async fn older_delegations_or_revocations_under_a_new_snapshot_are_a_rollback() {
    for (name, revocations) in [("rollback-delegations", false), ("rollback-revocations", true)] {
        let mut registry = Fixture::with_releases();
        let mut vector =
            Vector::new("A thief of the snapshot key names an older document in a new snapshot.", &registry);
        let (old_delegations, old_revocations) = (registry.delegations.clone(), registry.revocations.clone());
        registry.delegations.version = 2;
        registry.revocations.version = 2;
        registry.publish();
        vector.visit(&registry, time(0), "ok", "1.1.0");
        if revocations {
            registry.revocations = old_revocations;
        } else {
            registry.delegations = old_delegations;
        }
        registry.publish();
        vector.visit(&registry, time(1), "rollback", "1.1.0").holds(name).await;
    }
}

#[tokio::test]
async fn a_snapshot_that_is_shown_for_ever_is_a_freeze_and_nothing_new_is_taken() {
    let registry = Fixture::with_releases();
    let mut vector = Vector::new("A mirror stops updating; the snapshot expires.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0").visit(&registry, time(30), "freeze", "freeze");
    vector.holds("freeze").await;
}

#[tokio::test]
async fn documents_expire_each_by_itself_and_a_renewal_holds_none_of_them() {
    for (name, which) in [("freeze-root", 0), ("freeze-delegations", 1), ("freeze-revocations", 2)] {
        let mut registry = Fixture::with_releases();
        let ends = [
            &mut registry.root.expires,
            &mut registry.delegations.expires,
            &mut registry.revocations.expires,
        ];
        for (index, end) in ends.into_iter().enumerate() {
            *end = time(if index == which { 10 } else { 365 });
        }
        registry.put_root(&[ROOT]);
        registry.publish();
        registry.renew(time(29), REFRESH);
        let mut vector = Vector::new("A document behind the snapshot expires.", &registry);
        vector.visit(&registry, time(0), "ok", "1.1.0").visit(&registry, time(10), "freeze", "freeze");
        vector.holds(name).await;
    }
}

#[tokio::test]
async fn the_online_key_renews_one_snapshot_and_can_do_nothing_else() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("The refresh key renews, reaches too far, and signs a snapshot.", &registry);
    registry.renew(time(45), REFRESH);
    vector.visit(&registry, time(31), "ok", "1.1.0");
    // Another year at once is more than the root allows.
    registry.renew(time(365), REFRESH);
    vector.visit(&registry, time(32), "too-fresh", "1.1.0");
    // Another key cannot renew.
    registry.renew(time(45), STRANGER);
    vector.visit(&registry, time(33), "signature", "1.1.0");
    // The renewal of another snapshot says nothing about this one.
    registry.renew(time(45), REFRESH);
    registry.publish();
    vector.visit(&registry, time(34), "freeze", "1.1.0");
    // A snapshot that the online key signed is signed by nobody.
    registry.expires = time(60);
    registry.snapshot_key = REFRESH;
    registry.publish();
    vector.visit(&registry, time(35), "signature", "1.1.0");
    vector.holds("refresh-key").await;
}

#[tokio::test]
async fn pieces_of_two_states_are_mix_and_match() {
    let old = Fixture::with_releases();
    let mut new = old.clone();
    new.delegations.version = 2;
    new.delegations.expires = time(300);
    new.release("1.2.0", 3, ACME);
    new.publish();
    let pieces = [
        ("mix-delegations", layout::delegations(2), envelope(&old.delegations, &[DELEGATE])),
        (
            "mix-config",
            layout::CONFIG.to_owned(),
            br#"{"index":1,"name":"other","origin":"plugins.example/main"}"#.to_vec(),
        ),
        (
            "mix-names",
            layout::blob(new.published().names.digest),
            old.files[&layout::blob(old.published().names.digest)].clone(),
        ),
        ("mix-tile", "tile/0/000.p/3".to_owned(), vec![0; 96]),
    ];
    for (name, path, bytes) in pieces {
        let mut vector = Vector::new("A mirror serves a piece of another state.", &old);
        vector.visit(&old, time(0), "ok", "1.1.0");
        let mut mixed = new.clone();
        mixed.files.insert(path, bytes);
        vector.visit(&mixed, time(1), "mix-and-match", "1.1.0").holds(name).await;
    }
}

#[tokio::test]
async fn a_line_that_is_held_back_from_one_plugin_is_mix_and_match() {
    let old = Fixture::with_releases();
    let mut vector =
        Vector::new("A mirror holds back the newest line of a plugin, as if it were not there.", &old);
    let mut new = old.clone();
    new.release("1.2.0", 3, ACME);
    new.publish();
    new.files.insert(layout::index("acme/guard"), old.files[&layout::index("acme/guard")].clone());
    vector.visit(&new, time(0), "ok", "mix-and-match").holds("mix-index").await;
}

#[tokio::test]
async fn a_version_that_jumps_to_the_end_of_numbers_is_a_fast_forward() {
    let mut registry = Fixture::with_releases();
    let mut vector =
        Vector::new("A thief of the snapshot key signs a version that nothing could follow.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.version = (1 << 53) - 1;
    registry.publish();
    vector.visit(&registry, time(1), "fast-forward", "1.1.0").holds("fast-forward").await;
}

#[tokio::test]
async fn after_a_fast_forward_within_the_limit_new_keys_bring_the_registry_back() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("A thief moves the version forward; the root replaces the key.", &registry);
    let mut stolen = registry.clone();
    stolen.version += 1_000_000;
    stolen.publish();
    vector.visit(&stolen, time(0), "ok", "1.1.0");
    // Without new keys the honest snapshot is a rollback for whoever saw the thief's.
    registry.publish();
    vector.visit(&registry, time(1), "rollback", "1.1.0");
    registry.rotate(&[ROOT], |root| {
        root.keys.remove(&id(SNAPSHOT));
        root.keys.insert(id(STRANGER), public(STRANGER));
        root.roles.snapshot = role(&[STRANGER], 1);
    });
    registry.snapshot_key = STRANGER;
    registry.publish();
    vector.visit(&registry, time(2), "ok", "1.1.0").holds("fast-forward-recovery").await;
}

#[tokio::test]
async fn a_root_without_the_old_keys_is_no_rotation() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("Somebody publishes a next root with keys of their own.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.rotate(&[STRANGER], |root| {
        root.keys.insert(id(STRANGER), public(STRANGER));
        root.roles.root = role(&[STRANGER], 1);
    });
    registry.publish();
    vector.visit(&registry, time(1), "root-old-keys", "1.1.0").holds("root-without-old-keys").await;
}

#[tokio::test]
async fn a_root_without_its_own_keys_is_no_rotation() {
    let mut registry = Fixture::with_releases();
    let mut vector =
        Vector::new("The old keys alone install a root that its own keys did not sign.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.rotate(&[ROOT], |root| {
        root.keys.insert(id(SECOND_ROOT), public(SECOND_ROOT));
        root.roles.root = role(&[ROOT, SECOND_ROOT], 2);
    });
    registry.publish();
    vector.visit(&registry, time(1), "root-new-keys", "1.1.0").holds("root-without-new-keys").await;
}

#[tokio::test]
async fn a_threshold_counts_distinct_keys_and_not_signatures() {
    let mut registry = Fixture::with_releases();
    registry.rotate(&[ROOT, SECOND_ROOT], |root| {
        root.keys.insert(id(SECOND_ROOT), public(SECOND_ROOT));
        root.roles.root = role(&[ROOT, SECOND_ROOT], 2);
    });
    registry.publish();
    let mut vector = Vector::new("One of two root keys signs twice.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.rotate(&[ROOT, ROOT], |_| {});
    registry.publish();
    vector.visit(&registry, time(1), "root-old-keys", "1.1.0").holds("root-same-key-twice").await;
}

#[tokio::test]
async fn a_root_of_another_version_or_origin_is_refused() {
    for (name, origin) in [("root-version", false), ("root-origin", true)] {
        let mut registry = Fixture::with_releases();
        let mut vector = Vector::new("A signed root that is not the next one of this registry.", &registry);
        vector.visit(&registry, time(0), "ok", "1.1.0");
        registry.root.version = 2;
        let mut other = registry.root.clone();
        if origin {
            other.origin = "plugins.example/other".to_owned();
        } else {
            other.version = 3;
        }
        registry.files.insert(layout::root(2), envelope(&other, &[ROOT]));
        registry.publish();
        vector.visit(&registry, time(1), "root-member", "1.1.0").holds(name).await;
    }
}

#[tokio::test]
async fn two_snapshots_of_one_version_are_an_equivocation() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("Two clients are shown two snapshots of one version.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.version -= 1;
    registry.expires = time(29);
    registry.publish();
    vector.visit(&registry, time(1), "equivocation", "1.1.0").holds("equivocation").await;
}

#[tokio::test]
async fn a_log_that_was_rewritten_is_a_fork_and_a_shorter_one_a_rollback() {
    let registry = Fixture::with_releases();
    let rewritten = {
        let mut other = Fixture::new();
        other.release("1.0.1", 1, ACME);
        other.release("1.1.0", 2, ACME);
        other.release("1.2.0", 3, ACME);
        other.version = registry.version;
        other.publish();
        other
    };
    let mut vector = Vector::new("The holder of the snapshot key rewrites the first line.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0").visit(&rewritten, time(1), "fork", "rewritten");
    vector.holds("fork").await;
    let mut shorter = registry.clone();
    shorter.lines.pop();
    shorter.publish();
    let mut vector = Vector::new("The holder of the snapshot key takes the last line back.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0").visit(&shorter, time(1), "rollback", "rewritten");
    vector.holds("rollback-log").await;
}

#[tokio::test]
async fn a_log_begins_anew_only_by_the_word_of_the_root() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("After a theft the root begins a new epoch of the log.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.lines.clear();
    registry.rotate(&[ROOT], |root| root.epoch = 2);
    registry.release("1.0.0", 1, ACME);
    registry.publish();
    vector.visit(&registry, time(1), "ok", "1.0.0").holds("new-epoch").await;
}

#[tokio::test]
async fn a_checkpoint_of_another_log_or_another_key_is_refused() {
    for (name, origin, seed) in [
        ("checkpoint-origin", "plugins.example/other", SNAPSHOT),
        ("checkpoint-key", "plugins.example/main", STRANGER),
    ] {
        let mut registry = Fixture::with_releases();
        let mut vector = Vector::new("The snapshot carries a checkpoint that is not of its log.", &registry);
        vector.visit(&registry, time(0), "ok", "1.1.0");
        registry.publish();
        let mut snapshot = registry.published();
        let root = merkle::root(&registry.hashes());
        let size = snapshot.log.size;
        snapshot.checkpoint = fixture::note(&Checkpoint { origin: origin.to_owned(), size, root }, seed);
        registry.put_snapshot(&snapshot);
        vector.visit(&registry, time(1), "checkpoint", "1.1.0").holds(name).await;
    }
}

#[tokio::test]
async fn a_yanked_release_is_not_chosen() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("The newest release is yanked, then the other one.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.yank("1.1.0", 2);
    registry.publish();
    vector.visit(&registry, time(1), "ok", "1.0.0");
    registry.yank("1.0.0", 1);
    registry.publish();
    vector.visit(&registry, time(2), "ok", "no-version").holds("yank").await;
}

#[tokio::test]
async fn a_revoked_release_is_refused() {
    let mut registry = Fixture::new();
    let line = registry.release("1.0.0", 1, ACME);
    registry.publish();
    for (name, digest) in [("revoke-release", line.release), ("revoke-component", line.component)] {
        let mut registry = registry.clone();
        let mut vector = Vector::new("The only release is revoked.", &registry);
        vector.visit(&registry, time(0), "ok", "1.0.0");
        registry.revocations.version += 1;
        registry.revocations.releases =
            vec![RevokedRelease { digest, reason: "steals".to_owned(), at: time(1) }];
        registry.publish();
        vector.visit(&registry, time(1), "ok", "revoked").holds(name).await;
    }
}

#[tokio::test]
async fn a_revoked_key_takes_its_later_releases_with_it_and_leaves_the_earlier_ones() {
    let mut registry = Fixture::with_releases();
    let mut vector =
        Vector::new("The key of acme is revoked from line 1 of the log on, then wholly.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    let revoked = |from_log| RevokedKey { key: id(ACME), from_log, reason: "stolen".to_owned(), at: time(1) };
    registry.revocations.version += 1;
    registry.revocations.keys = vec![revoked(1)];
    registry.publish();
    vector.visit(&registry, time(1), "ok", "1.0.0");
    registry.revocations.version += 1;
    registry.revocations.keys = vec![revoked(0)];
    registry.publish();
    vector.visit(&registry, time(2), "ok", "no-version").holds("revoke-key").await;
}

#[tokio::test]
async fn a_revocation_that_disappears_is_withdrawn_and_stays() {
    let mut registry = Fixture::new();
    let line = registry.release("1.0.0", 1, ACME);
    registry.revocations.releases =
        vec![RevokedRelease { digest: line.release, reason: "steals".to_owned(), at: time(0) }];
    registry.publish();
    let mut vector = Vector::new("A thief of the revoke key takes a revocation back.", &registry);
    vector.visit(&registry, time(0), "ok", "revoked");
    registry.revocations.version += 1;
    registry.revocations.releases.clear();
    registry.publish();
    vector.visit(&registry, time(1), "withdrawn", "revoked");
    registry.rotate(&[ROOT], |root| {
        root.keys.remove(&id(REVOKE));
        root.keys.insert(id(STRANGER), public(STRANGER));
        root.roles.revoke = role(&[STRANGER], 1);
    });
    registry.publish();
    let revocations = envelope(&registry.revocations, &[STRANGER]);
    registry.files.insert(layout::revocations(registry.revocations.version), revocations);
    vector.visit(&registry, time(2), "ok", "1.0.0").holds("withdrawn").await;
}

#[tokio::test]
async fn a_release_by_a_key_that_is_not_delegated_is_refused() {
    let mut registry = Fixture::new();
    registry.release("1.0.0", 1, STRANGER);
    registry.publish();
    let mut vector = Vector::new("The registry lists a release of a stranger.", &registry);
    vector.visit(&registry, time(0), "ok", "signature").holds("not-delegated").await;
}

#[tokio::test]
async fn a_key_that_was_rotated_out_keeps_what_it_signed_and_signs_nothing_new() {
    let mut registry = Fixture::with_releases();
    let mut vector = Vector::new("acme changes its key at line 2 of the log.", &registry);
    let periods = registry.delegations.namespaces.get_mut("acme/*").unwrap();
    periods[0].until = Some(2);
    periods.push(crate::document::Period {
        keys: vec![public(ACME_NEW)],
        threshold: 1,
        since: 2,
        until: None,
    });
    registry.delegations.version += 1;
    registry.publish();
    vector.visit(&registry, time(0), "ok", "1.1.0");
    let mut by_new = registry.clone();
    by_new.release("1.2.0", 3, ACME_NEW);
    by_new.publish();
    vector.visit(&by_new, time(1), "ok", "1.2.0");
    vector.holds("key-rotation").await;
    let mut vector = Vector::new("The old key of acme signs after it was rotated out.", &registry);
    vector.visit(&registry, time(0), "ok", "1.1.0");
    registry.release("1.2.0", 3, ACME);
    registry.publish();
    vector.visit(&registry, time(1), "ok", "signature").holds("key-rotated-out").await;
}

#[tokio::test]
async fn a_root_that_is_not_the_one_that_was_named_is_no_first_use() {
    let registry = Fixture::with_releases();
    let mut vector = Vector::new("The first visit meets another registry.", &registry);
    let mut other = Fixture::with_releases();
    other.root.expires = time(364);
    other.put_root(&[ROOT]);
    vector.visit(&other, time(0), "fingerprint", "never-seen").holds("fingerprint").await;
}
