//! From `plugins.hosts` to how the registry crate reaches hosts.

use toolgate_config::Config;
use toolgate_registry::{Credentials, Host, Reach};

use super::IndexError;

/// Largest file of certificates, bytes.
const MAX_CA: u64 = 1024 * 1024;

/// What the operator says of hosts. The files of authorities are read now, so that a new one counts at the
/// next request that is made.
///
/// # Errors
/// [`IndexError::Host`] for a file that cannot be read, and for a password whose variable has no value: to
/// go on without either would be another request than the operator means.
pub fn reach(config: &Config) -> Result<Reach, IndexError> {
    let mut hosts = Vec::new();
    for entry in &config.plugins.hosts {
        let unusable = |reason: String| IndexError::Host { host: entry.host.clone(), reason };
        let mut host = Host { private: entry.private, ..Host::named(&entry.host) };
        if let Some(path) = &entry.ca {
            let read = toolgate_base::files::read_bounded(path, MAX_CA);
            let read = read.and_then(|found| found.ok_or_else(|| std::io::ErrorKind::NotFound.into()));
            host.authorities = read.map_err(|error| {
                unusable(format!("the certificates in {} cannot be read: {error}", path.display()))
            })?;
        }
        if let Some((username, password)) = &entry.sign_in {
            if password.expose().is_empty() {
                return Err(unusable("the variable of its password has no value".to_owned()));
            }
            let credentials = Credentials { username: username.clone(), password: password.clone() };
            host.credentials = Some(credentials);
        }
        hosts.push(host);
    }
    Ok(Reach::new(hosts))
}
