//! A static server for a registry's files, for tests, for a machine's own clients and behind a web server
//! that speaks TLS.
//!
//! Contract: GET and HEAD of files that a registry has, and of nothing else: no directory is listed, no
//! path with a dot at the start of a part, no link out of the directory is followed. Plain HTTP is for a
//! loopback address only, any other needs a certificate: what is served is signed, but who asks for what is
//! not everybody's business.
//!
//! Bounds: 256 connections, 16 KiB of a request's head, 30 s for the handshake and for the head to arrive; files go out in pieces of
//! 64 KiB, as fast as the reader takes them.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::error::RegistryError;
use crate::layout;

const MAX_CONNECTIONS: usize = 256;
const MAX_HEAD: usize = 16 * 1024;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after the system refuses to accept, for example when it is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
const PIECE: usize = 64 * 1024;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// A bound server of one registry.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    directory: Arc<Path>,
    tls: Option<TlsAcceptor>,
}

impl Server {
    /// Takes an address: a loopback one, or any with a certificate ([`toolgate_net::server_tls`]).
    ///
    /// # Errors
    /// [`RegistryError::Source`] for another address, or for a directory without a registry.
    pub async fn bind(
        directory: &Path,
        address: SocketAddr,
        tls: Option<Arc<ServerConfig>>,
    ) -> Result<Self, RegistryError> {
        if tls.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(RegistryError::Source {
                what: format!("http://{address}"),
                why: "plain HTTP is spoken on a loopback address only; give a certificate with its key, put a web server with TLS in front, or serve the directory as static files".to_owned(),
            });
        }
        let failed = |doing, source| RegistryError::Io { path: directory.to_owned(), doing, source };
        let real = directory.canonicalize().map_err(|error| failed("read", error))?;
        if !real.join(layout::CONFIG).is_file() {
            return Err(RegistryError::Source {
                what: directory.display().to_string(),
                why: "it has no config.json; `toolgate registry init` makes a registry".to_owned(),
            });
        }
        let bound = TcpListener::bind(address).await.and_then(|listener| {
            let address = listener.local_addr()?;
            Ok((listener, address))
        });
        let (listener, address) = bound.map_err(|error| RegistryError::Unreachable {
            url: format!("http://{address}"),
            detail: format!("it cannot be listened on: {error}"),
        })?;
        Ok(Self { listener, address, directory: real.into(), tls: tls.map(TlsAcceptor::from) })
    }

    /// The address in use; with port 0, the port that was given.
    pub const fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where clients find it.
    pub fn url(&self) -> String {
        format!("{}://{}/", if self.tls.is_some() { "https" } else { "http" }, self.address)
    }

    /// Serves until `stop` ends; then open connections are dropped.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        tokio::select! {
            () = self.accept() => {}
            () = stop => {}
        }
    }

    async fn accept(&self) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match self.listener.accept().await {
                Ok((stream, _)) => {
                    let (directory, tls) = (Arc::clone(&self.directory), self.tls.clone());
                    tokio::spawn(async move {
                        match tls {
                            None => connection(directory, stream).await,
                            Some(tls) => match timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
                                Ok(Ok(stream)) => connection(directory, stream).await,
                                Ok(Err(error)) => tracing::debug!(%error, "a handshake came to nothing"),
                                Err(_) => tracing::debug!("a handshake took too long"),
                            },
                        }
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn connection<S>(directory: Arc<Path>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let directory = Arc::clone(&directory);
        async move { Ok::<_, Infallible>(answer(&directory, request.method(), request.uri().path()).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD);
    if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(directory: &Path, method: &Method, path: &str) -> Response<Body> {
    if method != Method::GET && method != Method::HEAD {
        let mut refused = plain(StatusCode::METHOD_NOT_ALLOWED, "a registry is read with GET\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let path = path.trim_start_matches('/');
    let found = match file_of(directory, path) {
        Some(file) => open(directory, &file).await,
        None => None,
    };
    let Some((file, length)) = found else {
        return plain(StatusCode::NOT_FOUND, "there is no such file in this registry\n");
    };
    let body: Body = if method == Method::HEAD {
        empty()
    } else {
        BodyExt::boxed_unsync(StreamBody::new(pieces(file, length).map(|piece| piece.map(Frame::data))))
    };
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type(path)));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching(path)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The file of a path that a registry can have.
fn file_of(directory: &Path, path: &str) -> Option<PathBuf> {
    let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let parts: Vec<&str> = path.split('/').collect();
    let sound =
        parts.iter().all(|part| !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain));
    let known = match parts.as_slice() {
        [file] => [layout::CONFIG, layout::FRESHNESS, layout::CHECKPOINT].contains(file),
        [top, ..] => {
            ["root", "snapshot", "delegations", "revocations", "index", "blob", "tile"].contains(top)
        }
        [] => false,
    };
    (sound && known).then(|| directory.join(path))
}

/// An open file inside the directory, and its length.
async fn open(directory: &Path, path: &Path) -> Option<(File, u64)> {
    let real = tokio::fs::canonicalize(path).await.ok()?;
    if !real.starts_with(directory) {
        return None;
    }
    let file = File::open(real).await.ok()?;
    let found = file.metadata().await.ok()?;
    found.is_file().then_some((file, found.len()))
}

/// The first `length` bytes of a file: one that grows meanwhile is cut where it was announced.
fn pieces(file: File, length: u64) -> impl Stream<Item = io::Result<Bytes>> {
    stream::try_unfold((file, length), |(mut file, left)| async move {
        if left == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; PIECE.min(usize::try_from(left).unwrap_or(PIECE))];
        let read = file.read(&mut piece).await?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file became shorter"));
        }
        piece.truncate(read);
        Ok(Some((Bytes::from(piece), (file, left - read as u64))))
    })
}

fn media_type(path: &str) -> &'static str {
    match path {
        layout::CHECKPOINT => "text/plain; charset=utf-8",
        _ if Path::new(path).extension().is_some_and(|end| end == "json") => "application/json",
        _ if path.starts_with("index/") => "application/x-ndjson",
        _ => "application/octet-stream",
    }
}

/// What is named by digest or number never changes.
fn caching(path: &str) -> &'static str {
    let kept = ["blob/", "root/", "delegations/", "revocations/"];
    if kept.iter().any(|top| path.starts_with(top)) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(never);
    let mut response = Response::new(BodyExt::boxed_unsync(body));
    *response.status_mut() = status;
    response
}

fn empty() -> Body {
    BodyExt::boxed_unsync(Full::new(Bytes::new()).map_err(never))
}

fn never(error: Infallible) -> io::Error {
    match error {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_a_registry_has_are_served() {
        let directory = Path::new("/srv");
        for good in [
            "config.json",
            "root/1.json",
            "index/ac/me/acme/guard",
            "tile/0/000.p/3",
            "blob/00ff",
            "checkpoint",
        ] {
            assert!(file_of(directory, good).is_some(), "{good}");
        }
        for bad in [
            "",
            "/",
            ".lock",
            "proposal/root.json",
            "root/",
            "root//1.json",
            "root/../config.json",
            "root/..%2f",
            "index/.tmp",
            "../etc/passwd",
            "blob",
            "other.json",
            "root/A.json",
            "blob/a\0b",
        ] {
            assert!(file_of(directory, bad).is_none(), "{bad}");
        }
    }

    #[tokio::test]
    async fn an_address_that_others_reach_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("config.json"), "{}").unwrap();
        for address in ["0.0.0.0:0", "192.0.2.1:0", "[::]:0"] {
            let bound = Server::bind(directory.path(), address.parse().unwrap(), None).await;
            assert_eq!(bound.err().unwrap().code(), "source", "{address}");
        }
        Server::bind(directory.path(), "127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    }

    #[tokio::test]
    async fn a_link_out_of_the_directory_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap().join("registry");
        std::fs::create_dir_all(root.join("blob")).unwrap();
        std::fs::write(directory.path().join("secret"), "secret").unwrap();
        std::os::unix::fs::symlink(directory.path().join("secret"), root.join("blob/aa")).unwrap();
        std::fs::write(root.join("blob/bb"), "bytes").unwrap();
        assert_eq!(answer(&root, &Method::GET, "/blob/aa").await.status(), StatusCode::NOT_FOUND);
        let found = answer(&root, &Method::GET, "/blob/bb").await;
        assert_eq!(found.into_body().collect().await.unwrap().to_bytes(), "bytes");
        assert_eq!(answer(&root, &Method::POST, "/blob/bb").await.status(), StatusCode::METHOD_NOT_ALLOWED);
    }
}
