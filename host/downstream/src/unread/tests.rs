use super::*;

const MIB: usize = 1 << 20;

fn reply_of(bytes: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "x".repeat(bytes))
}

/// What goes out for a reply, and the replies that were lost.
fn send(client: &Arc<Waits>, bytes: usize) -> (Option<Waiting>, usize) {
    let mut lost = 0;
    let sent = client.reply(reply_of(bytes), &mut |_| lost += 1);
    (sent, lost)
}

#[test]
fn a_client_that_does_not_read_keeps_its_budget_and_hears_what_was_lost() {
    let unread = Arc::new(Unread::new(4 * MIB, 64 * MIB));
    let client = unread.client();
    let kept: Vec<_> = (0..3).map(|_| send(&client, MIB)).collect();
    assert!(kept.iter().all(|(_, lost)| *lost == 0));
    assert!(client.is_crowded());
    let (over, lost) = send(&client, 2 * MIB);
    let over = over.unwrap();
    assert_eq!(lost, 1);
    assert!(over.text.contains(r#""id":7"#) && over.text.contains(OF_ONE), "{}", over.text);
    assert!(over.text.len() < 1_024);
    // What is short always passes, and another client notices nothing.
    assert_eq!(send(&client, 100).1, 0);
    assert_eq!(send(&unread.client(), MIB).1, 0);
    drop(kept);
    assert!(!client.is_crowded());
    assert_eq!(unread.total.load(Ordering::Acquire), 0);
}

#[test]
fn a_client_of_whom_nothing_waits_has_room_where_those_who_do_not_read_have_filled_theirs() {
    let unread = Arc::new(Unread::new(4 * MIB, 8 * MIB));
    let stuck = [unread.client(), unread.client()];
    let kept: Vec<_> = stuck.iter().flat_map(|client| (0..8).map(|_| send(client, MIB))).collect();
    assert!(unread.total.load(Ordering::Acquire) <= 6 * MIB + MIB);
    assert_eq!(send(&unread.client(), MIB / 2).1, 0);
    drop(kept);
}

#[test]
fn of_a_batch_only_the_long_replies_are_lost_and_a_message_that_answers_nothing_has_no_error() {
    let unread = Arc::new(Unread::new(MIB, 64 * MIB));
    let client = unread.client();
    let first = send(&client, MIB / 2);
    let batch = format!("[{},{}]", reply_of(1), reply_of(MIB));
    let mut lost = 0;
    let sent = client.reply(batch, &mut |_| lost += 1).unwrap();
    assert_eq!(lost, 1);
    let parts = edit::elements(&sent.text).unwrap();
    assert!(parts[0].contains(r#""result":"x""#) && parts[1].contains("reply_dropped"), "{parts:?}");
    let question = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":"{}"}}"#, "x".repeat(MIB));
    assert!(client.reply(question, &mut |_| {}).is_none());
    drop(first);
}

#[tokio::test]
async fn who_waits_for_room_is_woken_when_a_reply_was_written() {
    let unread = Arc::new(Unread::new(MIB, 64 * MIB));
    let client = unread.client();
    let held = send(&client, MIB - 100).0.unwrap().into_bytes();
    let waiting = tokio::spawn({
        let client = Arc::clone(&client);
        async move { client.room().await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    drop(held);
    waiting.await.unwrap();
    let named = unread.client_named("token:a");
    assert!(Arc::ptr_eq(&named, &unread.client_named("token:a")), "its connections share one budget");
}
