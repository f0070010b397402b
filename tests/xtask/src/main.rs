//! Checks and builds that belong to the project itself.

fn main() {}
