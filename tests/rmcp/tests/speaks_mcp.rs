//! The peer is there and answers; that it is built with the tests is why this test exists.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

#[test]
fn it_answers_a_greeting_and_ends_with_its_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolgate-rmcp-peer"))
        .args(["serve", "stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    writeln!(input, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("matrix-rmcp"), "{line}");
    drop(input);
    assert!(child.wait().unwrap().success());
}
