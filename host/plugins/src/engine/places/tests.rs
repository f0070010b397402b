use super::*;

#[test]
fn a_full_house_makes_the_next_wait_and_then_say_no() {
    let places = Arc::new(Places::new(1));
    let place = places.take(Duration::ZERO).unwrap();
    assert!(places.take(Duration::from_millis(5)).is_none());
    assert!(!places.is_roomy());
    drop(place);
    assert!(places.take(Duration::ZERO).is_some());
    assert!(places.is_roomy());
}

#[test]
fn a_freed_place_wakes_who_waits() {
    let places = Arc::new(Places::new(1));
    let place = places.take(Duration::ZERO).unwrap();
    let waiting = {
        let places = Arc::clone(&places);
        std::thread::spawn(move || places.take(Duration::from_secs(30)).is_some())
    };
    drop(place);
    assert!(waiting.join().unwrap());
}
