//! End-to-end tests on the built binary.
