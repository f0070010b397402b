use super::*;

#[test]
fn only_the_packages_of_wasi_0_2_that_can_be_empty_are_offered() {
    for name in ["wasi:cli/environment@0.2.0", "wasi:io/streams@0.2.6", "wasi:sockets/tcp@0.2.3"] {
        assert!(offers(name), "{name}");
    }
    for name in [
        "wasi:http/outgoing-handler@0.2.0",
        "wasi:cli/environment@0.3.0",
        "wasi:cli/environment@0.2.0-rc-2023-11-10",
        "wasi:cli/environment",
        "wasi:keyvalue/store@0.2.0",
        "acme:cli/environment@0.2.0",
    ] {
        assert!(!offers(name), "{name}");
    }
}

#[test]
fn what_is_printed_becomes_lines_whatever_it_is_cut_into() {
    let mut lines = Lines { plugin: "test/guest".into(), pending: Vec::new(), written: 0 };
    lines.take(b"one\ntw");
    lines.take(b"o\n\n");
    assert_eq!((lines.written, lines.pending.len()), (2, 0));
    lines.take(&vec![b'x'; 2 * MAX_LOG_LINE + 1]);
    assert_eq!((lines.written, lines.pending.len()), (4, 1), "a line without an end is cut");
    lines.take(&b"y\n".repeat(1000));
    assert_eq!(lines.pending.len(), 0);
}
