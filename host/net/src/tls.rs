//! A TLS connection that is no HTTP: for receivers of log messages.
//!
//! Contract: the same roots and the same provider as every HTTP client; the certificate must be of the
//! host that was asked for, and there is no way around that. One deadline bounds resolution, TCP and TLS.
//! Nothing comes from the environment but the place of the roots.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
pub use tokio_rustls::client::TlsStream;

use crate::client::{NetError, config, localhost};

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The host is neither a name nor an address that a certificate could be of.
    #[error("`{0}` is no host name and no address")]
    Host(String),
    /// TLS could not be set up in this build.
    #[error(transparent)]
    Setup(#[from] NetError),
    /// TCP or TLS failed; the text of rustls says what is wrong with a certificate.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// It took longer than it may.
    #[error("no TLS connection within {} s", .0.as_secs())]
    Deadline(Duration),
}

/// Connects to a host and port.
pub async fn tls_connect(host: &str, port: u16, within: Duration) -> Result<TlsStream<TcpStream>, TlsError> {
    let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Host(host.to_owned()))?;
    let connector = TlsConnector::from(Arc::new(config(&[])?));
    let connected = async {
        let tcp = if host.eq_ignore_ascii_case("localhost") {
            let here = localhost().map(|address| SocketAddr::new(address.ip(), port));
            TcpStream::connect(here.as_slice()).await?
        } else {
            TcpStream::connect((host, port)).await?
        };
        tcp.set_nodelay(true)?;
        connector.connect(name, tcp).await
    };
    match tokio::time::timeout(within, connected).await {
        Ok(connected) => Ok(connected?),
        Err(_) => Err(TlsError::Deadline(within)),
    }
}
