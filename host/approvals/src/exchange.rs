//! One exchange with the webhook: an ask as a signed POST, and what the reply means; and the POST that says
//! that an ask is closed, to which there is nothing to reply.
//!
//! Requests are signed as Standard Webhooks 1.0 has it: `webhook-id` (the ask, so that a receiver knows
//! a repetition; the ask and `.closed`), `webhook-timestamp` and `webhook-signature` (`v1,` and the base64 of HMAC-SHA256 over
//! `id.timestamp.body`). Redirects are not followed: the operator named one host.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use serde_json::json;
use sha2::Sha256;
use toolgate_base::Secret;
use toolgate_config::ApprovalWebhook;
use toolgate_net::{ClientOptions, Url, causes, client, is_loopback};
use toolgate_store::{Ask, AskDocument, AskState};

/// One exchange; a webhook may hold its reply for most of it while a person reads.
const EXCHANGE: Duration = Duration::from_secs(90);
/// One word that an ask is closed.
const WORD: Duration = Duration::from_secs(20);
/// How much of a reply is read.
const MAX_REPLY: usize = 64 * 1024;
/// How much of the arguments, and of what goes beside them, is sent, bytes.
const MAX_SENT: usize = 256 * 1024;
/// When a 202 does not say how long to wait, and the bounds of what it may say.
const AGAIN: Duration = Duration::from_secs(2);
const SOONEST: u64 = 1;
const LATEST: u64 = 60;
/// What marks a secret that is written in base64 (Standard Webhooks).
const SECRET_PREFIX: &str = "whsec_";

pub(crate) enum Reply {
    /// Nobody answered yet; ask again after so long.
    Later(Duration),
    /// An envelope.
    Answer(Vec<u8>),
}

pub(crate) struct Exchange {
    client: reqwest::Client,
    url: Url,
    place: String,
    key: Secret,
}

impl Exchange {
    pub(crate) fn new(webhook: &ApprovalWebhook) -> Result<Self, String> {
        let url = Url::parse(webhook.url.expose()).map_err(|error| format!("url: {error}"))?;
        let place = url.host_str().unwrap_or_default().to_owned();
        let options = ClientOptions {
            total_timeout: Some(EXCHANGE),
            https_only: !is_loopback(&place),
            ..ClientOptions::default()
        };
        let client = client(&options).map_err(|error| error.to_string())?;
        let exchange = Self { client, url, place, key: webhook.secret.clone() };
        exchange.sign("", 0, "").map(|_| exchange)
    }

    pub(crate) async fn post(&self, ask: &Ask, document: Option<&AskDocument>) -> Result<Reply, String> {
        let mut reply = self.send(&ask.id, &request(ask, document), EXCHANGE).await?;
        match reply.status() {
            StatusCode::OK => {}
            StatusCode::ACCEPTED => {
                let seconds =
                    reply.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
                let pause =
                    seconds.map_or(AGAIN, |seconds: u64| Duration::from_secs(seconds.clamp(SOONEST, LATEST)));
                return Ok(Reply::Later(pause));
            }
            other => {
                return Err(format!(
                    "{} answered {other}; 200 with an answer or 202 was expected",
                    self.place
                ));
            }
        }
        let mut bytes = Vec::new();
        while let Some(piece) = reply.chunk().await.map_err(|error| self.failed(error))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > MAX_REPLY {
                return Err(format!("{}: its answer has more than {MAX_REPLY} bytes", self.place));
            }
        }
        Ok(Reply::Answer(bytes))
    }

    /// Tells how an ask ended. Any success of the webhook's will do.
    pub(crate) async fn close(&self, ask: &Ask) -> Result<(), String> {
        let reply = self.send(&format!("{}.closed", ask.id), &closed(ask), WORD).await?;
        if reply.status().is_success() {
            return Ok(());
        }
        Err(format!("{} answered {}", self.place, reply.status()))
    }

    async fn send(
        &self,
        id: &str,
        body: &serde_json::Value,
        timeout: Duration,
    ) -> Result<reqwest::Response, String> {
        let body = body.to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let signature = self.sign(id, now, &body)?;
        let sent = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let sent = sent
            .header("webhook-id", id)
            .header("webhook-timestamp", now.to_string())
            .header("webhook-signature", signature)
            .timeout(timeout)
            .body(body);
        sent.send().await.map_err(|error| self.failed(error))
    }

    /// The URL may hold a token, so no error repeats it.
    fn failed(&self, error: reqwest::Error) -> String {
        format!("{}: {}", self.place, causes(&error.without_url()))
    }

    fn sign(&self, id: &str, timestamp: u64, body: &str) -> Result<String, String> {
        let key = match self.key.expose().strip_prefix(SECRET_PREFIX) {
            Some(encoded) => STANDARD
                .decode(encoded)
                .map_err(|_| format!("secret: what follows `{SECRET_PREFIX}` is no base64"))?,
            None => self.key.expose().as_bytes().to_vec(),
        };
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|error| format!("secret: {error}"))?;
        mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
        Ok(format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())))
    }
}

/// What the webhook is told: all of the call, or that it is cut and how much is missing. Texts of servers and agents go as they are: JSON escapes what a terminal
/// would act on, and whoever shows them is told so in docs/operators.md.
fn request(ask: &Ask, document: Option<&AskDocument>) -> serde_json::Value {
    let about = &ask.about;
    let (arguments, beside) = document
        .map_or((about.arguments.as_str(), about.beside.as_str()), |all| (&all.arguments, &all.beside));
    let (arguments, beside) = (beginning(arguments), beginning(beside));
    let is_cut = arguments.len() < about.arguments_bytes || beside.len() < about.beside_bytes;
    json!({
        "type": "approval.request",
        "ask": ask.id,
        "call": ask.call_digest(),
        "persona": ask.about.persona,
        "server": ask.about.server,
        "name": ask.about.tool,
        "action": ask.about.action,
        "reason": ask.about.reason,
        "arguments": arguments,
        "arguments_bytes": about.arguments_bytes,
        "beside": beside,
        "beside_bytes": about.beside_bytes,
        "cut": is_cut,
        "session": ask.about.session,
        "run_id": ask.about.run_id,
        "thread_id": ask.about.thread_id,
        "created_at_ms": ask.created_at_ms,
        "expires_at_ms": ask.expires_at_ms,
    })
}

fn beginning(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_SENT)).unwrap_or_default()
}

/// What the webhook is told of an ask that it was shown and that ended elsewhere.
fn closed(ask: &Ask) -> serde_json::Value {
    let outcome = match (ask.state, ask.surface.as_deref()) {
        (_, Some("freeze")) => "voided",
        (AskState::Granted | AskState::Spent, _) => "granted",
        (AskState::Denied, _) => "denied",
        (AskState::Expired | AskState::Pending, _) => "expired",
    };
    json!({
        "type": "approval.closed",
        "ask": ask.id,
        "call": ask.call_digest(),
        "outcome": outcome,
        "surface": ask.surface,
        "approver": ask.answered_by,
        "persona": ask.about.persona,
        "server": ask.about.server,
        "name": ask.about.tool,
        "action": ask.about.action,
    })
}
