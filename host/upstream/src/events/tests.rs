use super::*;

fn notification(method: &str) -> Notification {
    Notification { method: method.to_owned(), params: None }
}

/// PR-20: two hundred `list_changed` notifications are one or two events, and the reader never waits.
#[tokio::test]
async fn a_storm_of_list_changed_is_one_event() {
    let (out, mut events) = mpsc::channel(1);
    let queue = Arc::new(EventQueue::default());
    queue.deliver("s".into(), out);
    for _ in 0..200 {
        queue.notification(&notification("notifications/tools/list_changed"));
    }
    queue.close("done");
    let mut changed = 0;
    while let Some(event) = events.recv().await {
        match event {
            Event::ListChanged(ListKind::Tools) => changed += 1,
            Event::Closed { reason } => assert_eq!(reason, "done"),
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!((1..=2).contains(&changed), "{changed} events");
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_but_never_blocks() {
    let (out, mut events) = mpsc::channel(1);
    let queue = Arc::new(EventQueue::default());
    queue.deliver("s".into(), out);
    for _ in 0..MAX_WAITING + 10 {
        queue.notification(&notification("notifications/message"));
    }
    queue.close("done");
    let mut seen = 0;
    while let Some(event) = events.recv().await {
        seen += usize::from(matches!(event, Event::Notification(_)));
    }
    assert_eq!(seen, MAX_WAITING);
}
