//! kill -9 in the middle of writing, with this test binary as the process that is killed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::testing::{call, digest};
use crate::{AuditRow, Store};

/// Names the data directory to the child.
const DIRECTORY: &str = "TOOLGATE_TEST_STORE_DIR";
const ROUNDS: u64 = 8;

/// Not a test by itself: the process that [`every_acknowledged_row_survives_kill_9`] kills.
#[test]
fn child_that_appends_until_it_is_killed() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let store = Arc::new(Store::open(Path::new(&directory), "gateway").unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let store = Arc::clone(&store);
                tokio::spawn(async move {
                    loop {
                        let row = AuditRow::called(&call(), &digest("{}")).with("text", "x".repeat(300));
                        let position = store.append(row).await.unwrap();
                        // One write a line, so that the parent never reads half of one.
                        let line = format!("ack {}\n", position.seq);
                        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                    }
                })
            })
            .collect();
        // None of them ends by itself; one that fails ends the child.
        if let Some(task) = tasks.into_iter().next() {
            let _ = task.await;
        }
    });
}

/// AUD-001, design section 7: a row that was acknowledged is there after kill -9, and the chain is
/// whole and goes on.
#[test]
fn every_acknowledged_row_survives_kill_9() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..ROUNDS {
        let acknowledged = appended_until_killed(dir.path(), Duration::from_millis(40 + 37 * round));
        let report = Store::verify(dir.path()).unwrap();
        assert!(report.is_intact(), "round {round}: {:?}", report.findings);
        assert_eq!(report.chains.len(), 1, "no second chain was begun: {:?}", report.chains);
        let there = report.chains[0].last_seq;
        assert!(!acknowledged.is_empty(), "round {round} wrote nothing");
        for seq in &acknowledged {
            assert!(*seq > last && *seq <= there, "round {round}: row {seq}, {there} are there");
        }
        last = there;
    }
    println!("{last} rows in {ROUNDS} rounds");
}

/// Starts the child, lets it write for a while after its first row, and kills it.
fn appended_until_killed(dir: &Path, time: Duration) -> Vec<i64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::tests::child_that_appends_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, dir)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let (first, started) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let mut acknowledged = Vec::new();
        for line in output.lines().map_while(Result::ok) {
            if let Some(seq) = line.split("ack ").nth(1).and_then(|seq| seq.parse().ok()) {
                acknowledged.push(seq);
                let _ = first.send(());
            }
        }
        acknowledged
    });
    let _ = started.recv_timeout(Duration::from_secs(20));
    std::thread::sleep(time);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap()
}
