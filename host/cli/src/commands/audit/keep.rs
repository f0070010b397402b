//! `toolgate audit checkpoint|export|archive`: what leaves the log.

use std::io::{BufWriter, Write};
use std::path::Path;

use toolgate_base::{Clock as _, SystemClock, files};
use toolgate_config::Config;
use toolgate_signing::{Digest, seal};
use toolgate_store::{AuditReader, AuditRow, CHECKPOINT_TYPE, Checkpoint, Event, VerifyOptions};

use crate::args::{AuditArchive, AuditCheckpoint, AuditExport};
use crate::context;
use crate::exit::Failure;
use crate::output;

/// Rows that are read at a time.
const BATCH: usize = 1_000;

/// Signs the heads of a log that is whole. The row about it comes after, so that it is not in it.
pub(super) async fn checkpoint(config: &Config, args: &AuditCheckpoint) -> Result<(), Failure> {
    let signer = args.with.open()?;
    let report =
        AuditReader::verify(&config.data_dir, &VerifyOptions::default()).map_err(context::store_failure)?;
    let Some(checkpoint) = Checkpoint::of(&report, SystemClock.now_ms()) else {
        return Err(Failure::integrity(
            "the audit log is not whole, and nothing vouches for it; nothing was signed",
        )
        .hint("look at the findings: `toolgate audit verify`"));
    };
    let envelope =
        seal(CHECKPOINT_TYPE, &checkpoint.payload(), &[signer.as_ref()]).map_err(Failure::failed)?;
    match &args.out {
        Some(file) => files::create_private(file, &envelope)
            .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", file.display())))?,
        None => output::line(String::from_utf8_lossy(&envelope).trim_end())?,
    }
    let row = AuditRow::new(Event::AuditCheckpoint)
        .with("checkpoint", Digest::of(&envelope).to_string())
        .with("key", signer.public().id().as_str())
        .with("last_id", checkpoint.last_id);
    let store = context::store(config, "cli")?;
    store.append(row).await.map(drop).map_err(context::store_failure)
}

/// Writes rows as JSON lines.
pub(super) fn export(data_dir: &Path, args: &AuditExport) -> Result<(), Failure> {
    let reader = AuditReader::open(data_dir).map_err(context::store_failure)?;
    let mut last = match (&args.since, args.after) {
        (Some(since), _) => reader.last_before(super::time(since)?).map_err(context::store_failure)?,
        (None, after) => after.unwrap_or(0),
    };
    let mut out: Box<dyn Write> = match &args.out {
        Some(file) => {
            files::create_private(file, b"")
                .map_err(|error| Failure::failed(format!("{} cannot be made: {error}", file.display())))?;
            let open = std::fs::OpenOptions::new().append(true).open(file).map_err(Failure::failed)?;
            Box::new(BufWriter::new(open))
        }
        None => Box::new(std::io::stdout().lock()),
    };
    loop {
        let rows = reader.export_after(last, BATCH).map_err(context::store_failure)?;
        for row in &rows {
            last = row.id;
            let line = serde_json::to_string(row).map_err(Failure::failed)?;
            writeln!(out, "{line}").map_err(Failure::failed)?;
        }
        if rows.len() < BATCH {
            return out.flush().map_err(Failure::failed);
        }
    }
}

/// Seals old rows.
pub(super) async fn archive(config: &Config, args: &AuditArchive) -> Result<(), Failure> {
    let before = super::time(&args.before)?;
    let store = context::store(config, "cli")?;
    // What a sink has not taken stays where it reads.
    let old = store.reader().and_then(|reader| reader.last_before(before)).map_err(context::store_failure)?;
    let delivered = super::sinks::delivered(config, old)?;
    let sealed = store.archive(before, delivered).map_err(context::store_failure)?;
    // What was sealed and still counts is said again, so that the segments can be taken elsewhere.
    let carried = match sealed.last() {
        Some(last) => store.carry(last.last_id).await.map_err(context::store_failure)?,
        None => true,
    };
    if !carried {
        tracing::warn!(
            "an older segment is missing, so these have to stay: `toolgate audit verify` names it"
        );
    }
    for segment in &sealed {
        let row = AuditRow::new(Event::AuditArchived)
            .with("carried", carried)
            .with("segment", segment.number)
            .with("first_id", segment.first_id)
            .with("last_id", segment.last_id)
            .with("digest", segment.digest.as_str());
        store.append(row).await.map_err(context::store_failure)?;
    }
    if args.json {
        return output::json(&sealed);
    }
    if sealed.is_empty() {
        return output::line("nothing was sealed: no row is that old and delivered to every sink");
    }
    for segment in &sealed {
        output::line(&format!(
            "rows {} to {} are in {}",
            segment.first_id,
            segment.last_id,
            segment.file.display()
        ))?;
    }
    Ok(())
}
