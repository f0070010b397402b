//! `approvals`: how long asks live, and who is asked beside the client and the command line.

use std::time::Duration;

use toolgate_base::Secret;

use crate::model::{ApprovalWebhook, Approvals};

use super::address::is_safe_url;
use super::audit::needed;
use super::{Item, Reader, keys};

pub(super) fn read_approvals(reader: &mut Reader<'_>, item: Item) -> Approvals {
    let mut approvals = Approvals::default();
    let Some(mut fields) = reader.fields(item, &keys::APPROVALS) else { return approvals };
    if let Some(item) = fields.take("timeout") {
        approvals.timeout = reader.duration(&item, Duration::from_secs(1)).unwrap_or(approvals.timeout);
    }
    match fields.take("hold") {
        Some(item) => {
            if let Some(hold) = reader.duration(&item, Duration::ZERO) {
                if hold > approvals.timeout {
                    reader.wrong(
                        &item,
                        "a call cannot be held longer than its ask lives",
                        "make it at most approvals.timeout",
                    );
                }
                approvals.hold = hold;
            }
        }
        None => approvals.hold = approvals.hold.min(approvals.timeout),
    }
    if let Some(item) = fields.take("webhook") {
        approvals.webhook = read_webhook(reader, item);
    }
    approvals
}

fn read_webhook(reader: &mut Reader<'_>, item: Item) -> Option<ApprovalWebhook> {
    let whole = Item { node: item.node.clone(), key: item.key.clone() };
    let mut fields = reader.fields(item, &keys::APPROVALS_WEBHOOK)?;
    let mut missing = Vec::new();
    let url = needed(reader, &whole, &mut fields, "url", "write https://HOST/PATH");
    let secret = needed(
        reader,
        &whole,
        &mut fields,
        "secret",
        "write ${NAME}, and keep the value with `toolgate secret set NAME`",
    );
    let signers = needed(reader, &whole, &mut fields, "keys", "list the public keys whose answers count");
    let url = url.and_then(|item| {
        let text = reader.filled(&item)?;
        // Without its variables a URL is not one, and nobody is asked anyway.
        if text.missing.is_empty() && !is_safe_url(&text.value) {
            let fix = "write https://HOST/PATH; plain http is for a loopback address only";
            reader.wrong(&item, "no https URL", fix);
            return None;
        }
        missing.extend(text.missing);
        Some(Secret::new(text.value))
    });
    let secret = secret.and_then(|item| {
        let text = reader.filled(&item)?;
        missing.extend(text.missing);
        Some(Secret::new(text.value))
    });
    let signers = signers.map(|item| super::plugins::read_keys(reader, item));
    missing.dedup();
    Some(ApprovalWebhook { url: url?, secret: secret?, keys: signers?, missing })
}
