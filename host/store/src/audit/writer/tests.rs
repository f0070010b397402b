use std::future::Future as _;
use std::sync::Arc;
use std::time::Instant;

use crate::audit::event::Event;
use crate::audit::log::tests::log;
use crate::audit::row::AuditRow;
use crate::audit::writer::Writer;
use crate::database::Durability;
use crate::testing::{Bench, call, digest, run};
use crate::{AuditReader, Filter, Store, StoreError, StoredRow};

/// AUD-001: what was awaited is there, in the order it was handed over.
#[test]
fn an_awaited_row_is_committed_when_it_resolves() {
    let bench = Bench::new();
    run(async {
        let first = bench.store().append(AuditRow::called(&call(), &digest("{}"))).await.unwrap();
        let rows = bench.store().reader().unwrap().tail(10, &Filter::default()).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].id, rows[0].seq), (first.id, first.seq));
        bench.store().append_detached(AuditRow::completed(&call(), false));
        bench.store().flush().await;
        let rows = bench.store().reader().unwrap().tail(10, &Filter::default()).unwrap();
        let events: Vec<&str> = rows.iter().map(StoredRow::event).collect();
        assert_eq!(events, ["mcp_called", "mcp_completed"]);
    });
}

#[test]
fn dropping_the_store_writes_what_waits() {
    let mut bench = Bench::new();
    for _ in 0..500 {
        bench.store().append_detached(AuditRow::cancelled(&call()));
    }
    bench.close();
    let report = bench.verify();
    assert!(report.is_intact());
    assert_eq!(report.rows, 500);
}

#[test]
fn rows_of_many_tasks_are_committed_together_and_stay_one_chain() {
    let bench = Bench::new();
    let store = Arc::new(bench.another("load"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let rows = 20_000usize;
    let started = Instant::now();
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..100 {
            let store = Arc::clone(&store);
            tasks.push(tokio::spawn(async move {
                for number in 0..rows / 100 {
                    let row = AuditRow::called(&call(), &digest(&number.to_string()));
                    store.append(row).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    let spent = started.elapsed();
    // A figure for the reader; no test fails on a time.
    let a_second = rows as u128 * 1_000_000 / spent.as_micros().max(1);
    println!("{rows} awaited rows in {spent:?}: {a_second} a second");
    drop(store);
    let report = bench.verify();
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!(report.rows, rows as u64);
}

/// FT-09: a row that cannot be written is an error to whoever waits, so that the call is refused.
#[test]
fn a_locked_database_refuses_the_waiting_and_keeps_the_others() {
    let bench = Bench::new();
    let blocker = bench.behind_its_back(crate::AUDIT_DB);
    blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
    run(async {
        bench.store().append_detached(AuditRow::completed(&call(), false));
        let error = bench.store().append(AuditRow::called(&call(), &digest("{}"))).await.unwrap_err();
        assert!(matches!(error, StoreError::NotRecorded(_)), "{error}");
        assert!(error.to_string().contains("locked by another process"), "{error}");
        blocker.execute_batch("ROLLBACK").unwrap();
        // The next row that can be written takes the kept one with it.
        bench.store().append(AuditRow::cancelled(&call())).await.unwrap();
        bench.store().flush().await;
    });
    let rows = bench.store().reader().unwrap().tail(10, &Filter::default()).unwrap();
    let mut events: Vec<&str> = rows.iter().map(StoredRow::event).collect();
    events.sort_unstable();
    assert_eq!(events, ["mcp_cancelled", "mcp_completed"], "the refused row is not there");
    assert!(bench.verify().is_intact());
}

#[test]
fn a_full_disk_refuses_the_call_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path(), "gateway");
    log.limit_pages(9);
    let writer = Writer::with(log, Durability::Process).unwrap();
    let error = run(async {
        loop {
            let row = AuditRow::new(Event::McpFailed).with("error", "x".repeat(8_000));
            if let Err(error) = writer.append(row).await {
                break error;
            }
        }
    });
    assert!(error.to_string().contains("full"), "{error}");
    drop(writer);
    assert!(Store::verify(dir.path()).unwrap().is_intact());
}

#[test]
fn lost_rows_are_counted_in_a_row_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::with(log(dir.path(), "gateway"), Durability::Process).unwrap();
    writer.shared.lost.fetch_add(3, std::sync::atomic::Ordering::Relaxed);
    run(async {
        writer.append(AuditRow::cancelled(&call())).await.unwrap();
        writer.flush().await;
    });
    let rows = AuditReader::open(dir.path()).unwrap().tail(5, &Filter::default()).unwrap();
    let gap = rows.iter().find(|row| row.event() == "audit_gap").unwrap();
    assert_eq!(gap.details["lost"], 3);
}

#[test]
fn a_row_nobody_awaits_shares_the_commit_of_the_next_call() {
    let bench = Bench::new();
    run(async {
        for _ in 0..50 {
            bench.store().append(AuditRow::called(&call(), &digest("{}"))).await.unwrap();
            bench.store().append_detached(AuditRow::completed(&call(), false));
        }
        bench.store().flush().await;
    });
    let rows = bench.store().reader().unwrap().tail(200, &Filter::default()).unwrap();
    let events: Vec<&str> = rows.iter().map(StoredRow::event).collect();
    assert_eq!(events, ["mcp_called", "mcp_completed"].repeat(50), "and the order stays");
}

#[test]
fn a_row_nobody_awaits_is_written_although_nothing_follows() {
    let bench = Bench::new();
    bench.store().append_detached(AuditRow::cancelled(&call()));
    let reader = bench.store().reader().unwrap();
    let written = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        reader.last_id().unwrap() == 1
    });
    assert!(written);
}

/// A commit that would have to wait for another process is not waited for on a thread that serves
/// others: the one thread of this runtime goes on, and the row is there when the lock is gone.
#[test]
fn a_caller_never_waits_for_another_process_itself() {
    let bench = Bench::new();
    let blocker = bench.behind_its_back(crate::AUDIT_DB);
    run(async {
        bench.store().append(AuditRow::cancelled(&call())).await.unwrap();
        blocker.execute_batch("BEGIN IMMEDIATE").unwrap();
        let row = bench.store().append(AuditRow::called(&call(), &digest("{}")));
        let unlock = async {
            for _ in 0..5 {
                tokio::task::yield_now().await;
            }
            blocker.execute_batch("ROLLBACK").unwrap();
        };
        let (written, ()) = tokio::join!(row, unlock);
        written.unwrap();
    });
    assert!(bench.verify().is_intact());
}

/// A caller that goes away between its row and the commit leaves the row to the thread.
#[test]
fn a_row_whose_caller_has_gone_is_written_all_the_same() {
    let bench = Bench::new();
    run(async {
        let mut row = Box::pin(bench.store().append(AuditRow::called(&call(), &digest("{}"))));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(row.as_mut().poll(context))).await;
        assert!(polled.is_pending(), "it gives way before it commits");
        drop(row);
    });
    let reader = bench.store().reader().unwrap();
    let written = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        reader.last_id().unwrap() == 1
    });
    assert!(written);
}

