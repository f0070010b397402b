//! The only place that makes HTTP clients.
