//! Small servers on loopback addresses: files, with TLS or without, and a registry that wants a token.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// The authority that vouches for [`SERVER`], and another one that does not.
pub(crate) const CA: &str = include_str!("../tls/ca.pem");
pub(crate) const OTHER_CA: &str = include_str!("../tls/other.pem");
/// A certificate for `localhost` and 127.0.0.1, with its key; both are worth nothing elsewhere.
pub(crate) const SERVER: &str = include_str!("../tls/server.pem");
pub(crate) const SERVER_KEY: &str = include_str!("../tls/server.key");

/// An authority of a private network, and the certificate of a server there: `registry.internal`, 10.1.2.3.
pub(crate) const INSIDE_CA: &str = include_str!("../tls/inside-ca.pem");
pub(crate) const INSIDE: &str = include_str!("../tls/inside.pem");
pub(crate) const INSIDE_KEY: &str = include_str!("../tls/inside.key");

/// Accepts until it is dropped.
struct Listening {
    address: String,
    ended: Arc<AtomicBool>,
}

impl Listening {
    fn on(ip: &str, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let ended = Arc::new(AtomicBool::new(false));
        let (stop, serve) = (ended.clone(), Arc::new(serve));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let serve = serve.clone();
                std::thread::spawn(move || serve(stream));
            }
        });
        Self { address, ended }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

/// The files of a directory, until the test ends.
pub(crate) struct Files {
    pub(crate) url: String,
    /// Host and port.
    pub(crate) host: String,
    _listening: Listening,
}

impl Files {
    /// Over plain HTTP.
    pub(crate) fn serve(dir: &Path) -> Self {
        let dir = dir.to_owned();
        let listening = Listening::on("127.0.0.1", move |stream| file(&dir, stream));
        Self {
            url: format!("http://{}", listening.address),
            host: listening.address.clone(),
            _listening: listening,
        }
    }

    /// Over TLS with [`SERVER`], on this address.
    pub(crate) fn serve_tls(ip: &str, dir: &Path) -> Self {
        Self::serve_as(ip, dir, SERVER, SERVER_KEY)
    }

    /// Over TLS with this certificate, on this address.
    pub(crate) fn serve_as(ip: &str, dir: &Path, certificate: &str, key: &str) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificates = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(certificates, key)
            .unwrap();
        let (config, dir) = (Arc::new(config), dir.to_owned());
        let listening = Listening::on(ip, move |stream| {
            let connection = ServerConnection::new(config.clone()).unwrap();
            file(&dir, StreamOwned::new(connection, stream));
        });
        Self {
            url: format!("https://{}", listening.address),
            host: listening.address.clone(),
            _listening: listening,
        }
    }
}

/// One request, one file, the end.
fn file(dir: &Path, mut stream: impl Read + Write) {
    let mut lines = BufReader::new(&mut stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let path = first.split(' ').nth(1).unwrap_or_default().trim_start_matches('/').to_owned();
    let _ = lines.take_while(|line| !line.is_empty()).count();
    let (status, body) = match std::fs::read(dir.join(path)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    let _ = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&body))
        .and_then(|()| stream.flush());
}

/// In front of a registry: lets those pass who have its token, and gives one to whoever knows the password.
pub(crate) struct TokenProxy {
    pub(crate) host: String,
    /// Every request line, with the scheme of its `Authorization`.
    pub(crate) asked: Arc<Mutex<Vec<(String, String)>>>,
    _listening: Listening,
}

impl TokenProxy {
    /// `basic` is the value of `Authorization` that gets a token.
    pub(crate) fn start(behind: &str, basic: &'static str) -> Self {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (behind, seen) = (behind.to_owned(), asked.clone());
        let listening = Listening::on("127.0.0.1", move |stream| {
            let _ = pass(&behind, basic, &seen, stream);
        });
        Self { host: listening.address.clone(), asked, _listening: listening }
    }
}

fn pass(
    behind: &str,
    basic: &str,
    seen: &Mutex<Vec<(String, String)>>,
    mut stream: TcpStream,
) -> std::io::Result<()> {
    let own = stream.local_addr()?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head)? == 0 {
            return Ok(());
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        let found = text.lines().filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let (line, authorization) =
        (text.lines().next().unwrap_or_default(), header("authorization").unwrap_or_default());
    let scheme = authorization.split(' ').next().unwrap_or_default().to_owned();
    seen.lock().unwrap().push((line.to_owned(), scheme));
    let refuse = format!(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: bearer realm=\"http://{own}/token\",service=\"tests\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    if line.contains(" /token?") {
        let body = r#"{"token":"the-token"}"#;
        let given =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
        return stream.write_all(if authorization == basic { &given } else { &refuse }.as_bytes());
    }
    let length: u64 = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    if authorization != "Bearer the-token" {
        return stream.write_all(refuse.as_bytes());
    }
    let mut registry = TcpStream::connect(behind)?;
    registry.write_all(text.replacen("\r\n", "\r\nConnection: close\r\n", 1).as_bytes())?;
    registry.write_all(&body)?;
    std::io::copy(&mut registry, &mut stream).map(drop)
}
