//! What a good host does with bad servers: one test for each row of the field reports.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod handshake;
mod http;
mod http_server;
mod session;
mod stdio;
mod stopping;
mod support;
