//! One gateway for a data directory: clients on pipes reach it over a local socket.
//!
//! **Contract.** Who serves a data directory holds [`Claim`], a lock that the kernel takes back however
//! its holder ends, so that there is one gateway for a directory and a crash leaves nothing to clean up.
//! The holder listens on `<data_dir>/run/gateway.sock` ([`Door`]); a client greets it ([`dial`]) with one
//! line and is answered with one line, after which the bytes of its agent pass as they are ([`relay`]).
//! A client of another version, configuration or manner of holding to the lock file is refused with the
//! reason, because it would be served by rules that are not its own.
//!
//! **Bounds.** A greeting has [`MAX_GREETING`] bytes and 10 s, and [`MAX_GREETERS`] of them are waited for: one
//! more ends the oldest; [`MAX_CLIENTS`] connections at a time; a
//! relay holds one line of the gateway's and 64 KiB of the client's.
//!
//! **Threat.** Whoever reaches the socket acts as any persona and hands over variables, so it must be
//! the account that owns the directory: the directory has mode 0700, the socket 0600, and both sides
//! look at the user id of the other, which the kernel states. A process of the same account is the
//! operator to the operating system and can do the same with `toolgate serve`.

mod claim;
mod dial;
mod door;
mod greeting;
mod open_requests;
mod relay;

pub use claim::{Claim, ClaimError, Holder, Manner};
pub use dial::{Connected, DialError, dial, greet};
pub use door::{Answering, Door, DoorOptions, Ended, Room};
pub use greeting::{Hello, MAX_GREETING, PROTOCOL, Refused, Reply, Standing, Want};
pub use relay::{RelayEnd, relay};

use std::path::{Path, PathBuf};

/// Connections at a time; one more is closed unanswered.
pub const MAX_CLIENTS: usize = 1_024;

/// Connections that have not greeted yet; one more takes the place of the oldest of them.
pub const MAX_GREETERS: usize = 64;

/// The directory of the socket and the locks.
pub fn run_dir(data_dir: &Path) -> PathBuf {
    data_dir.join("run")
}

/// The socket of a data directory, by a name that is short enough for the system, and what keeps that
/// name good. Names of sockets end at 107 bytes; a longer one goes through the directory's descriptor.
fn socket(data_dir: &Path) -> std::io::Result<(PathBuf, Option<std::fs::File>)> {
    const LONGEST: usize = 100;
    let path = run_dir(data_dir).join("gateway.sock");
    if path.as_os_str().len() <= LONGEST {
        return Ok((path, None));
    }
    let held = std::fs::File::open(run_dir(data_dir))?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&held);
    Ok((PathBuf::from(format!("/proc/self/fd/{number}/gateway.sock")), Some(held)))
}

/// The user id of this process.
fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
