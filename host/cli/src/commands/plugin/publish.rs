//! `plugin publish`: a signed plugin into an OCI registry.

use std::path::Path;

use serde_json::json;
use toolgate_base::Secret;
use toolgate_registry::oci::Repository;
use toolgate_registry::{Credentials, Host, Reach, push_target};

use crate::args::{OciSignIn, PluginPublish};
use crate::commands::registry::{read_plugin, refused};
use crate::exit::Failure;
use crate::output;

/// Longest password or token, bytes.
const MAX_PASSWORD: u64 = 16 * 1024;

/// `plugin publish DIR oci://HOST/REPOSITORY[:TAG]`.
pub(super) async fn publish(args: &PluginPublish) -> Result<(), Failure> {
    push(&args.plugin, &args.target, &args.oci, args.json).await
}

/// Pushes the plugin in a directory to a repository.
pub(crate) async fn push(
    directory: &Path,
    target: &str,
    oci: &OciSignIn,
    as_json: bool,
) -> Result<(), Failure> {
    let found = push_target(target).ok_or_else(|| {
        Failure::usage(format!("{target} is no repository")).hint(
            "write oci://HOST/REPOSITORY or oci://HOST/REPOSITORY:TAG; `toolgate registry publish` adds to a registry that is a directory",
        )
    })?;
    let (host, name, tag) = found;
    let plugin = read_plugin(directory)?;
    let known = Host { credentials: credentials(oci)?, ..oci.reached.host(&host)? };
    let repository =
        Repository::new(&host, &name, &Reach::new(vec![known])).map_err(|error| refused(&error))?;
    let pushed = repository.push(plugin, tag.as_deref()).await;
    let pushed = pushed.map_err(|error| refused(&error))?;
    if as_json {
        return output::json(&json!({
            "reference": pushed.reference,
            "digest": pushed.digest,
            "fallback_tag": pushed.by_fallback_tag,
        }));
    }
    output::line(&format!("published {}", pushed.reference))?;
    if pushed.by_fallback_tag {
        output::line("the registry lists no referrers, so the release stands under the fallback tag")?;
    }
    Ok(())
}

fn credentials(oci: &OciSignIn) -> Result<Option<Credentials>, Failure> {
    let Some((username, file)) = oci.username.as_ref().zip(oci.password_file.as_ref()) else {
        return Ok(None);
    };
    let unusable = |what: String| Failure::usage(format!("{} cannot be used: {what}", file.display()));
    let bytes = toolgate_base::files::read_bounded(file, MAX_PASSWORD);
    let bytes = bytes.map_err(|error| unusable(error.to_string()))?;
    let bytes = bytes.ok_or_else(|| unusable("there is no such file".to_owned()))?;
    let text = String::from_utf8(bytes).map_err(|_| unusable("it is no text".to_owned()))?;
    let password = Secret::new(text.trim_end_matches(['\r', '\n']));
    Ok(Some(Credentials { username: username.clone(), password }))
}
