//! `plugin inspect`: what a plugin is and what it may do.

use serde_json::Value;
use toolgate_config::Config;

use super::{files, refused};
use crate::exit::Failure;
use crate::json::{at, text};
use crate::output;

/// The signed statement, for a reader who has not seen one.
pub(super) fn inspect(config: &Config, plugin: &str, as_json: bool) -> Result<(), Failure> {
    let files = files(config, plugin)?;
    let release = files.verify(&config.plugins.trust).map_err(|refusal| refused(&refusal))?;
    let stated = serde_json::to_value(release.release()).map_err(Failure::failed)?;
    if as_json {
        return output::json(&stated);
    }
    let list = |key: &str| {
        let items = at(&stated, key).as_array().into_iter().flatten().filter_map(Value::as_str);
        items.fold(String::new(), |list, item| list + "\n    " + item)
    };
    output::line(&format!(
        "{} {} ({})",
        text(&stated, "name"),
        text(&stated, "version"),
        text(&stated, "kind")
    ))?;
    output::line(&format!("  component {}", release.component()))?;
    output::line(&format!("  it may call, inside the host:{}", list("imports")))?;
    output::line(&format!("  the host may call of it:{}", list("exports")))?;
    output::line(&format!("  it may decide:{}", list("decisions")))?;
    output::line(&format!("  beyond its own memory it asks for: {}", at(&stated, "capabilities")))
}
