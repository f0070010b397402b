//! As whom an agent acts: its servers by lane, its labels, and where its asks are answered.

use std::collections::BTreeMap;

use toolgate_labels::Pattern;

use crate::skill::{Lane, Skill};

/// As whom an agent acts.
#[derive(Debug, Clone)]
pub struct Persona {
    /// The key in `personas`.
    pub name: String,
    /// The servers it is bound to in every lane: sorted, without doubles, each of them in
    /// [`crate::Config::servers`].
    pub servers: Vec<String>,
    /// The skills it has enabled.
    pub skills: Vec<String>,
    /// [`Self::servers`] and those of its skills, by lane, in the order of [`Lane::ALL`].
    lanes: [Vec<String>; 3],
    /// Its labels. `None`: no `capabilities` block, so the policy `toolgate/capabilities` abstains.
    pub capabilities: Option<Capabilities>,
    /// Where its asks may be answered.
    pub approvals: PersonaApprovals,
}

impl Persona {
    /// A persona without servers and without a `capabilities` block.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            servers: Vec::new(),
            skills: Vec::new(),
            lanes: Default::default(),
            capabilities: None,
            approvals: PersonaApprovals::default(),
        }
    }
}

impl Persona {
    /// The servers that exist for it in a lane: sorted, without doubles (row SCP-012).
    pub fn servers_in(&self, lane: Lane) -> &[String] {
        let [main, background_job, automation] = &self.lanes;
        match lane {
            Lane::Main => main,
            Lane::BackgroundJob => background_job,
            Lane::Automation => automation,
        }
    }

    /// A lane in which this server exists for it; the first of [`Lane::ALL`].
    pub fn lane_of(&self, server: &str) -> Option<Lane> {
        Lane::ALL.into_iter().find(|lane| self.servers_in(*lane).iter().any(|bound| bound == server))
    }

    /// The servers that exist for it in any lane; some of them more than once.
    pub(crate) fn all_servers(&self) -> impl Iterator<Item = &String> {
        self.servers.iter().chain(self.lanes.iter().flatten())
    }

    /// Takes a server away from it in every lane.
    pub(crate) fn leave_out(&mut self, server: &str) {
        for list in self.lanes.iter_mut().chain([&mut self.servers]) {
            list.retain(|name| name != server);
        }
    }

    /// Works out which servers exist in which lane.
    pub(crate) fn bind_lanes(&mut self, skills: &BTreeMap<String, Skill>) {
        let enabled: Vec<&Skill> = self.skills.iter().filter_map(|name| skills.get(name)).collect();
        self.lanes = Lane::ALL.map(|lane| {
            let admitted = enabled.iter().filter(|skill| skill.runtime.admits(lane));
            let mut servers: Vec<String> =
                self.servers.iter().chain(admitted.flat_map(|skill| &skill.servers)).cloned().collect();
            servers.sort();
            servers.dedup();
            servers
        });
    }
}

/// The capability labels of a persona (rows CAP-*).
#[derive(Debug, Clone, Default)]
pub struct Capabilities {
    /// What it may do without being asked.
    pub allow: Vec<Pattern>,
    /// What a person must be asked for; alias `requireApproval`. Wins over `allow`.
    pub require_approval: Vec<Pattern>,
}

/// The `approvals` block of a persona.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PersonaApprovals {
    /// Whether an ask may be shown in the client it came from. `None`: yes on stdio, no over HTTP.
    pub in_client: Option<bool>,
    /// What can be answered there to an ask that is too long to be shown whole.
    pub cut: CutAsks,
}

/// What a client may answer to an ask of which it does not show all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CutAsks {
    /// No, or nothing: it is granted on the command line, where all of it can be read.
    #[default]
    Cli,
    /// Yes as well; the form says how much is missing.
    Ask,
}
