//! Why a plugin was not loaded, and why the plugin host did not start.

use toolgate_signing::VerifyError;

use crate::fault::{Fault, Whose};
use crate::schema::{self, SettingFault};

/// The plugin host could not start.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// wasmtime refused the configuration, or the machine gave no thread.
    #[error("the plugin engine did not start: {0}")]
    Engine(String),
}

/// A plugin that was refused. Other plugins are not affected.
#[derive(Debug, thiserror::Error)]
#[error("plugin {plugin} was not loaded: {kind}")]
pub struct LoadError {
    /// The plugin's name, from its verified release.
    pub plugin: String,
    /// Why.
    #[source]
    pub kind: LoadErrorKind,
}

/// Why a plugin was refused, in the order in which it is checked (spec plugin-host 2.4; row WA-09).
/// All but the last five are found before anything is compiled.
#[derive(Debug, thiserror::Error)]
pub enum LoadErrorKind {
    /// The component file is empty.
    #[error("the component file is empty; download it again")]
    Empty,
    /// The component is too large.
    #[error("the component has {bytes} bytes, and the limit is {limit}")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The bytes are not those that were signed.
    #[error("the component is not the one that was signed: {0}; install the plugin again")]
    Digest(#[source] VerifyError),
    /// A core module.
    #[error("this is a core WebAssembly module, not a component; wrap it into a component first")]
    CoreModule,
    /// Compiled native code.
    #[error(
        "this is compiled native code (.cwasm), which is never loaded from outside; give the .wasm component"
    )]
    NativeCode,
    /// Something else.
    #[error("this is no WebAssembly component")]
    NotWasm,
    /// Bytes that do not validate.
    #[error("the component is malformed: {0}")]
    Malformed(String),
    /// An import of `wasi:*`.
    #[error(
        "it imports {0}, which no plugin gets; build it for wasm32-unknown-unknown, or, where its language \
         needs WASI 0.2, declare wasi = \"sealed\" in its release"
    )]
    Wasi(String),
    /// An import that the release does not declare.
    #[error("it imports {0}, which its signed release does not declare")]
    Undeclared(String),
    /// An import that this host does not have, or not in that version.
    #[error("it imports {import}, which this host does not offer; {offered}")]
    Unknown {
        /// The import, with its version.
        import: String,
        /// What the host has instead, as a sentence.
        offered: String,
    },
    /// The release declares an import or export that the component does not have.
    #[error("its signed release declares {what} {name}, which the component does not have")]
    NotThere {
        /// `the import` or `the export`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// An export that the release does not declare, or that its world does not have.
    #[error("it exports {name}, which {why}")]
    Export {
        /// The export, with its version.
        name: String,
        /// Why it may not.
        why: String,
    },
    /// The release is for another world.
    #[error("its release is for the world {found}, and a plugin of its kind needs {needed}")]
    World {
        /// What the release says.
        found: String,
        /// What it should say.
        needed: String,
    },
    /// The release needs a newer host.
    #[error("it needs Toolgate {needed}, and this is {have}; update Toolgate, or take an older release")]
    HostTooOld {
        /// The version it needs.
        needed: String,
        /// This version.
        have: String,
    },
    /// It imports a capability of which its release declares no label.
    #[error("it imports {0}, and its signed release declares no label of that capability")]
    Capability(String),
    /// It imports a capability of which the operator opens no label.
    #[error(
        "it imports {interface}, and no label of it is granted; its release declares: {labels}. \
         Grant what it may reach under `grants`, or leave the plugin out"
    )]
    Ungranted {
        /// The interface, as `kv`.
        interface: &'static str,
        /// What the release declares.
        labels: String,
    },
    /// A grant that does not fit the release.
    #[error("its grants do not fit: {0}")]
    Grant(String),
    /// The settings are unusable.
    #[error("its settings are unusable: {0}")]
    Settings(String),
    /// The schema of its settings is unusable.
    #[error("the schema of its settings is unusable: {0}")]
    Schema(String),
    /// The settings do not fit the schema of the plugin.
    #[error("its settings do not fit its schema: {}", schema::listed(.0))]
    SettingsRefused(Vec<SettingFault>),
    /// The compiler refused it.
    #[error("it does not compile: {0}")]
    Compile(String),
    /// Types of imports or exports differ from the contract.
    #[error("it does not fit the contract {contract}: {detail}")]
    DoesNotFit {
        /// The version of `toolgate:plugin`.
        contract: &'static str,
        /// What does not fit.
        detail: String,
    },
    /// An instance could not be made.
    #[error("it does not start: {0}")]
    DoesNotStart(#[source] Fault),
    /// An adapter refused its settings.
    #[error("it does not accept its settings: {0}")]
    NotConfigured(String),
    /// The host's own fault.
    #[error("the host failed: {0}")]
    Host(String),
}

impl LoadErrorKind {
    /// Who has to act.
    pub fn whose(&self) -> Whose {
        match self {
            Self::Unknown { .. } | Self::World { .. } | Self::DoesNotFit { .. } | Self::HostTooOld { .. } => {
                Whose::PluginTooOld
            }
            Self::Settings(_)
            | Self::SettingsRefused(_)
            | Self::NotConfigured(_)
            | Self::Ungranted { .. }
            | Self::Grant(_) => Whose::OperatorDenied,
            Self::Host(_) => Whose::HostBug,
            Self::DoesNotStart(fault) => fault.whose,
            _ => Whose::PluginMisbehaved,
        }
    }
}
