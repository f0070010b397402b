//! Why a front door did not open, or closed by itself.

use std::io;
use std::net::SocketAddr;

/// A front door failed. Faults of one client never appear here: they end that client's request.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is reachable from other machines and nothing protects it.
    #[error(
        "refusing to listen on {0}: other machines can reach it and this version serves no TLS. Listen on \
         127.0.0.1 or [::1], or put a proxy that terminates TLS in front and set serve.behind_proxy: true \
         together with serve.allowed_hosts"
    )]
    NotLoopback(SocketAddr),
    /// Behind a proxy, but no name is allowed in `Host`, so every request would be refused.
    #[error(
        "refusing to listen on {0} behind a proxy without serve.allowed_hosts: name the hosts that clients \
         use to reach the proxy, for example serve.allowed_hosts: [mcp.example.com]"
    )]
    NoAllowedHosts(SocketAddr),
    /// The operating system did not give the address.
    #[error("cannot listen on {address}: {source}; choose another address with serve.listen or --listen")]
    Bind {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the operating system said.
        source: io::Error,
    },
    /// The pipe to the client broke while writing.
    #[error("cannot write to the client: {0}")]
    Write(io::Error),
    /// The pipe from the client broke while reading.
    #[error("cannot read from the client: {0}")]
    Read(io::Error),
}
