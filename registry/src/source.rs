//! Where the files of a registry come from: a directory, or a web server.
//!
//! Threat: the server answers anything, of any length, at any pace, and sends elsewhere. Every file has a
//! limit that is held while it arrives, every request a deadline; no redirect is followed; plain HTTP is
//! for this machine alone, and which addresses are dialled is said in `reach`. Nothing that arrives is
//! believed here: that is the client's work.

use std::path::{Path, PathBuf};

use reqwest::{Method, StatusCode};
use toolgate_net::guard::Dialer;
use toolgate_net::{Url, is_loopback};

use crate::error::RegistryError;
use crate::files;
use crate::reach::{Reach, not_dialled, unsent};

/// A place with the files of a registry.
#[derive(Debug, Clone)]
pub struct Source(Place);

#[derive(Debug, Clone)]
enum Place {
    Directory(PathBuf),
    Web { base: Url, dialer: Dialer },
}

impl Source {
    /// The files in a directory of this machine.
    pub fn directory(path: impl Into<PathBuf>) -> Self {
        Self(Place::Directory(path.into()))
    }

    /// The files below a URL: https, or http to a loopback address, reached as `reach` says.
    ///
    /// # Errors
    /// [`RegistryError::Source`] with what is wrong with the URL.
    pub fn web(url: &str, reach: &Reach) -> Result<Self, RegistryError> {
        let refused = |why: &str| RegistryError::Source { what: url.to_owned(), why: why.to_owned() };
        let mut base = Url::parse(url).map_err(|error| refused(&error.to_string()))?;
        check_url(&base).map_err(refused)?;
        if base.query().is_some() || base.fragment().is_some() {
            return Err(refused("its URL has a query or a fragment"));
        }
        // `join` replaces what follows the last slash.
        if !base.path().ends_with('/') {
            base.set_path(&format!("{}/", base.path()));
        }
        let dialer = reach.dialer(&base).map_err(|why| refused(&why))?;
        Ok(Self(Place::Web { base, dialer }))
    }

    /// A URL or the path of a directory; a relative one counts from `base`.
    pub fn parse(text: &str, base: &Path, reach: &Reach) -> Result<Self, RegistryError> {
        if text.contains("://") { Self::web(text, reach) } else { Ok(Self::directory(base.join(text))) }
    }

    /// A file, at most `limit` bytes; nothing where there is none.
    pub(crate) async fn read(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        let read = self.read_head(path, limit.saturating_add(1)).await?;
        if read.as_ref().is_some_and(|bytes| bytes.len() as u64 > limit) {
            return Err(RegistryError::TooLarge { what: format!("the registry's {path}"), limit });
        }
        Ok(read)
    }

    /// At most the first `limit` bytes of a file; nothing where there is none.
    pub(crate) async fn read_head(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
        match &self.0 {
            Place::Directory(directory) => {
                let file = directory.join(path);
                let read = tokio::task::spawn_blocking(move || files::read_head(&file, limit)).await;
                read.unwrap_or_else(|error| {
                    Err(RegistryError::Unreachable { url: path.to_owned(), detail: error.to_string() })
                })
            }
            Place::Web { base, dialer } => {
                let url = base.join(path).map_err(|error| RegistryError::Source {
                    what: path.to_owned(),
                    why: error.to_string(),
                })?;
                get(dialer, &url, limit).await
            }
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Place::Directory(path) => write!(formatter, "{}", path.display()),
            Place::Web { base, .. } => write!(formatter, "{base}"),
        }
    }
}

/// https, or http to this machine; no user name in it.
pub(crate) fn check_url(url: &Url) -> Result<(), &'static str> {
    let host = url.host_str().unwrap_or_default();
    match url.scheme() {
        "https" if !host.is_empty() => {}
        "http" if is_loopback(host) => {}
        "http" => return Err("plain http is used to a loopback address only; write https"),
        _ => return Err("it is neither https nor a directory"),
    }
    if url.username().is_empty() && url.password().is_none() {
        Ok(())
    } else {
        Err("a URL with a user name or a password would end up in logs")
    }
}

/// At most the first `limit` bytes of what a URL answers; nothing where it says that there is nothing.
pub(crate) async fn get(dialer: &Dialer, url: &Url, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    let shown = url.to_string();
    let failed = |detail: String| RegistryError::Unreachable { url: shown.clone(), detail };
    let request = dialer.request(Method::GET, url.clone()).map_err(|error| not_dialled(url, &error))?;
    let response = request.send().await.map_err(|error| unsent(url, &error))?;
    match response.status() {
        StatusCode::OK => body(response, limit).await.map(Some).map_err(|error| failed(said(&error))),
        StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
        status if status.is_redirection() => {
            Err(failed(format!("it answers {status}; redirects are not followed, so give the final address")))
        }
        status => Err(failed(format!("it answers {status}"))),
    }
}

/// At most the first `limit` bytes of a body.
pub(crate) async fn body(mut response: reqwest::Response, limit: u64) -> Result<Vec<u8>, reqwest::Error> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while bytes.len() < limit
        && let Some(chunk) = response.chunk().await?
    {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(limit);
    Ok(bytes)
}

/// An error of the HTTP client with what caused it, which its own text leaves out.
pub(crate) fn said(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_https_a_directory_and_plain_http_to_this_machine_are_sources() {
        for good in [
            "https://plugins.example",
            "https://plugins.example/main/",
            "http://127.0.0.1:1/x",
            "http://[::1]/",
        ] {
            Source::web(good, &Reach::default()).unwrap();
        }
        for bad in [
            "http://plugins.example",
            "http://localhost.evil.example/",
            "ftp://plugins.example/",
            "file:///etc",
            "https://user:word@plugins.example/",
            "https://plugins.example/?x=1",
            "https://plugins.example/#x",
            "https://",
        ] {
            assert_eq!(Source::web(bad, &Reach::default()).unwrap_err().code(), "source", "{bad}");
        }
        let directory = Source::parse("./index", Path::new("/srv"), &Reach::default()).unwrap();
        assert_eq!(directory.to_string(), "/srv/./index");
    }
}
