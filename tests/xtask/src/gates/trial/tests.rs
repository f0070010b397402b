//! What is taken from the words of a failed test, and what ends with a run.

use std::process::{Command, Stdio};

use super::{end_all, words};

#[test]
fn the_words_of_a_failed_test_begin_with_its_panic() {
    let printed = "running 1 test\ntest a ... FAILED\n\n---- a stdout ----\n\nthread 'a' (7) panicked at a.rs:1:2:\nno reply\n  left: 1\nnote: run with `RUST_BACKTRACE=1`\n\nfailures:\n";
    assert_eq!(words(printed), "a.rs:1:2:\nno reply\n  left: 1");
    assert_eq!(words("killed\n"), "killed");
}

#[test]
fn what_a_run_left_behind_is_killed_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let start = |name: &str| {
        let mut command = Command::new("sleep");
        command.arg("60").env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", name);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let mut left = start(place.path().join("home").to_str().unwrap());
    let mut other = start("/nowhere");
    end_all(place.path());
    assert!(!left.wait().unwrap().success());
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}
