//! A gateway that is held to a lock: pins come from the reviewed files and from nowhere else, and what
//! servers show now can be compared with them.

use std::sync::Arc;

use toolgate_config::Server;
use toolgate_wire::envelope::Era;

use crate::Gateway;
use crate::caller::Caller;
use crate::lock::{Lock, LockedSurface, Mismatch, Surfaces, compare_surface};
use crate::pin::{Approved, pinned};
use crate::status::era_word;

/// What a gateway is held to.
#[derive(Debug, Clone)]
pub struct Locked {
    /// The lock.
    pub lock: Lock,
    /// The surfaces beside it.
    pub surfaces: Surfaces,
}

/// What a server shows now.
#[derive(Debug)]
pub struct Shown {
    /// `legacy` or `modern`.
    pub era: &'static str,
    /// The negotiated revision.
    pub revision: String,
    /// Its definitions.
    pub surface: LockedSurface,
}

impl Locked {
    /// What was reviewed of a server, as pins. A server that the lock does not have, or has under another
    /// identity, shows nothing; so does one whose surface file does not hold what the lock says.
    pub(crate) fn approved(&self, server: &Server) -> Approved {
        let entry = self.lock.servers.iter().find(|entry| entry.name == server.name);
        let Some(entry) = entry.filter(|entry| entry.identity == server.identity()) else {
            return Approved::OtherIdentity;
        };
        let surface = self.surfaces.get(&server.name).cloned().unwrap_or_default();
        let fits = entry.definitions.len() == surface.definitions.len()
            && entry.definitions.iter().all(|locked| {
                surface.get(&locked.kind, &locked.name).is_some_and(|found| found.digest == locked.digest)
            });
        if fits {
            return Approved::definitions(surface.definitions);
        }
        Approved::Unreadable("toolgate.surface does not hold what toolgate.lock says".to_owned())
    }
}

impl Gateway {
    /// Holds this gateway to a lock, before anybody is served. A second call changes nothing.
    pub fn hold_to(&self, locked: Locked) {
        let _ = self.locked.set(locked);
    }

    /// Compares what servers show now with the lock; all of them, or the one of that name. Beside the
    /// differences, the servers that could not be asked, with the reason.
    pub async fn check_locked(
        self: &Arc<Self>,
        only: Option<&str>,
    ) -> (Vec<Mismatch>, Vec<(String, String)>) {
        let (mut mismatches, mut silent) = (Vec::new(), Vec::new());
        let Some(locked) = self.locked.get() else { return (mismatches, silent) };
        for entry in locked.lock.servers.iter().filter(|entry| only.is_none_or(|only| only == entry.name)) {
            match self.shown_now(&entry.name).await {
                Ok(Some(now)) => {
                    let reviewed = locked.surfaces.get(&entry.name).cloned().unwrap_or_default();
                    mismatches.extend(compare_surface(
                        entry,
                        &reviewed,
                        now.era,
                        &now.revision,
                        &now.surface,
                    ));
                }
                Ok(None) => {}
                Err(reason) => silent.push((entry.name.clone(), reason)),
            }
        }
        (mismatches, silent)
    }

    /// Connects to a server and gives what it shows; nothing for one that no persona is bound to, which
    /// nobody can reach.
    pub async fn shown_now(self: &Arc<Self>, server: &str) -> Result<Option<Shown>, String> {
        let Some(server) = self.servers.get(server).filter(|server| server.enabled) else { return Ok(None) };
        let bound = self.config.personas.values().find_map(|persona| {
            let lane = persona.lane_of(&server.name)?;
            Some((persona, lane))
        });
        let Some((persona, lane)) = bound else { return Ok(None) };
        let session = toolgate_base::random_hex(16);
        let caller = Caller { lane, ..Caller::new(&persona.name, "cli", session, Era::Modern) };
        let live = self.live(&caller, server).await.map_err(|error| error.to_string())?;
        Ok(Some(Shown {
            era: era_word(live.connection.era()),
            revision: live.connection.protocol_version().to_owned(),
            surface: LockedSurface::new(pinned(&live.surface.load())),
        }))
    }
}
