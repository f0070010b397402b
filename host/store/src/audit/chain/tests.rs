use super::{Columns, GENESIS, hash};

const ROW: Columns<'static> = Columns {
    id: 5,
    chain: b"gateway",
    seq: 3,
    run_id: Some(b"run"),
    thread_id: None,
    persona_id: Some(b"default"),
    action: b"tool.execute",
    tool: Some(b"echo"),
    request_id: Some(b"1"),
    details: br#"{"event":"mcp_called"}"#,
    created_at: 1_795_910_400,
    created_at_ms: 1_795_910_400_123,
};

#[test]
fn every_column_and_the_row_before_count() {
    let original = hash(&GENESIS, &ROW);
    let others = [
        hash(&[1; 32], &ROW),
        hash(&GENESIS, &Columns { id: 6, ..ROW }),
        hash(&GENESIS, &Columns { chain: b"gatewaz", ..ROW }),
        hash(&GENESIS, &Columns { seq: 4, ..ROW }),
        hash(&GENESIS, &Columns { run_id: None, ..ROW }),
        hash(&GENESIS, &Columns { thread_id: Some(b""), ..ROW }),
        hash(&GENESIS, &Columns { persona_id: Some(b"defaulu"), ..ROW }),
        hash(&GENESIS, &Columns { action: b"tool.executf", ..ROW }),
        hash(&GENESIS, &Columns { tool: Some(b"echp"), ..ROW }),
        hash(&GENESIS, &Columns { request_id: Some(b"\"1\""), ..ROW }),
        hash(&GENESIS, &Columns { details: b"{}", ..ROW }),
        hash(&GENESIS, &Columns { created_at: 0, ..ROW }),
        hash(&GENESIS, &Columns { created_at_ms: 0, ..ROW }),
    ];
    for (index, other) in others.iter().enumerate() {
        assert_ne!(*other, original, "change {index}");
    }
}

#[test]
fn a_byte_that_moves_to_the_next_column_is_another_row() {
    let one = Columns { run_id: Some(b"ab"), thread_id: Some(b"c"), ..ROW };
    let other = Columns { run_id: Some(b"a"), thread_id: Some(b"bc"), ..ROW };
    assert_ne!(hash(&GENESIS, &one), hash(&GENESIS, &other));
}

/// Computed with another program from the rule in the module's comment. If this changes, every log
/// that exists becomes unverifiable: a new rule needs a new format number.
#[test]
fn the_encoding_is_the_published_one() {
    assert_eq!(
        hex::encode(hash(&GENESIS, &ROW)),
        "d6967c4a0ee3620fa31943410e4132f5dc0c076bb88eb9173f3760a0fc8298f7"
    );
}
