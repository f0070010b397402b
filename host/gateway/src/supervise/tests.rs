use super::*;

#[tokio::test]
async fn pr_20_what_a_server_says_again_and_again_is_one_listing_and_what_it_says_later_another() {
    let mut listings = Listings::new();
    let quiet = tokio::time::timeout(Duration::from_millis(300), listings.due()).await;
    assert!(quiet.is_err(), "it said nothing");
    listings.last = Instant::now();
    for _ in 0..200 {
        listings.changed.insert(ListKind::Tools);
    }
    // Whatever comes in between does not put it off.
    for _ in 0..3 {
        let early = tokio::time::timeout(RELIST_PAUSE / 10, listings.due()).await;
        assert!(early.is_err(), "not before the pause is over");
    }
    listings.due().await;
    let (done, running) = tokio::sync::oneshot::channel::<()>();
    listings.changed.clear();
    listings.running = Some(tokio::spawn(async move { drop(running.await) }));
    listings.changed.insert(ListKind::Prompts);
    let held = tokio::time::timeout(RELIST_PAUSE * 2, listings.due()).await;
    assert!(held.is_err(), "one at a time");
    done.send(()).unwrap();
    listings.due().await;
    assert!(listings.running.is_none() && listings.changed.contains(&ListKind::Prompts));
}