/// Giving way costs a part of a commit, so one who was alone for a while commits at once.
#[test]
fn a_caller_who_was_alone_for_a_while_does_not_give_way() {
    let bench = Bench::new();
    run(async {
        for _ in 0..24 {
            bench.store().append(AuditRow::cancelled(&call())).await.unwrap();
        }
        let mut row = Box::pin(bench.store().append(AuditRow::cancelled(&call())));
        let polled = std::future::poll_fn(|context| std::task::Poll::Ready(row.as_mut().poll(context))).await;
        assert!(polled.is_ready());
    });
}

#[test]
fn a_quiet_log_is_anchored_with_each_commit() {
    let bench = Bench::new();
    run(async { bench.store().append(AuditRow::cancelled(&call())).await.unwrap() });
    assert_eq!(bench.verify().chains[0].anchored_seq, Some(1));
}

/// In a busy log the callers leave the anchor to the thread, which needs no further row to move it.
#[test]
fn a_busy_log_is_anchored_to_its_last_row_although_nothing_follows() {
    let bench = Bench::new();
    run(async {
        for _ in 0..50 {
            bench.store().append(AuditRow::cancelled(&call())).await.unwrap();
        }
    });
    let anchored = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        let report = bench.verify();
        assert!(report.is_intact(), "an anchor that is behind contradicts nothing: {:?}", report.findings);
        report.chains[0].anchored_seq == Some(50)
    });
    assert!(anchored);
}

/// With a sync for each commit, callers leave all commits to the thread.
#[test]
fn rows_that_are_synced_are_written_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let writer = Writer::with(log(dir.path(), "gateway"), Durability::Disk).unwrap();
    run(async {
        for _ in 0..5 {
            writer.append(AuditRow::cancelled(&call())).await.unwrap();
        }
    });
    drop(writer);
    let report = Store::verify(dir.path()).unwrap();
    assert_eq!((report.rows, report.is_intact()), (5, true));
}
