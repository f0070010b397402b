//! The WebAssembly host: engine, capabilities, worlds, limits, trust and the native-code cache.
