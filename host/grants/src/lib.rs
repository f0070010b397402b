//! What the operator lets one plugin reach, by interface and label: `plugins.load[].grants` and
//! `servers.NAME.adapter.grants` in `toolgate.yaml`.
//!
//! Contract: plain values with one home. The configuration reads them, with shape and types; the plugin host
//! meets them with the signed release when it loads the plugin. They are the second of the three gates: a
//! label is open only where the release declares it, a grant is here, and the plugin's linker holds the
//! interface (design.md 4 "Three gates"). So neither side can know of a grant that the other leaves out.
//!
//! A member that a grant leaves out is what the release declares; one that it names can only be narrower,
//! except for what only the operator can say: directories, values of secrets, and the loopback origins of
//! `http`. What widens is refused when the plugin is loaded.
//!
//! Threat: values of secrets. They are [`Secret`]s, which print as stars, and no digest covers them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toolgate_base::Secret;
use toolgate_signing::{Access, Digest, Release};

/// The grants of one plugin. The default opens nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Labels of `http`.
    pub http: BTreeMap<String, HttpGrant>,
    /// Labels of `secrets`.
    pub secrets: BTreeMap<String, SecretGrant>,
    /// Labels of `kv`.
    pub kv: BTreeMap<String, KvGrant>,
    /// Labels of `files`.
    pub files: BTreeMap<String, FilesGrant>,
}

/// One label of `http`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpGrant {
    /// Origins, each covered by one that the release declares; none grants those it declares.
    pub hosts: Option<Vec<String>>,
    /// Methods in lower case, each declared by the release; none grants those it declares.
    pub methods: Option<Vec<String>>,
    /// Most bytes of an answer; the least of this, the release's wish and the plugin's `host-bytes` counts.
    pub max_response: Option<u64>,
    /// Bound on one request, redirects and body included; 10 ms to 30 s. None: 5 s.
    pub timeout: Option<Duration>,
}

/// One label of `secrets`.
#[derive(Clone, Debug, PartialEq)]
pub struct SecretGrant {
    /// The value; empty where the variable that it names has none, which answers as unavailable.
    pub value: Secret,
    /// Origins, each covered by one that the release declares; none grants those it declares.
    pub send_to: Option<Vec<String>>,
    /// Whether the plugin may see the value itself; counts only where its release asks for that.
    pub reveal: bool,
}

/// One label of `kv`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvGrant {
    /// Bytes of keys and values in one scope; the least of this and the release's number counts.
    pub max_bytes: Option<u64>,
}

/// One label of `files`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilesGrant {
    /// Absolute directories. The first is the one that `dir.open` opens.
    pub directories: Vec<PathBuf>,
    /// Reading only, where the release would write; none grants what it declares.
    pub access: Option<Access>,
}

impl Grants {
    /// What a release declares and no more, with no directory and no value of a secret: for looking
    /// whether a plugin would load, not for running it.
    pub fn declared(release: &Release) -> Self {
        let asked = &release.capabilities;
        let secret = |reveal: bool| SecretGrant { value: Secret::default(), send_to: None, reveal };
        Self {
            http: asked.http.keys().map(|label| (label.clone(), HttpGrant::default())).collect(),
            secrets: asked
                .secrets
                .iter()
                .map(|(label, asked)| (label.clone(), secret(asked.reveal)))
                .collect(),
            kv: asked.kv.keys().map(|label| (label.clone(), KvGrant::default())).collect(),
            files: asked.files.keys().map(|label| (label.clone(), FilesGrant::default())).collect(),
        }
    }

    /// Whether nothing is granted.
    pub fn is_empty(&self) -> bool {
        self.http.is_empty() && self.secrets.is_empty() && self.kv.is_empty() && self.files.is_empty()
    }

    /// Digest of everything but the values of secrets, for what must not outlive a change of a grant.
    pub fn digest(&self) -> Digest {
        let mut text = String::from("toolgate plugin grants 1\n");
        let mut line = |parts: std::fmt::Arguments<'_>| {
            text.push_str(&parts.to_string());
            text.push('\n');
        };
        // `Debug` of a string escapes line breaks and quotes, so lines cannot run together; that of
        // a secret shows nothing.
        for (label, grant) in &self.http {
            line(format_args!("http {label:?} {grant:?}"));
        }
        for (label, grant) in &self.secrets {
            line(format_args!("secrets {label:?} {:?} {}", grant.send_to, grant.reveal));
        }
        for (label, grant) in &self.kv {
            line(format_args!("kv {label:?} {grant:?}"));
        }
        for (label, grant) in &self.files {
            line(format_args!("files {label:?} {grant:?}"));
        }
        Digest::of(text.as_bytes())
    }
}
