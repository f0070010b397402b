//! What changes at the server while somebody is connected: a resource that is touched, a list that grows.
//!
//! In the handshake era every client with a session hears of it, in the other one those who listen do.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    ResourceUpdatedNotification, ResourceUpdatedNotificationParam, ServerNotification,
    ToolListChangedNotification,
};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use tokio::sync::broadcast;

/// Changes that a listener may not have told yet.
const WAITING: usize = 64;

/// How often, and with which pause, a resource is said to have changed.
const AGAIN: usize = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// One change.
#[derive(Clone)]
enum Change {
    Touched(String),
    Tools,
}

/// All changes of a server; clones are the same server.
#[derive(Clone)]
pub(crate) struct Changes {
    told: broadcast::Sender<Change>,
    grown: Arc<AtomicBool>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { told: broadcast::channel(WAITING).0, grown: Arc::default() }
    }
}

impl Changes {
    /// Whether the list has the tool that came later.
    pub(crate) fn grown(&self) -> bool {
        self.grown.load(Ordering::SeqCst)
    }

    /// Says that a resource changed, for a while: rmcp acknowledges a listener before it lets it listen, so
    /// that one who was just told that it is heard would miss what is said once.
    pub(crate) fn touch(&self, uri: String) {
        let told = self.told.clone();
        tokio::spawn(async move {
            for _ in 0..AGAIN {
                // Nobody may be listening.
                drop(told.send(Change::Touched(uri.clone())));
                tokio::time::sleep(PAUSE).await;
            }
        });
    }

    /// Adds the tool that comes later, or takes it away again. A session hears of that by itself.
    pub(crate) async fn grow(&self, session: Option<&Peer<RoleServer>>) {
        self.grown.fetch_xor(true, Ordering::SeqCst);
        drop(self.told.send(Change::Tools));
        if let Some(session) = session {
            drop(session.notify_tool_list_changed().await);
        }
    }

    /// Tells a session of a resource, as long as it is there.
    pub(crate) fn follow(&self, uri: String, session: Peer<RoleServer>) {
        let mut told = self.told.subscribe();
        tokio::spawn(async move {
            while let Ok(change) = told.recv().await {
                let note = match change {
                    Change::Touched(touched) if touched == uri => {
                        ResourceUpdatedNotificationParam::new(touched)
                    }
                    _ => continue,
                };
                if session.notify_resource_updated(note).await.is_err() {
                    return;
                }
            }
        });
    }

    /// Tells a listener of what it listens for, until it has enough.
    pub(crate) async fn listen(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let mut told = self.told.subscribe();
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                change = told.recv() => change,
            };
            let note = match change {
                Ok(Change::Touched(uri)) => ServerNotification::ResourceUpdatedNotification(
                    ResourceUpdatedNotification::new(ResourceUpdatedNotificationParam::new(uri)),
                ),
                Ok(Change::Tools) => {
                    ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default())
                }
                Err(_) => return Ok(()),
            };
            // What it did not ask for is refused by rmcp itself.
            drop(context.sink().send(note).await);
        }
    }
}
