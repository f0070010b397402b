use super::*;

fn limits() -> Limits {
    let second = Duration::from_secs(1);
    Limits { memory: 1 << 20, host_bytes: 0, call: second, init: second, wait: second, parts: Parts::POOLED }
}

fn growth() -> Growth {
    Growth::new(&limits())
}

#[test]
fn a_batch_has_the_time_of_a_call_and_a_little_for_each_request() {
    let limits = limits();
    assert_eq!(limits.batch(0), limits.call);
    assert_eq!(limits.batch(256), limits.call + Duration::from_micros(25_600));
    assert_eq!(limits.batch(usize::MAX), limits.batch(MAX_BATCH), "and never more than that of a batch");
}

#[test]
fn memory_is_counted_over_all_memories() {
    let mut growth = growth();
    assert!(growth.memory_growing(0, 1 << 19, None).unwrap());
    assert!(growth.memory_growing(0, 1 << 19, None).unwrap());
    assert!(!growth.memory_growing(1 << 19, (1 << 19) + 1, None).unwrap());
    assert_eq!(growth.met, Some("memory"));
}

#[test]
fn table_elements_are_counted_over_all_tables() {
    let mut growth = growth();
    assert!(growth.table_growing(0, MAX_TABLE_ELEMENTS, None).unwrap());
    assert!(!growth.table_growing(0, 1, None).unwrap());
    assert_eq!(growth.met, Some("table elements"));
}

#[test]
fn a_release_gets_what_it_asks_for_but_not_more_than_there_is() {
    assert_eq!(ask(0, 5, 10), 5);
    assert_eq!(ask(7, 5, 10), 7);
    assert_eq!(ask(u64::MAX, 5, 10), 10);
    assert_eq!((asked_ms(0, 5), asked_ms(3, 5), asked_ms(1_000, 5)), (5, 3, 5));
}
