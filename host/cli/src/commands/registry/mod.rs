//! `toolgate registry …`: making, filling and checking registries of plugins.
//!
//! Nothing here needs a configuration: a registry is a directory, and whoever changes it has its keys.

mod change;
mod init;
mod root;
mod show;
mod signing;

pub(crate) use change::read_plugin;

use std::collections::BTreeMap;
use std::path::Path;

use toolgate_registry::{ErrorClass, Fingerprint, Host, PublishError, RegistryError, Role};
use toolgate_signing::PublicKey;

use crate::args::registry::{Reached, Registry, RegistryRoot};
use crate::exit::{Code, Failure};
use crate::keys::read_public;
use crate::next_step;

/// Runs one verb.
pub(crate) async fn run(command: Registry) -> Result<(), Failure> {
    match command {
        Registry::Init(args) => init::run(&args),
        Registry::Publish(args) => change::publish(&args).await,
        Registry::Yank(args) => change::yank(&args).await,
        Registry::Revoke(args) => change::revoke(&args).await,
        Registry::Rotate(args) => change::rotate(&args).await,
        Registry::Refresh(args) => change::refresh(&args).await,
        Registry::Root(RegistryRoot::Propose(args)) => root::propose(&args).await,
        Registry::Root(RegistryRoot::Sign(args)) => root::sign(&args),
        Registry::Root(RegistryRoot::Finish(args)) => root::finish(&args).await,
        Registry::Status(args) => show::status(&args).await,
        Registry::Verify(args) => show::verify(&args).await,
        Registry::Serve(args) => show::serve(&args).await,
        Registry::Mirror(args) => show::mirror(&args).await,
    }
}

/// Largest file of certificates or of a key, bytes.
const MAX_PEM: u64 = 1024 * 1024;

impl Reached {
    /// The host of a URL, or of `HOST[:PORT]`, as the command line describes it.
    pub(crate) fn host(&self, place: &str) -> Result<Host, Failure> {
        let mut host = Host { private: self.private, ..Host::named(place) };
        if let Some(path) = &self.ca {
            host.authorities = read_pem(path)?;
        }
        Ok(host)
    }
}

fn read_pem(path: &Path) -> Result<Vec<u8>, Failure> {
    let unusable = |what: String| Failure::usage(format!("{}: {what}", path.display()));
    let read = toolgate_base::files::read_bounded(path, MAX_PEM);
    read.map_err(|error| unusable(error.to_string()))?
        .ok_or_else(|| unusable("there is no such file".to_owned()))
}

/// The keys of roles as `--role` and `--threshold` give them.
fn roles(keys: &[String], thresholds: &[String]) -> Result<BTreeMap<Role, (Vec<PublicKey>, u32)>, Failure> {
    let mut roles: BTreeMap<Role, (Vec<PublicKey>, u32)> = BTreeMap::new();
    for given in keys {
        let (role, key) = pair(given, "--role", "root=ed25519:…")?;
        roles.entry(role).or_insert_with(|| (Vec::new(), 1)).0.push(read_public(key)?);
    }
    for given in thresholds {
        let (role, number) = pair(given, "--threshold", "root=2")?;
        let number =
            number.parse().map_err(|_| Failure::usage(format!("--threshold {given} ends with no number")))?;
        match roles.get_mut(&role) {
            Some(of) => of.1 = number,
            None => {
                return Err(Failure::usage(format!("--threshold {given} is for a role without keys"))
                    .hint(format!("give its keys with --role {role}=KEY")));
            }
        }
    }
    Ok(roles)
}

fn pair<'a>(given: &'a str, flag: &str, like: &str) -> Result<(Role, &'a str), Failure> {
    let parts = given
        .split_once('=')
        .and_then(|(role, rest)| Some((Role::ALL.into_iter().find(|known| known.as_str() == role)?, rest)));
    parts.ok_or_else(|| {
        let names: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        Failure::usage(format!("{flag} {given} is for no role; write {flag} {like}"))
            .hint(format!("the roles are {}", names.join(", ")))
    })
}

fn fingerprint(text: &str) -> Result<Fingerprint, Failure> {
    text.parse().map_err(Failure::usage)
}

/// The fingerprint of the first root of a registry of this machine.
fn own_fingerprint(dir: &Path) -> Result<Fingerprint, Failure> {
    toolgate_registry::first_root(dir).map_err(|error| refused(&error))
}

/// A refusal with its exit code.
fn failure(error: &PublishError) -> Failure {
    with_next_step(Failure::new(code(error.class()), error), error.code())
}

/// A refusal of a registry with its exit code.
pub(crate) fn refused(error: &RegistryError) -> Failure {
    with_next_step(Failure::new(code(error.class()), error), error.code())
}

fn with_next_step(failure: Failure, code: &str) -> Failure {
    match next_step::of(code) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

fn code(class: ErrorClass) -> Code {
    match class {
        ErrorClass::Integrity => Code::Integrity,
        ErrorClass::Usage => Code::Usage,
        ErrorClass::Authentication => Code::Authentication,
        ErrorClass::Failed => Code::Failed,
    }
}
