//! `toolgate registry init`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::json;
use toolgate_base::files::{create_private_dir, write_private};
use toolgate_base::random_bytes;
use toolgate_registry::{Init, Initialised, Publisher, Role};
use toolgate_signing::{PublicKey, Signer, SigningKey};

use super::roles;
use crate::args::registry::RegistryInit;
use crate::exit::Failure;
use crate::output;

/// Who has which role, where one key is made for each purpose.
const PURPOSES: [(&str, &[Role]); 4] = [
    ("root", &[Role::Root]),
    ("admin", &[Role::Delegate, Role::Revoke]),
    ("publish", &[Role::Snapshot]),
    ("refresh", &[Role::Refresh]),
];

/// Runs the verb.
pub(super) fn run(args: &RegistryInit) -> Result<(), Failure> {
    let mut signing = args.with.open(args.json)?;
    let mut roles = roles(&args.role, &args.threshold)?;
    if let Some(dir) = &args.new_keys {
        let (made, new) = new_keys(dir)?;
        roles = made;
        signing.extend(new);
    }
    if let Some(missing) = Role::ALL.into_iter().find(|role| !roles.contains_key(role)) {
        return Err(Failure::usage(format!("the role {missing} has no key"))
            .hint(format!("give --role {missing}=KEY, or --new-keys DIR to make a key for each purpose")));
    }
    let init =
        Init { name: args.name.clone(), origin: args.origin.clone(), roles, refresh_days: args.refresh_days };
    let made = Publisher::init(&args.dir, &init, signing.signers(), signing.clock());
    signing.settled(made)?.map_or(Ok(()), |made| report(args, &made))
}

/// One key for each purpose, as seed files.
#[expect(clippy::type_complexity, reason = "the roles as the library takes them, and their signers")]
fn new_keys(dir: &Path) -> Result<(BTreeMap<Role, (Vec<PublicKey>, u32)>, Vec<Box<dyn Signer>>), Failure> {
    if dir.exists() {
        return Err(Failure::usage(format!("{} exists; no key is ever replaced", dir.display())));
    }
    let failed = |error: std::io::Error| {
        Failure::failed(format!("no key can be written to {}: {error}", dir.display()))
    };
    create_private_dir(dir).map_err(failed)?;
    let (mut roles, mut signers): (BTreeMap<Role, (Vec<PublicKey>, u32)>, Vec<Box<dyn Signer>>) =
        Default::default();
    for (purpose, of) in PURPOSES {
        let key = SigningKey::from_seed(&random_bytes());
        let public = key.public();
        write_private(&dir.join(purpose), key.to_seed_text().as_bytes()).map_err(failed)?;
        write_private(&dir.join(format!("{purpose}.pub")), format!("{public}\n").as_bytes())
            .map_err(failed)?;
        roles.extend(of.iter().map(|role| (*role, (vec![public], 1))));
        signers.push(Box::new(key));
    }
    Ok((roles, signers))
}

fn report(args: &RegistryInit, made: &Initialised) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({
            "registry": args.dir.display().to_string(),
            "fingerprint": made.fingerprint.map(|root| root.to_string()),
            "proposal": made.proposal.as_ref().map(super::root::described),
        }));
    }
    match (made.fingerprint, &made.proposal) {
        (Some(fingerprint), _) => {
            output::line(&format!(
                "{} is a registry; its clients are told the fingerprint",
                args.dir.display()
            ))?;
            output::line(&format!("  {fingerprint}"))?;
        }
        (None, Some(proposal)) => super::root::print(proposal)?,
        (None, None) => {}
    }
    if let Some(keys) = &args.new_keys {
        output::line(&format!(
            "keys are in {}: keep root and admin off this machine, publish where releases are made, refresh where it runs daily",
            keys.display()
        ))?;
    }
    Ok(())
}
