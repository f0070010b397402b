use super::*;

/// GW-03: a child that exits at once is started at most six times in a minute, ever more slowly.
#[test]
fn a_crash_loop_ends_after_six_starts_in_a_minute() {
    let mut backoff = Backoff::new(BackoffRules::default());
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    loop {
        backoff.started(now);
        match backoff.failed(now, 0.0) {
            Next::After(pause) => {
                pauses.push(pause);
                now += pause;
            }
            Next::GiveUp => break,
        }
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16].map(Duration::from_secs));
    backoff.forgive();
    backoff.started(now);
    assert_eq!(backoff.failed(now, 0.0), Next::After(Duration::from_secs(1)));
}

#[test]
fn a_long_healthy_run_starts_from_the_first_pause_again() {
    let mut backoff = Backoff::new(BackoffRules::default());
    let start = Instant::now();
    backoff.started(start);
    assert_eq!(backoff.failed(start, 0.0), Next::After(Duration::from_secs(1)));
    backoff.started(start);
    let later = start + Duration::from_hours(1);
    assert_eq!(backoff.failed(later, 0.0), Next::After(Duration::from_secs(1)));
}

#[test]
fn jitter_only_shortens_and_by_a_quarter_at_most() {
    let mut backoff = Backoff::new(BackoffRules::default());
    let now = Instant::now();
    backoff.started(now);
    assert_eq!(backoff.failed(now, 1.0), Next::After(Duration::from_millis(750)));
}
