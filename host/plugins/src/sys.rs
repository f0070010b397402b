//! What only some platforms can tell: how long this thread has really run.

use std::time::Duration;

use cap_std::fs::OpenOptions;

/// Running time of the calling thread, none where the platform does not say.
///
/// Read from `/proc`, because the clock would need a dependency that is built another way for the
/// sake of one call on a slow path.
#[cfg(target_os = "linux")]
pub(crate) fn thread_running_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds = text.split_ascii_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanoseconds))
}

/// Running time of the calling thread, none where the platform does not say.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_running_time() -> Option<Duration> {
    None
}

/// Opening a pipe or a device must not wait for its other end.
#[cfg(unix)]
pub(crate) fn never_waits(options: &mut OpenOptions) {
    use cap_std::fs::OpenOptionsExt as _;
    // O_NONBLOCK; regular files do not know it.
    options.custom_flags(i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or_default());
}

/// Opening a pipe or a device must not wait for its other end.
#[cfg(not(unix))]
pub(crate) fn never_waits(_options: &mut OpenOptions) {}

/// Which directory it is, whatever its path: device and inode.
#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other platforms have none")]
pub(crate) fn identity(found: &cap_std::fs::Metadata) -> Option<(u64, u64)> {
    use cap_std::fs::MetadataExt as _;
    Some((found.dev(), found.ino()))
}

/// Which directory it is, whatever its path; nothing where the platform does not say.
#[cfg(not(unix))]
pub(crate) fn identity(_found: &cap_std::fs::Metadata) -> Option<(u64, u64)> {
    None
}
