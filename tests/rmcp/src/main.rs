//! A server and a client that know rmcp and nothing of Toolgate, for the matrix in `tests/peers`.
//!
//! `serve stdio` and `serve http` offer the surface that every server of the matrix offers; `http`
//! listens on the loopback address alone. `drive` reads jobs from standard
//! input, one JSON object a line, and prints what came back (`client.rs`).
// It is a program for tests: it prints, and it indexes JSON values, which never panics.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::indexing_slicing)]

mod changes;
mod client;
mod server;
mod surface;

use std::process::ExitCode;

/// What any of the modes can fail with.
pub(crate) type Failure = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    let mode: Vec<String> = std::env::args().skip(1).collect();
    let mode: Vec<&str> = mode.iter().map(String::as_str).collect();
    let ended = match mode.as_slice() {
        ["serve", "stdio"] => server::over_stdio().await,
        ["serve", "http", port] => server::over_http(port).await,
        ["drive"] => client::drive().await,
        _ => Err("usage: toolgate-rmcp-peer serve stdio, serve http PORT, or drive".into()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolgate-rmcp-peer: {error}");
            ExitCode::FAILURE
        }
    }
}
