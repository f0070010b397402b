//! `toolgate secret …`: the values that `${NAME}` stands for. They are never printed.

use std::io::Read;
use std::path::Path;

use serde_json::json;
use toolgate_base::Secret;
use toolgate_config::secrets;

use crate::args::SecretCommand;
use crate::context;
use crate::exit::Failure;
use crate::output;

/// Runs one verb.
pub(crate) fn run(explicit: Option<&Path>, command: &SecretCommand) -> Result<(), Failure> {
    let dir = context::config(explicit)?.config_dir;
    match command {
        SecretCommand::Set(args) => {
            secrets::set(&dir, &args.name, &typed()?).map_err(context::config_failure)?;
            output::line(&format!("set {}; it counts from the next start", args.name))
        }
        SecretCommand::List(args) => {
            let names = secrets::names(&dir).map_err(context::config_failure)?;
            if args.json {
                return output::json(&json!({ "secrets": names }));
            }
            names.iter().try_for_each(|name| output::line(name))
        }
        SecretCommand::Clear(args) => {
            if !secrets::clear(&dir, &args.name).map_err(context::config_failure)? {
                return Err(Failure::failed(format!("there is no secret {}", args.name)));
            }
            output::line(&format!("cleared {}", args.name))
        }
    }
}

/// The value comes from standard input: an argument would stand in the list of processes.
fn typed() -> Result<Secret, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    let value = text.trim_end_matches(['\n', '\r']);
    if value.is_empty() {
        return Err(Failure::usage("no value came on standard input"));
    }
    Ok(Secret::new(value))
}
