//! Syslog over TLS: RFC 5424 messages in RFC 5425 frames.
//!
//! The protocol acknowledges nothing. A batch counts as taken when it was written, flushed, and the
//! connection still stands a moment later; what a receiver loses after that is lost. Where that matters,
//! use OTLP or a webhook.

use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use toolgate_config::SinkFormat;
use toolgate_net::{TlsStream, tls_connect};
use toolgate_store::ExportedRow;

use super::{Target, text};
use crate::{SinkError, row};

/// Until a connection stands.
const CONNECT: Duration = Duration::from_secs(10);
/// Until a batch is written.
const WRITE: Duration = Duration::from_secs(30);
/// How long the connection is watched after a batch.
const WATCH: Duration = Duration::from_millis(50);

pub(super) struct Syslog {
    host: String,
    port: u16,
    format: SinkFormat,
    stream: Option<TlsStream<TcpStream>>,
}

impl Syslog {
    pub(super) fn new(host: String, port: u16, format: SinkFormat) -> Self {
        Self { host, port, format, stream: None }
    }

    async fn send(&mut self, frames: &[u8]) -> Result<(), String> {
        let stream = if let Some(stream) = &mut self.stream {
            stream
        } else {
            let made =
                tls_connect(&self.host, self.port, CONNECT).await.map_err(|error| error.to_string())?;
            self.stream.insert(made)
        };
        let written = async {
            stream.write_all(frames).await?;
            stream.flush().await
        };
        match tokio::time::timeout(WRITE, written).await {
            Ok(written) => written.map_err(|error| error.to_string())?,
            Err(_) => return Err(format!("nothing was taken within {} s", WRITE.as_secs())),
        }
        let mut byte = [0u8; 64];
        match tokio::time::timeout(WATCH, stream.read(&mut byte)).await {
            // Silence is what a receiver says, and some say something.
            Err(_) => Ok(()),
            Ok(Ok(read)) if read > 0 => Ok(()),
            Ok(Ok(_)) => Err("the receiver closed the connection".to_owned()),
            Ok(Err(error)) => Err(error.to_string()),
        }
    }
}

#[async_trait]
impl Target for Syslog {
    async fn deliver(&mut self, rows: &[ExportedRow]) -> Result<Option<String>, SinkError> {
        let mut frames = Vec::new();
        for row in rows {
            let message = row::syslog_message(row, &text(row, self.format)?);
            // RFC 5425, section 4.3: the length in bytes, a space, the message.
            frames.extend_from_slice(message.len().to_string().as_bytes());
            frames.push(b' ');
            frames.extend_from_slice(message.as_bytes());
        }
        let sent = self.send(&frames).await;
        sent.map_err(|reason| {
            self.stream = None;
            SinkError::Receiver(format!("syslog at {}:{}: {reason}", self.host, self.port))
        })?;
        Ok(None)
    }
}
