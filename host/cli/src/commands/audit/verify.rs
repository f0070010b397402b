//! `toolgate audit verify`: of the log, or of a file that was taken from it.

use std::io::Read as _;
use std::path::Path;

use toolgate_store::{AuditReader, Checkpoint, SegmentFiles, VerifyOptions, VerifyReport};

use crate::args::AuditVerify;
use crate::context;
use crate::exit::{Code, Failure};
use crate::keys::read_public;
use crate::output::{self, Format};

/// Longest checkpoint, bytes; as an envelope may be.
const MAX_CHECKPOINT: u64 = 512 * 1024;

/// Verifies and prints; findings are exit 5.
pub(super) fn run(data_dir: &Path, args: &AuditVerify) -> Result<(), Failure> {
    let keys = args.key.iter().map(|key| read_public(key)).collect::<Result<Vec<_>, _>>()?;
    let segments = match &args.segments {
        Some(directory) => SegmentFiles::In(directory.clone()),
        None if args.without_segments => SegmentFiles::Elsewhere,
        None => SegmentFiles::Beside,
    };
    let mut options = VerifyOptions { segments, checkpoints: Vec::new() };
    for file in &args.against {
        let name = file.display().to_string();
        let checkpoint = Checkpoint::open(&read(file)?, &keys).map_err(|error| {
            Failure::integrity(format!("{name} does not count: {error}"))
                .hint("--key is the key of whoever signs checkpoints, from a place you trust")
        })?;
        options.checkpoints.push((name, checkpoint));
    }
    let report = match &args.file {
        Some(file) => AuditReader::verify_file(file, &options),
        None => AuditReader::verify(data_dir, &options),
    }
    .map_err(context::store_failure)?;
    match Format::json(args.json) {
        Format::Json => output::json(&report)?,
        Format::Text => print(&report)?,
    }
    if report.is_intact() {
        return Ok(());
    }
    let message = format!("the audit log is not whole: {}", output::count(report.findings.len(), "finding"));
    Err(Failure::new(Code::Integrity, message)
        .hint("keep a copy of audit.db and audit.heads before anything else is written"))
}

fn print(report: &VerifyReport) -> Result<(), Failure> {
    if !report.is_intact() {
        return report.findings.iter().try_for_each(|finding| output::line(&finding.to_string()));
    }
    let rows = output::count(usize::try_from(report.rows).unwrap_or(usize::MAX), "row");
    output::line(&format!("whole: {rows} in {}", output::count(report.chains.len(), "chain")))?;
    for segment in &report.segments {
        let read = if segment.read { "" } else { ", not read" };
        output::line(&format!(
            "  segment {} has rows {} to {}{read}",
            segment.number, segment.first_id, segment.last_id
        ))?;
    }
    for chain in &report.chains {
        output::line(&format!("  {} ends at {} with {}", chain.chain, chain.last_seq, chain.head))?;
    }
    report.checkpoints.iter().try_for_each(|name| output::line(&format!("  agrees with {name}")))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|open| open.take(MAX_CHECKPOINT + 1).read_to_end(&mut bytes))
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))?;
    Ok(bytes)
}
