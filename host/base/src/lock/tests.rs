use std::time::{Duration, Instant};

use super::{FileLock, LockError};

#[test]
fn a_second_holder_waits_and_is_told_who_holds_it() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("lock");
    let held = FileLock::exclusive(&path, Duration::ZERO).unwrap();
    let started = Instant::now();
    let error = FileLock::exclusive(&path, Duration::from_millis(30)).unwrap_err();
    assert!(started.elapsed() >= Duration::from_millis(30));
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    assert!(matches!(error, LockError::Busy { .. }));
    drop(held);
    FileLock::exclusive(&path, Duration::ZERO).unwrap();
}

#[test]
fn a_waiting_holder_gets_the_lock_when_the_first_lets_go() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("lock");
    let held = FileLock::exclusive(&path, Duration::ZERO).unwrap();
    let waiting = std::thread::spawn({
        let path = path.clone();
        move || FileLock::exclusive(&path, Duration::from_secs(20)).is_ok()
    });
    std::thread::sleep(Duration::from_millis(20));
    drop(held);
    assert!(waiting.join().unwrap());
}

#[test]
fn a_lock_in_a_missing_directory_says_where() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("none/lock");
    let error = FileLock::exclusive(&path, Duration::ZERO).unwrap_err();
    assert!(error.to_string().contains("none/lock"), "{error}");
}
