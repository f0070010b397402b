//! The two sizes that bound every message. Both are configurable by the operator; the defaults are design.md 9a's.

/// Bounds on one message, in either direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest accepted message in bytes, without its line ending (design.md 9a: 16 MiB).
    pub max_message: usize,
    /// Most containers that may be open at once; the outermost object counts as one (design.md 3.1: 64).
    pub max_depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_message: 16 * 1024 * 1024, max_depth: 64 }
    }
}
