//! What a panic leaves behind: one line in the operator's log.

use std::sync::Once;

use crate::log;

/// Sends the message of a panic to `log` before the instance traps; cheap when done already.
///
/// Without it an operator would read only `unreachable`. The host escapes and caps the text.
pub fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            log::write(log::Level::Error, &panic.to_string());
        }));
    });
}
