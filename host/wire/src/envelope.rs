//! The envelopes of both eras: what a modern request carries in `_meta`, and what a modern result carries beside it.
//!
//! Contract: every function edits text by splicing, so whatever it does not name survives. Sources: revision
//! 2026-07-28, summed up in protocol.md 1.1 and 1.7.
//!
//! Bounds: one walk over the text for each call. Texts have passed the door; on others the functions that cannot fail
//! give the text back unchanged.

mod meta;
mod result;

pub use meta::{
    EnvelopeError, ModernMeta, add_modern_meta, modern_meta, progress_token, remove_progress_token,
    set_progress_token, strip_modern_meta,
};
pub use result::{ResultKind, complete_result, legacy_result, result_kind};

/// The stateless revision.
pub const MODERN: &str = "2026-07-28";

/// The revisions with an `initialize` handshake, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Prefix of the protocol's own `_meta` keys.
pub const META_PREFIX: &str = "io.modelcontextprotocol/";
/// `_meta` key of the revision; its presence makes a message modern.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities, an object.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// `_meta` key of the client's name and version, an object.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// `_meta` key of the log level a request asks for.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// `_meta` key of the server's name and version on a result.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// `_meta` key that ties a notification to its `subscriptions/listen` request.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// How a peer speaks (design.md 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// `initialize` handshake, revisions up to 2025-11-25.
    Legacy,
    /// Stateless, revision 2026-07-28.
    Modern,
}

impl Era {
    /// The era of a revision; `None` for one that is not known.
    pub fn of_version(version: &str) -> Option<Self> {
        if version == MODERN {
            return Some(Self::Modern);
        }
        LEGACY.contains(&version).then_some(Self::Legacy)
    }

    /// `legacy` or `modern`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl std::fmt::Display for Era {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests;
