//! Which rows a reader wants, and what a query gives.

/// The most rows that one read gives.
pub const MAX_ROWS: usize = 10_000;

/// The filters of `audit tail` and `audit query`; all that are set must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// `details.server`, exactly.
    pub server: Option<String>,
    /// The original tool name or the exposed one, exactly.
    pub tool: Option<String>,
    /// The persona, exactly.
    pub persona: Option<String>,
    /// The action, or its first word for a whole family: `tool` finds `tool.execute`.
    pub action: Option<String>,
    /// The beginning of `details.event`: `mcp_` finds all that concerns servers (AUD-016).
    pub event_prefix: Option<String>,
    /// Rows committed at or after this time, in seconds since the Unix epoch.
    pub since: Option<i64>,
}

/// The condition of a [`Filter`], with parameters 1 to 6 in the order of its fields. A filter
/// that is not set is NULL and lets everything through.
pub(crate) const CONDITION: &str = "\
    (?1 IS NULL OR details ->> '$.server' = ?1) \
    AND (?2 IS NULL OR tool = ?2 OR details ->> '$.exposed' = ?2) \
    AND (?3 IS NULL OR persona_id = ?3) \
    AND (?4 IS NULL OR action = ?4 OR substr(action, 1, length(?4) + 1) = ?4 || '.') \
    AND (?5 IS NULL OR substr(details ->> '$.event', 1, length(?5)) = ?5) \
    AND (?6 IS NULL OR created_at >= ?6)";
