//! Where a plugin is in use: under which settings, decisions and grants, and in front of which servers.

use std::path::Path;

use toolgate_config::Config;

use super::wanted::each_wanted;
use super::{Refusal, Wanted, adapter_wanted};

/// One use of a plugin.
#[derive(Debug, Clone)]
pub struct Use {
    /// The server whose adapter it is; none for a policy, and for an adapter that no server uses.
    pub server: Option<String>,
    /// The plugin as the configuration wants it there.
    pub wanted: Wanted,
}

/// Every use of a plugin, which is named by what its release states, by its entry or by its directory; none
/// where the configuration does not have it. Another plugin that cannot be read is no reason to fail.
pub fn uses(config: &Config, plugin: &str) -> Result<Vec<Use>, Refusal> {
    let directory = Path::new(plugin).canonicalize().ok().filter(|path| path.is_dir());
    let mut own = None;
    for wanted in each_wanted(config) {
        match wanted {
            Ok(wanted) if own.is_none() && is_it(config, &wanted, plugin, directory.as_deref()) => {
                own = Some(wanted);
            }
            Err(not_had) if not_had.0 == plugin => return Err(not_had.1),
            Ok(_) | Err(_) => {}
        }
    }
    let name = own.as_ref().and_then(|own| stated(config, own)).unwrap_or_else(|| plugin.to_owned());
    let mut uses = Vec::new();
    for server in config.servers.values() {
        if let Some(used) = server.adapter.as_ref().filter(|used| used.plugin == name) {
            uses.push(Use { server: Some(server.name.clone()), wanted: adapter_wanted(config, used)? });
        }
    }
    if uses.is_empty() {
        uses.extend(own.map(|wanted| Use { server: None, wanted }));
    }
    Ok(uses)
}

fn is_it(config: &Config, wanted: &Wanted, plugin: &str, directory: Option<&Path>) -> bool {
    let entry = wanted.files.plugin.as_str();
    let same_place = directory
        .is_some_and(|directory| Path::new(entry).canonicalize().is_ok_and(|there| there == directory));
    entry == plugin
        || same_place
        || wanted.name.as_deref() == Some(plugin)
        || (!plugin.starts_with(['.', '/']) && stated(config, wanted).as_deref() == Some(plugin))
}

/// The name that its release states, if it is signed as it should be.
fn stated(config: &Config, wanted: &Wanted) -> Option<String> {
    let release = wanted.files.verify(&config.plugins.trust).ok()?;
    Some(release.release().name.clone())
}
