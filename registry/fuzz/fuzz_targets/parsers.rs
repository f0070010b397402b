//! Every parser of what a registry sends, on any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    toolgate_registry::parse_everything(bytes);
});
