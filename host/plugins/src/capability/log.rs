//! `toolgate:plugin/log`: lines for the operator's log, escaped, cut and counted.

use toolgate_base::display;

use crate::bindings::log::{Host, Level};
use crate::limits::{MAX_LOG_LINE, MAX_LOG_LINES};
use crate::state::State;
use crate::text;

impl Host for State {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.knows.more = true;
        self.log_lines = self.log_lines.saturating_add(1);
        let plugin = self.shared.name.as_str();
        if self.log_lines > MAX_LOG_LINES {
            if self.log_lines == MAX_LOG_LINES + 1 {
                tracing::warn!(
                    plugin,
                    "the plugin wrote more than {MAX_LOG_LINES} lines in one call; the rest is dropped"
                );
            }
            return Ok(());
        }
        if matches!(level, Level::Error) {
            self.trace.said = Some(text::cut(&message, text::MAX_REASON).to_owned());
        }
        let line = display::escape(text::cut(&message, MAX_LOG_LINE));
        match level {
            Level::Debug => tracing::debug!(plugin, "{line}"),
            Level::Info => tracing::info!(plugin, "{line}"),
            Level::Warn => tracing::warn!(plugin, "{line}"),
            Level::Error => tracing::error!(plugin, "{line}"),
        }
        Ok(())
    }
}
