//! `toolgate init`: a first configuration that can be read from top to bottom.

use std::path::PathBuf;

use crate::args::Init;
use crate::exit::Failure;
use crate::output;

/// The file that `init` writes: every line works as it stands.
pub(crate) const FIRST_CONFIG: &str = r#"# Toolgate reads this file and never rewrites it.
# Servers that `toolgate mcp add` adds are kept beside the data, and are bound to a persona there.

servers: {}
#  files:
#    command: npx
#    args: ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"]
#    adapter: { plugin: toolgate/filesystem, settings: { roots: ["/home/me/notes"] } }

personas:
  default: {}
#    servers: [files]
#    capabilities:
#      allow: ["mcp.call:files/read_text_file"]         # require_approval wins where both cover a tool
#      require_approval: ["mcp.call:files/write_file"]
"#;

/// Writes the file into the user's configuration directory.
pub(crate) fn run(args: &Init) -> Result<(), Failure> {
    let path = user_config()?;
    if path.exists() && !args.force {
        return Err(Failure::usage(format!("{} is there already", path.display()))
            .hint("edit it, or replace it with `toolgate init --force`"));
    }
    toolgate_base::files::write_private(&path, FIRST_CONFIG.as_bytes())
        .map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))?;
    if args.json {
        return output::json(&serde_json::json!({ "config": path }));
    }
    output::line(&format!("wrote {}", path.display()))?;
    output::line("next: toolgate mcp add NAME -- COMMAND, or toolgate quickstart to see how it works")
}

fn user_config() -> Result<PathBuf, Failure> {
    let env = |name: &str| std::env::var(name).ok();
    toolgate_config::user_config_dir(&env).map(|dir| dir.join("toolgate.yaml")).ok_or_else(|| {
        Failure::usage("neither XDG_CONFIG_HOME nor HOME is set, so there is no place for a configuration")
    })
}
