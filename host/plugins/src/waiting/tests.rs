use std::time::Duration;

use super::*;

#[test]
fn a_call_runs_apart_with_and_without_a_runtime() {
    assert_eq!(apart(|| 1), Some(1));
    for mut builder in
        [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()]
    {
        let runtime = builder.enable_all().build().unwrap();
        assert_eq!(runtime.block_on(async { apart(|| 2) }), Some(2));
    }
}

#[test]
fn a_call_that_waits_does_not_hold_what_else_the_runtime_has_to_do() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let (done, seen) = std::sync::mpsc::channel();
        let waits = tokio::spawn(async move { apart(|| seen.recv_timeout(Duration::from_secs(20)).is_ok()) });
        // The only worker waits for this task, which it has to hand to another thread.
        let other = tokio::spawn(async move { done.send(()).unwrap() });
        other.await.unwrap();
        assert_eq!(waits.await.unwrap(), Some(true));
    });
}
