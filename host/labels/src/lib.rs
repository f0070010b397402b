//! Capability labels and exposed names; compiled into the host and into guests.
