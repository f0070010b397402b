//! Agents over HTTP: one endpoint for both eras, `/mcp`, `/mcp/<persona>`, `/mcp/<persona>/<server>`.
//!
//! **Contract.** Each request is checked in one order: Host and Origin, then the token, then whether
//! path, headers and `_meta` agree with it, and only then is its body read. After that it is either a
//! legacy request of a session, or a modern request that stands alone.
//!
//! **Bounds.** Connections, sessions, requests per session, the size of a body and the time it may take
//! are limited ([`HttpOptions`]); every stream is fed through a short queue, so that a client that stops
//! reading holds up only itself. A client that closes its connection cancels what ran on it.
//!
//! **Threat.** Web pages reach loopback ports, by DNS rebinding even with a matching origin (GW-05); a
//! stolen session id must not work without the token it was made with; a slow or silent peer must not
//! cost more than its place among the connections.

mod admit;
mod answer;
mod body;
mod exchange;
mod guard;
mod legacy;
mod modern;
mod service;
mod sessions;
mod share;
mod stream;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::Backend;
use crate::error::ServeError;
use crate::options::HttpOptions;
use guard::Guard;
use sessions::Sessions;
use share::Shares;

/// Time for an idle connection to be used again. Longer than common clients keep idle connections, so
/// that they close first and lose no request. A connection's first request has less time,
/// [`HttpOptions::head_timeout`].
const IDLE_TIMEOUT: Duration = Duration::from_secs(75);
/// Bytes of one request's head.
const MAX_HEAD: usize = 64 * 1024;
/// Pause after the system refuses to accept, for example when it is out of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What every request needs.
struct Shared {
    backend: Arc<dyn Backend>,
    options: HttpOptions,
    guard: Guard,
    sessions: Sessions,
    shares: Arc<Shares>,
    /// Connections and calls; the server has ended when it is empty.
    tasks: TaskTracker,
    /// Parent of every running call.
    calls: CancellationToken,
}

/// Listens, checks and serves as [`HttpServer::bind`] and [`HttpServer::run`] say, in one step.
pub async fn serve_http(backend: impl Backend, options: HttpOptions) -> Result<(), ServeError> {
    HttpServer::bind(options).await?.run(backend).await
}

/// A bound listener that serves nobody yet, so that its address can be told before it is needed.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
    options: HttpOptions,
}

impl HttpServer {
    /// Takes the address, unless other machines could reach it unprotected.
    pub async fn bind(options: HttpOptions) -> Result<Self, ServeError> {
        check_address(&options)?;
        let bind = |source| ServeError::Bind { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        Ok(Self { listener, address, options })
    }

    /// The address in use; with port 0 in the options, the port that was given.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `options.shutdown` fires: then streams end, calls have their grace, and sessions are
    /// forgotten.
    pub async fn run(self, backend: impl Backend) -> Result<(), ServeError> {
        let Self { listener, options, .. } = self;
        let shutdown = options.shutdown.clone();
        let backend: Arc<dyn Backend> = Arc::new(backend);
        let shared = Arc::new(Shared {
            sessions: Sessions::new(&options, Arc::clone(&backend)),
            shares: Shares::new(options.max_running),
            backend,
            guard: Guard::new(&options.allowed_hosts, &options.allowed_origins),
            tasks: TaskTracker::new(),
            calls: CancellationToken::new(),
            options,
        });
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = accept_all(&shared, &listener) => {}
            () = shared.sessions.reap_forever() => {}
        }
        drop(listener);
        close(&shared).await;
        Ok(())
    }
}

/// Plain HTTP on an address that others reach would show every token on the way.
fn check_address(options: &HttpOptions) -> Result<(), ServeError> {
    if options.listen.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    if !options.behind_proxy {
        return Err(ServeError::NotLoopback(options.listen));
    }
    if options.allowed_hosts.is_empty() {
        return Err(ServeError::NoAllowedHosts(options.listen));
    }
    Ok(())
}

async fn accept_all(shared: &Arc<Shared>, listener: &TcpListener) {
    let places = Arc::new(Semaphore::new(shared.options.max_connections));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let shared_here = Arc::clone(shared);
                shared.tasks.spawn(async move {
                    serve_connection(shared_here, stream).await;
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

async fn serve_connection(shared: Arc<Shared>, stream: TcpStream) {
    // Replies are written whole, so waiting to fill a packet only adds latency.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let shutdown = shared.options.shutdown.clone();
    // Who connects and says nothing must not keep a place for as long as a client that is known.
    let heard = Arc::new(AtomicBool::new(false));
    let (patience, spoke) = (shared.options.head_timeout, Arc::clone(&heard));
    let silent = async move {
        tokio::time::sleep(patience).await;
        if spoke.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    };
    let service = service_fn(move |request| {
        heard.store(true, Ordering::Relaxed);
        let shared = Arc::clone(&shared);
        async move { Ok::<_, Infallible>(service::handle(&shared, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(IDLE_TIMEOUT).max_buf_size(MAX_HEAD);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = silent => {
            tracing::debug!(?patience, "a connection without a request is closed (serve.head_timeout)");
            return;
        }
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn close(shared: &Shared) {
    shared.tasks.close();
    // A server that is stuck in its greeting must not hold the end up (HT-27).
    shared.backend.stop_opening();
    if tokio::time::timeout(shared.options.grace, shared.tasks.wait()).await.is_err() {
        shared.calls.cancel();
        shared.sessions.end_all();
        if tokio::time::timeout(Duration::from_secs(1), shared.tasks.wait()).await.is_err() {
            tracing::warn!("some connections did not end in time and are dropped");
        }
    }
    shared.sessions.end_all();
}

#[cfg(test)]
mod tests;
