//! The catalog, the one decision point, asks, sessions and the path of one call.
