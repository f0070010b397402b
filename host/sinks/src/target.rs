//! A receiver, whatever it speaks.

mod file;
mod http;
mod syslog;

use async_trait::async_trait;
use toolgate_config::{Sink, SinkFormat, SinkTarget};
use toolgate_store::ExportedRow;

use crate::{SinkError, row};

/// Something that takes rows.
#[async_trait]
pub(crate) trait Target: Send {
    /// Resolves when the receiver took all rows, with what it said beside that.
    async fn deliver(&mut self, rows: &[ExportedRow]) -> Result<Option<String>, SinkError>;
}

/// Opens the receiver of a sink.
pub(crate) fn open(sink: &Sink) -> Result<Box<dyn Target>, SinkError> {
    if !sink.missing.is_empty() {
        return Err(SinkError::Receiver(format!(
            "{} is not set; store it with `toolgate secret set NAME`",
            sink.missing.join(", ")
        )));
    }
    Ok(match &sink.target {
        SinkTarget::Jsonl { path, rotate, keep } => {
            Box::new(file::Lines::new(path.clone(), *rotate, *keep, sink.format))
        }
        SinkTarget::Syslog { host, port } => Box::new(syslog::Syslog::new(host.clone(), *port, sink.format)),
        SinkTarget::Otlp { url, headers } => Box::new(http::Http::otlp(url, headers)?),
        SinkTarget::Webhook { url, headers } => {
            Box::new(http::Http::webhook(url, headers, &sink.name, sink.format)?)
        }
    })
}

/// A row as text, without a line break.
pub(crate) fn text(row: &ExportedRow, format: SinkFormat) -> Result<String, SinkError> {
    let text = match format {
        SinkFormat::Toolgate => serde_json::to_string(row),
        SinkFormat::Ocsf => serde_json::to_string(&row::ocsf(row)),
    };
    text.map_err(|error| SinkError::Receiver(format!("row {} cannot be written: {error}", row.id)))
}

/// Rows as JSON lines.
pub(crate) fn lines(rows: &[ExportedRow], format: SinkFormat) -> Result<String, SinkError> {
    let mut lines = String::new();
    for row in rows {
        lines.push_str(&text(row, format)?);
        lines.push('\n');
    }
    Ok(lines)
}
