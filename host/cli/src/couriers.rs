//! What a served gateway sends by itself beside its calls: audit rows to their sinks, asks to the webhook.

use std::time::Duration;

use toolgate_config::Config;

/// How long the end waits for the receivers of audit rows; what they do not get follows at the next start.
const LAST_ROWS: Duration = Duration::from_secs(2);

/// Tasks that send until they are finished.
pub(crate) struct Couriers {
    sinks: toolgate_sinks::Running,
    webhook: Option<toolgate_approvals::Running>,
}

impl Couriers {
    /// Starts what the configuration names. A webhook that cannot be asked is said, and asks are then
    /// answered elsewhere or not at all.
    pub(crate) fn start(config: &Config) -> Self {
        let webhook = config.approvals.webhook.as_ref().and_then(|webhook| {
            toolgate_approvals::start(&config.data_dir, webhook)
                .inspect_err(|error| tracing::error!(%error, "asks do not go to the approvals webhook"))
                .ok()
        });
        Self { sinks: toolgate_sinks::start(&config.data_dir, &config.audit.sinks), webhook }
    }

    /// Ends them, audit rows last.
    pub(crate) async fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish().await;
        }
        self.sinks.finish(LAST_ROWS).await;
    }
}
