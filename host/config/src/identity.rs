//! Which server an entry means: what pins and grants hold on to (design, section 9a).
//!
//! Contract: stdio = argv, working directory, names of its variables; HTTP = URL and header names in
//! lower case. Values of variables and headers do not count, so a rotated token keeps its pins;
//! anything else that changes gives another identity. The bytes are a JSON array with a domain and a
//! version in front, so that no two different entries write the same bytes.

use serde_json::json;
use toolgate_net::Url;
use toolgate_signing::Digest;

use crate::server::{Server, Transport};

#[cfg(test)]
mod tests;

const DOMAIN: &str = "toolgate/server-identity/v1";

impl Server {
    /// The digest that pins, grants and asks key on.
    pub fn identity(&self) -> Digest {
        let parts = match &self.transport {
            Transport::Stdio { command, args, env, cwd } => {
                let argv: Vec<&String> = std::iter::once(command).chain(args).collect();
                // A map keeps its names sorted.
                let names: Vec<&String> = env.keys().collect();
                let cwd = cwd.as_ref().map(|path| path.to_string_lossy());
                json!([DOMAIN, "stdio", argv, cwd, names])
            }
            Transport::StreamableHttp { url, headers } | Transport::Sse { url, headers } => {
                let url = Url::parse(url).map_or_else(|_| url.clone(), String::from);
                let mut names: Vec<String> =
                    headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
                names.sort();
                json!([DOMAIN, self.transport.name(), url, names])
            }
        };
        Digest::of(parts.to_string().as_bytes())
    }
}
