//! OTLP over HTTP, and webhooks: a POST that counts when the answer is 2xx.
//!
//! Redirects are not followed: the operator named one host. Bounds: 30 s an exchange, 64 KiB of an answer.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use toolgate_base::Secret;
use toolgate_config::SinkFormat;
use toolgate_net::{ClientOptions, Url, causes, client, is_loopback};
use toolgate_store::ExportedRow;

use super::{Target, lines, text};
use crate::{SinkError, row};

/// One exchange.
const EXCHANGE: Duration = Duration::from_secs(30);
/// How much of an answer is read.
const MAX_ANSWER: usize = 64 * 1024;

pub(super) struct Http {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    body: Body,
}

/// What a request carries.
enum Body {
    Otlp,
    Lines { name: String, format: SinkFormat },
}

impl Http {
    pub(super) fn otlp(url: &str, headers: &[(String, Secret)]) -> Result<Self, SinkError> {
        Self::new(url, headers, Body::Otlp)
    }

    pub(super) fn webhook(
        url: &str,
        headers: &[(String, Secret)],
        name: &str,
        format: SinkFormat,
    ) -> Result<Self, SinkError> {
        Self::new(url, headers, Body::Lines { name: name.to_owned(), format })
    }

    fn new(url: &str, secrets: &[(String, Secret)], body: Body) -> Result<Self, SinkError> {
        let url = Url::parse(url).map_err(|error| SinkError::Receiver(format!("no URL: {error}")))?;
        let options = ClientOptions {
            total_timeout: Some(EXCHANGE),
            https_only: !url.host_str().is_some_and(is_loopback),
            ..ClientOptions::default()
        };
        let client = client(&options).map_err(|error| SinkError::Receiver(error.to_string()))?;
        let mut headers = HeaderMap::new();
        for (name, secret) in secrets {
            let unusable = || SinkError::Receiver(format!("the header `{name}` cannot be sent"));
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable())?;
            let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| unusable())?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        Ok(Self { client, url, headers, body })
    }

    fn request(&self, rows: &[ExportedRow]) -> Result<reqwest::RequestBuilder, SinkError> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        Ok(match &self.body {
            Body::Otlp => request.header(CONTENT_TYPE, "application/json").body(otlp(rows)?.to_string()),
            Body::Lines { name, format } => request
                .header(CONTENT_TYPE, "application/x-ndjson")
                .header("toolgate-sink", name)
                .body(lines(rows, *format)?),
        })
    }
}

#[async_trait]
impl Target for Http {
    async fn deliver(&mut self, rows: &[ExportedRow]) -> Result<Option<String>, SinkError> {
        let place = self.url.host_str().unwrap_or_default().to_owned();
        // The URL may hold a token in its query, so no error repeats it.
        let failed =
            |error: reqwest::Error| SinkError::Receiver(format!("{place}: {}", causes(&error.without_url())));
        let mut answer = self.request(rows)?.send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(SinkError::Receiver(format!("{place} answered {}", answer.status())));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(failed)? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_ANSWER {
                break;
            }
        }
        Ok(match self.body {
            Body::Otlp => rejected(&bytes),
            Body::Lines { .. } => None,
        })
    }
}

/// What a collector took in part. It must not be sent again (OTLP, "partial success"), and is told.
fn rejected(answer: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(answer).ok()?;
    let partial = answer.get("partialSuccess")?;
    let count = match partial.get("rejectedLogRecords")? {
        Value::String(text) => text.parse().ok()?,
        number => number.as_u64()?,
    };
    let why = partial.get("errorMessage").and_then(Value::as_str).unwrap_or("no reason");
    (count > 0).then(|| format!("the collector rejected {count} rows: {why}"))
}

/// The logs request of OTLP 1.x in its JSON form: 64-bit numbers are strings.
fn otlp(rows: &[ExportedRow]) -> Result<Value, SinkError> {
    let records = rows.iter().map(|row| {
        let (number, word) = row::severity(row).otlp();
        let at = (i128::from(row.created_at_ms) * 1_000_000).to_string();
        Ok(json!({
            "timeUnixNano": at,
            "observedTimeUnixNano": at,
            "severityNumber": number,
            "severityText": word,
            "eventName": format!("toolgate.{}", row::event(row)),
            "body": { "stringValue": text(row, SinkFormat::Toolgate)? },
            "attributes": row::attributes(row),
        }))
    });
    let records = records.collect::<Result<Vec<Value>, SinkError>>()?;
    Ok(json!({ "resourceLogs": [{
        "resource": { "attributes": [row::attribute("service.name", "toolgate")] },
        "scopeLogs": [{
            "scope": { "name": "toolgate.audit", "version": env!("CARGO_PKG_VERSION") },
            "logRecords": records,
        }],
    }] }))
}
