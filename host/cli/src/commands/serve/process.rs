//! The gateway that clients on pipes share: a process of its own that ends some time after the last.
//!
//! Contract: standard output carries one line, for the client that started it: that it is ready, or why
//! not. From then on it is nobody's. Standard error is the log.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolgate_downstream::local::{Claim, Door, DoorOptions, Ended, Manner, Refused, Standing};

use super::pool::{Pool, Shared};
use crate::args::GatewayProcess;
use crate::exit::Failure;
use crate::{context, logging, sys};

/// How long the process before may take to end: its servers are stopped within 8 s.
const BEFORE: Duration = Duration::from_secs(20);

/// What its starter is told.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Started {
    /// The socket answers.
    Ready,
    /// It will not.
    Failed(Refused),
}

/// Everything that has to stand before clients come in.
struct Ready {
    /// Dropped last: whoever takes the directory next finds nothing of this process at work.
    claim: Claim,
    door: Door,
    pool: Arc<Pool>,
    standing: Standing,
    idle_exit: Duration,
    stop: CancellationToken,
}

/// Serves clients on the socket until nobody is left, or until a signal comes.
pub(crate) async fn run(explicit: Option<&Path>, args: &GatewayProcess) -> Result<(), Failure> {
    let ready = match prepare(explicit, args).await {
        Ok(ready) => ready,
        Err(failure) => {
            tell(&Started::Failed(refused(&failure)));
            return Err(failure);
        }
    };
    tell(&Started::Ready);
    if let Err(error) = sys::close_stdout() {
        tracing::warn!(%error, "standard output stays open");
    }
    let Ready { claim, door, pool, standing, idle_exit, stop } = ready;
    tracing::info!(pid = std::process::id(), "the gateway of this data directory is ready");
    let signals = super::stop_on_signal(&stop);
    let options = DoorOptions { standing, idle_exit: Some(idle_exit), shutdown: stop };
    let ended = door.keep(Arc::new(Shared(Arc::clone(&pool))), options).await;
    signals.abort();
    pool.end().await;
    match ended {
        Ended::Told => tracing::info!("the gateway was told to end"),
        Ended::Idle => tracing::info!(after = ?idle_exit, "no client was left; the gateway ends"),
    }
    drop(claim);
    Ok(())
}

async fn prepare(explicit: Option<&Path>, args: &GatewayProcess) -> Result<Ready, Failure> {
    let env = |name: &str| std::env::var(name).ok();
    let loaded = context::load_from(explicit, &args.from, &env, None)?;
    let config = &loaded.config;
    let claim = super::take(config, Manner::Shared, BEFORE)?;
    logging::keep_in(&config.data_dir);
    let (standing, idle_exit) = (super::standing(config), config.serve.idle_exit);
    let unread = super::unread(&config.serve);
    let stop = CancellationToken::new();
    let (pool, _, _) = Pool::begin(loaded, unread, stop.clone()).await?;
    let door = super::open(&claim)?;
    Ok(Ready { claim, door, pool, standing, idle_exit, stop })
}

/// A failure for whoever is on the other side of a pipe or a socket.
pub(super) fn refused(failure: &Failure) -> Refused {
    Refused { code: failure.code as u8, message: failure.message.clone(), hint: failure.hint.clone() }
}

fn tell(started: &Started) {
    use std::io::Write as _;
    let mut out = std::io::stdout().lock();
    // A starter that has gone needs to know nothing.
    let _ = serde_json::to_writer(&mut out, started);
    let _ = out.write_all(b"\n");
    let _ = out.flush();
}
