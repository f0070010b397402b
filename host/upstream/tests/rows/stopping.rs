//! Nothing is left behind: stop, crash and `kill -9` (ST-12, ST-17).

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{CHILD, alive, call, open, pids, server, stdio, until};

/// A shell in front of the server, which itself is deaf to the end of its input, and a process
/// that left the group.
fn tree() -> String {
    format!(r#"exec 3<&0; setsid sleep 300 & echo $! >>"$PIDS"; "{CHILD}" serve stubborn <&3 & wait"#)
}

#[tokio::test]
async fn st_12_a_stop_leaves_no_process_of_the_tree() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let connection = open(&stdio("sh", &["-c", &tree()], &[("PIDS", &file)])).await;
    assert!(call(&connection, "any").await.is_ok());
    let all = pids(&file);
    assert!(all.len() >= 2 && all.iter().all(|pid| alive(*pid)), "{all:?}");
    let start = Instant::now();
    connection.close().await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(all.iter().all(|pid| !alive(*pid)), "verified dead when close returns");
}

#[tokio::test]
async fn st_12_the_last_handle_stops_the_tree_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let connection = open(&stdio("sh", &["-c", &tree()], &[("PIDS", &file)])).await;
    let all = pids(&file);
    drop(connection);
    until(Duration::from_secs(8), "all are gone", || all.iter().all(|pid| !alive(*pid))).await;
}

#[tokio::test]
async fn st_12_a_child_deaf_to_term_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let script =
        format!(r#"trap "" TERM; echo $$ >>"$PIDS"; "{CHILD}" serve stubborn; while :; do sleep 1; done"#);
    let connection = open(&stdio("sh", &["-c", &script], &[("PIDS", &file)])).await;
    let all = pids(&file);
    let start = Instant::now();
    connection.close().await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert!(all.iter().all(|pid| !alive(*pid)));
}

#[tokio::test]
async fn a_polite_child_is_stopped_by_the_end_of_its_input() {
    let connection = open(&server("plain", &[])).await;
    let start = Instant::now();
    connection.close().await;
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test]
async fn kill_9_of_the_gateway_takes_the_whole_tree_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pids");
    let mut gateway = tokio::process::Command::new(CHILD)
        .args(["gateway", file.to_str().unwrap(), "sh", "-c", &tree()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    BufReader::new(gateway.stdout.take().unwrap()).read_line(&mut ready).await.unwrap();
    assert_eq!(ready, "ready\n");
    let all = pids(&file);
    assert!(all.len() >= 2 && all.iter().all(|pid| alive(*pid)), "{all:?}");
    gateway.kill().await.unwrap();
    until(Duration::from_secs(8), "all are gone", || all.iter().all(|pid| !alive(*pid))).await;
}

#[tokio::test]
async fn st_17_the_container_is_stopped_before_the_client_is_killed() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    // Records what it is told; its container runs until `docker stop`.
    let fake = format!(
        r#"#!/bin/sh
echo "$@" >>"$RECORD"
if [ "$1" = run ]; then
    [ "$2" = --cidfile ] && printf abc123 >"$3"
    setsid sleep 300 &
    echo $! >>"$PIDS"
    exec "{CHILD}" serve stubborn
fi
kill "$(head -n 1 "$PIDS")"
"#
    );
    let docker = path("docker");
    std::fs::write(&docker, fake).unwrap();
    std::fs::set_permissions(&docker, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (file, record) = (path("pids"), path("record"));
    let env: [(&str, &Path); 2] = [("PIDS", &file), ("RECORD", &record)];
    let connection = open(&stdio(docker.to_str().unwrap(), &["run", "-i", "--rm", "image"], &env)).await;
    let all = pids(&file);
    assert_eq!(all.len(), 2, "the container and its client");
    let start = Instant::now();
    connection.close().await;
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    let record = std::fs::read_to_string(record).unwrap();
    let lines: Vec<&str> = record.lines().collect();
    assert!(lines[0].starts_with("run --cidfile ") && lines[0].ends_with("-i --rm image"), "{record}");
    assert_eq!(lines[1], "stop -t 1 abc123");
    assert!(all.iter().all(|pid| !alive(*pid)));
}
