//! Allow lists of origins: `https://api.example.com`, `https://*.example.com`, and
//! `http://127.0.0.1:8080` where the operator names it.
//!
//! Parsed once at load. An origin is scheme, host and port, compared exactly; `*.` stands for one
//! or more whole labels in front, never for the name itself. A path, a query, a user name or any
//! other `*` is refused, so that an entry never means less than it seems to. `http` is for
//! loopback addresses and `localhost` alone.

use toolgate_net::{Url, is_loopback};

use crate::error::LoadErrorKind;

/// A list of origins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins(Vec<Origin>);

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    https: bool,
    /// Lower case; what stands behind `*.` where `below` is set.
    host: String,
    port: u16,
    below: bool,
}

impl Origins {
    /// Parses a list; `at` names it in the refusal.
    pub(crate) fn parse(at: &str, list: &[String]) -> Result<Self, LoadErrorKind> {
        list.iter()
            .map(|text| Origin::parse(text))
            .collect::<Result<_, _>>()
            .map(Self)
            .map_err(|(text, why)| LoadErrorKind::Grant(format!("{at}: `{text}` {why}")))
    }

    /// Whether a URL belongs to one of them.
    pub(crate) fn cover(&self, url: &Url) -> bool {
        Origin::of(url).is_some_and(|origin| self.0.iter().any(|entry| entry.covers(&origin)))
    }

    /// Adds the entries of another list.
    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The loopback hosts among them, as they stand in a URL.
    pub(crate) fn loopback_hosts(&self) -> Vec<String> {
        self.0.iter().filter(|origin| is_loopback(&origin.host)).map(|origin| origin.host.clone()).collect()
    }
}

impl Origin {
    fn parse(text: &str) -> Result<Self, (String, &'static str)> {
        let fail = |why| (text.to_owned(), why);
        let (scheme, rest) =
            text.split_once("://").ok_or_else(|| fail("is no origin such as https://api.example.com"))?;
        let (below, rest) = match rest.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        if rest.contains('*') {
            return Err(fail("has a `*` that is not the whole first label"));
        }
        let url = Url::parse(&format!("{scheme}://{rest}"))
            .map_err(|_| fail("is no origin such as https://api.example.com"))?;
        let plain = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !plain || rest.contains('@') || rest.ends_with('/') {
            return Err(fail("is more than scheme, host and port"));
        }
        let mut origin = Self::of(&url).ok_or_else(|| fail("is neither https nor http"))?;
        if !origin.https && (below || !is_loopback(&origin.host)) {
            return Err(fail("is plain http, which is only for a loopback address"));
        }
        if below && (origin.host.parse::<std::net::IpAddr>().is_ok() || !origin.host.contains('.')) {
            return Err(fail("covers more than the names of one owner"));
        }
        origin.below = below;
        Ok(origin)
    }

    fn of(url: &Url) -> Option<Self> {
        let https = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let host = url.host_str()?.to_ascii_lowercase();
        Some(Self { https, host, port: url.port_or_known_default()?, below: false })
    }

    /// Whether everything that `other` means is meant by this one.
    fn covers(&self, other: &Self) -> bool {
        if self.https != other.https || self.port != other.port {
            return false;
        }
        if !self.below {
            return !other.below && self.host == other.host;
        }
        let inside = other.host.strip_suffix(&self.host).is_some_and(|front| front.ends_with('.'));
        inside || (other.below && other.host == self.host)
    }
}

/// What is open of a declared list: all of it where the operator names none, else the operator's
/// entries, each of which the declared list has to cover. Loopback origins are the operator's
/// alone: a release cannot open the machine it runs on, and its author cannot know the ports there.
pub(crate) fn narrowed(
    at: &str,
    declared: &[String],
    granted: Option<&[String]>,
) -> Result<Origins, LoadErrorKind> {
    let declared = Origins::parse(&format!("its release, {at}"), declared)?;
    let Some(granted) = granted else {
        return Ok(Origins(declared.0.into_iter().filter(|origin| !is_loopback(&origin.host)).collect()));
    };
    let wanted = Origins::parse(&format!("grants.{at}"), granted)?;
    for (entry, text) in wanted.0.iter().zip(granted) {
        if !is_loopback(&entry.host) && !declared.0.iter().any(|origin| origin.covers(entry)) {
            return Err(LoadErrorKind::Grant(format!(
                "grants.{at}: `{text}` is not among what its release declares"
            )));
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests;
