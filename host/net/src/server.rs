//! TLS towards clients: the certificate of a server, as files hold it.
//!
//! Contract: rustls with ring and its safe defaults, HTTP/1.1; no certificate of clients is asked for. A key
//! that does not belong to the certificate is refused when the configuration is made.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::client::NetError;

/// A configuration from PEM: the server's certificate first, then those between it and its authority, and
/// the private key.
///
/// # Errors
/// [`NetError::Certificate`] with what cannot be used; never with a part of the key.
pub fn server_tls(certificates: &[u8], key: &[u8]) -> Result<Arc<ServerConfig>, NetError> {
    let unusable = |what: String| NetError::Certificate(what);
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(certificates).collect();
    let chain = chain.map_err(|error| unusable(error.to_string()))?;
    if chain.is_empty() {
        return Err(unusable("there is no certificate in PEM form".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key)
        .map_err(|_| unusable("there is no private key in PEM form".to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(NetError::Tls)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(error.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
