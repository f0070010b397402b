use super::*;

#[tokio::test]
async fn so_many_start_at_a_time_and_one_that_is_done_makes_room() {
    let starts = Starts::default();
    let mut turns = Vec::new();
    for _ in 0..AT_ONCE {
        turns.push(starts.turn().await);
    }
    let next = tokio::time::timeout(LONGEST / 6, starts.turn()).await;
    assert!(next.is_err(), "all places are taken");
    turns.pop();
    let next = tokio::time::timeout(LONGEST / 2, starts.turn()).await;
    assert!(next.is_ok(), "one was given back");
}

#[tokio::test]
async fn those_that_hang_hold_nobody_up_for_longer_than_a_while() {
    let starts = Starts::default();
    let mut hanging = Vec::new();
    for _ in 0..AT_ONCE {
        hanging.push(starts.turn().await);
    }
    let begun = tokio::time::Instant::now();
    for _ in 0..AT_ONCE {
        hanging.push(starts.turn().await);
    }
    assert!(begun.elapsed() >= LONGEST, "{:?}", begun.elapsed());
}
