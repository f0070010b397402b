//! From the configuration's words to the connection's: one place where secrets are handed on.

use std::path::{Path, PathBuf};

use toolgate_config::{Protocol, Server, Transport};
use toolgate_upstream::{ClientInfo, Limits, Mask, ProtocolChoice, ServerSpec, TransportSpec};

use crate::abilities::Abilities;
use crate::server_log;

/// What a connection needs to know of a server. An entry that cannot be used gives the reason.
///
/// A child without a `cwd` of its own starts in a private, empty directory: clients start Toolgate
/// inside repositories that somebody else wrote, and a package runner would read their settings.
pub(crate) fn of(
    server: &Server,
    told: Abilities,
    data_dir: &Path,
    child_program: &Path,
) -> Result<ServerSpec, String> {
    if let Some(missing) = server.missing_env.first() {
        return Err(format!(
            "missing credential: the variable {missing} that its entry names is not set. \
             Set it in the environment, in secrets.env or in .env"
        ));
    }
    let transport = match &server.transport {
        Transport::Stdio { command, args, env, cwd } => TransportSpec::Stdio {
            program: command.clone(),
            args: args.clone(),
            env: env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            cwd: Some(match cwd {
                Some(cwd) => cwd.clone(),
                None => private_dir(data_dir, &server.name)?,
            }),
        },
        Transport::StreamableHttp { url, headers } => {
            TransportSpec::Http { url: url.clone(), headers: headers.clone() }
        }
        Transport::Sse { url, headers } => TransportSpec::Sse { url: url.clone(), headers: headers.clone() },
    };
    let protocol = match server.protocol {
        Protocol::Auto => ProtocolChoice::Auto,
        Protocol::Legacy => ProtocolChoice::Legacy,
        Protocol::Modern => ProtocolChoice::Modern,
    };
    Ok(ServerSpec {
        name: server.name.clone(),
        transport,
        protocol,
        timeouts: server.timeouts,
        limits: Limits::default(),
        child_program: child_program.to_owned(),
        client_info: ClientInfo::new("toolgate", env!("CARGO_PKG_VERSION")),
        client_capabilities: told.to_json(),
        log: server_log::open(server, data_dir),
        mask: mask(server),
    })
}

/// What of a server's words nobody is shown.
fn mask(server: &Server) -> Mask {
    let masking = server.masking();
    Mask::new(masking.longest(), move |text| masking.apply(text))
}

/// `<data_dir>/run/<server>`; server names are file names (9a).
fn private_dir(data_dir: &Path, server: &str) -> Result<PathBuf, String> {
    let dir = data_dir.join("run").join(server);
    toolgate_base::files::create_private_dir(&dir)
        .map_err(|error| format!("its working directory {} cannot be made: {error}", dir.display()))?;
    Ok(dir)
}
