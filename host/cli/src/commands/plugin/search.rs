//! `plugin search`: what the indexes have.

use serde_json::{Value, json};
use toolgate_config::Config;
use toolgate_gateway::indexes::{self, Hit, IndexError};
use toolgate_registry::Listed;

use super::fetch::refused;
use crate::args::PluginSearch;
use crate::exit::Failure;
use crate::json::text;
use crate::output;

/// Most plugins of one index that are shown.
const MOST: usize = 50;

/// `plugin search [WORD…]`. An index that cannot be asked does not hide the others, and is the exit code.
pub(super) async fn search(config: &Config, args: &PluginSearch) -> Result<(), Failure> {
    if config.plugins.indexes.is_empty() {
        return Err(refused(config, &IndexError::NoIndex(args.words.join(" "))));
    }
    let (hits, unasked) = indexes::search(config, &args.words, MOST).await;
    let rows: Vec<Value> = hits.iter().map(row).collect();
    if args.json {
        let unasked: Vec<Value> = unasked
            .iter()
            .map(|error| json!({ "index": error.index(), "code": error.code(), "reason": error.to_string() }))
            .collect();
        output::json(&json!({ "plugins": rows, "unasked": unasked }))?;
    } else if rows.is_empty() && unasked.is_empty() {
        output::line("no plugin has all of these words in its name")?;
    } else if !rows.is_empty() {
        let cells: Vec<Vec<String>> = rows
            .iter()
            .map(|row| {
                ["name", "version", "kind", "published", "index"]
                    .map(|key| text(row, key).to_owned())
                    .to_vec()
            })
            .collect();
        output::table(&["NAME", "NEWEST", "KIND", "PUBLISHED", "INDEX"], &cells)?;
    }
    let mut first = None;
    for error in &unasked {
        first.get_or_insert(refused(config, error));
    }
    first.map_or(Ok(()), Err)
}

/// The newest release that is not yanked stands for the plugin.
fn row(hit: &Hit) -> Value {
    let usable = hit.releases.iter().filter(|listed| listed.yanked.is_none());
    let newest = usable.max_by(|left, right| left.line.version.cmp(&right.line.version));
    let versions: Vec<Value> = hit.releases.iter().map(version).collect();
    json!({
        "index": hit.index,
        "name": hit.name,
        "version": newest.map_or_else(|| "all yanked".to_owned(), |listed| listed.line.version.to_string()),
        "kind": newest.map(|listed| listed.line.kind.as_str()),
        "published": newest.map(|listed| listed.line.published.to_string()),
        "versions": versions,
    })
}

fn version(listed: &Listed) -> Value {
    json!({
        "version": listed.line.version,
        "sequence": listed.line.sequence,
        "component": listed.line.component,
        "release": listed.line.release,
        "published": listed.line.published,
        "yanked": listed.yanked,
    })
}
