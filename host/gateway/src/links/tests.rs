use super::*;

fn health(restarts: &Restarts) -> Health {
    Link::new(restarts).health.into_inner().unwrap()
}

#[test]
fn gw_03_a_server_that_keeps_failing_is_given_up_and_says_why() {
    let mut health = health(&Restarts::default());
    let mut now = Instant::now();
    let mut starts = 0;
    for _ in 0..600 {
        if health.start(now).is_ok() {
            starts += 1;
            health.failed(now, "exit status 1".into(), 0.0);
        }
        now += Duration::from_millis(100);
    }
    assert!((3..=6).contains(&starts), "{starts} starts in 60 s");
    assert!(health.start(now).is_err_and(|reason| reason.contains("exit status 1")));
}

#[test]
fn gw_03_a_server_that_ends_after_each_start_comes_back_ever_later_and_is_then_given_up() {
    let mut health = health(&Restarts::default());
    let mut now = Instant::now();
    let mut pauses = Vec::new();
    loop {
        assert!(health.start(now).is_ok(), "it may start after {pauses:?}");
        health.succeeded();
        health.ended_for_now(now, "exit status 1".into(), 0.0);
        let Some(Standing::Ended(due)) = health.next else { break };
        pauses.push(due.duration_since(now).as_secs());
        now = due;
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16], "six starts within a minute");
    assert_eq!(health.next, Some(Standing::GivenUp));
    assert!(health.start(now).is_err_and(|reason| reason.contains("mcp reconnect")));
    health.anew();
    assert!(health.start(now).is_ok(), "somebody asked");
}

#[test]
fn who_needs_a_server_that_ended_does_not_wait_for_its_pause_and_who_needs_one_that_failed_does() {
    let mut ended = health(&Restarts::default());
    let now = Instant::now();
    ended.ended_for_now(now, "it ended".into(), 0.0);
    assert!(ended.start(now).is_ok());
    let mut failed = health(&Restarts::default());
    failed.failed(now, "no such file".into(), 0.0);
    assert!(failed.start(now).is_err_and(|reason| reason.contains("no such file")));
}

#[test]
fn jitter_takes_up_to_a_quarter_off_a_pause() {
    let now = Instant::now();
    let due = |jitter| {
        let mut health = health(&Restarts::default());
        health.ended_for_now(now, "it ended".into(), jitter);
        match health.next {
            Some(Standing::Ended(due)) => due.duration_since(now),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((due(0.0), due(1.0)), (Duration::from_secs(1), Duration::from_millis(750)));
}

#[test]
fn a_server_that_stood_long_begins_with_the_first_pause_again() {
    let mut health = health(&Restarts::default());
    let mut now = Instant::now();
    for expected in [1, 2] {
        health.start(now).unwrap();
        health.ended_for_now(now, "it ended".into(), 0.0);
        let Some(Standing::Ended(due)) = health.next else { panic!("{:?}", health.next) };
        assert_eq!(due.duration_since(now).as_secs(), expected);
        now = due;
    }
    health.start(now).unwrap();
    health.succeeded();
    now += Duration::from_secs(61);
    health.ended_for_now(now, "it ended".into(), 0.0);
    assert_eq!(health.next, Some(Standing::Ended(now + Duration::from_secs(1))));
}

#[test]
fn the_last_error_stays_visible_when_it_is_over() {
    let link = Link::new(&Restarts::default());
    link.with_health(|health| health.failed(Instant::now(), "no such file".into(), 0.0));
    assert_eq!(link.standing().0.as_deref(), Some("no such file"));
    link.with_health(Health::succeeded);
    assert_eq!(link.standing(), (None, None));
    let last = link.last_error().unwrap();
    assert_eq!(last.reason, "no such file");
    assert!(last.at.ends_with('Z') && last.at.starts_with("20"), "{last:?}");
}
