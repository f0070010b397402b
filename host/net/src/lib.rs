//! The only place that makes HTTP clients.
//!
//! Every request Toolgate sends to an address somebody else chose goes through a client made here,
//! so that four promises hold in one place:
//! - TLS is rustls with the ring provider, given explicitly; no process-wide default is read or set;
//! - no proxy is taken from the environment: `HTTP_PROXY` in the shell of an agent must not see
//!   what the gateway sends;
//! - no redirect is followed by itself: each one is a new decision about an address;
//! - no cookie is kept: two callers never share a session by accident.
//!
//! [`address`] says to which class an address belongs; [`client()`] makes a client; [`guard`] sends
//! requests to addresses that a stranger chose; [`tls`] connects to what speaks TLS and not HTTP.

pub mod address;
mod causes;
pub mod client;
pub mod guard;
pub mod server;
pub mod tls;

pub use address::{AddressClass, class_of_host, classify, is_loopback};
pub use causes::causes;
pub use client::{ClientOptions, NetError, client};
pub use reqwest::Url;
pub use server::server_tls;
pub use tls::{TlsError, TlsStream, tls_connect};
