//! toolgate.yaml: strict, layered, with line and column in every error.
