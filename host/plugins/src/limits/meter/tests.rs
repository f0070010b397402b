use super::*;

const MS: Duration = Duration::from_millis(1);

#[test]
fn a_guest_that_runs_through_its_extra_slice_is_interrupted() {
    let mut meter = Meter::start(5 * MS);
    assert_eq!(meter.ticks(), 6);
    assert_eq!(meter.judge(6 * MS, Some(6 * MS)), Verdict::Continue(6));
    assert_eq!(meter.judge(12 * MS, Some(12 * MS)), Verdict::Interrupt);
}

#[test]
fn a_guest_that_the_machine_did_not_let_run_goes_on_until_the_wall() {
    let mut meter = Meter::start(5 * MS);
    let mut wall = 6 * MS;
    while wall < meter.wall() {
        assert_eq!(meter.judge(wall, Some(MS)), Verdict::Continue(6));
        wall += 6 * MS;
    }
    assert_eq!(meter.judge(wall, Some(MS)), Verdict::Interrupt);
}

#[test]
fn time_of_the_host_is_not_the_guests() {
    let mut meter = Meter::start(5 * MS);
    meter.judge(6 * MS, Some(6 * MS));
    meter.host_worked(6 * MS);
    assert_eq!(meter.judge(12 * MS, Some(12 * MS)), Verdict::Continue(6));
    assert_eq!(meter.judge(18 * MS, Some(18 * MS)), Verdict::Interrupt);
}

#[test]
fn without_running_times_the_clock_decides() {
    assert_eq!(Meter::start(5 * MS).judge(6 * MS, None), Verdict::Interrupt);
}

#[test]
fn the_host_does_not_work_for_one_call_forever() {
    let mut meter = Meter::start(5 * MS);
    meter.host_worked(4_000 * MS);
    assert_eq!(meter.judge(4_006 * MS, Some(4_000 * MS)), Verdict::Continue(6));
    meter.host_worked(4_000 * MS);
    assert_eq!(meter.judge(8_012 * MS, Some(8_000 * MS)), Verdict::Interrupt);
}
