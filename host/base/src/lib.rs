//! The ground floor: secrets, private atomic files, cross-process locks, clocks and escaped display.
//!
//! Nothing here knows MCP, a network or a plugin. Everything is synchronous and bounded by the
//! size of its input. Three modules face hostile text: [`hidden`] finds characters that a person
//! does not see, [`lookalike`] names that are made to be taken for others, and [`display`] makes any text safe to show on a terminal or in a log line.

mod backoff;
pub mod clock;
pub mod display;
pub mod files;
pub mod hidden;
pub mod lock;
pub mod lookalike;
mod random;
pub mod rotate;
mod secret;
mod sys;
mod timeouts;

pub use backoff::Backoff;
pub use clock::{Clock, ManualClock, SystemClock};
pub use random::{random_bytes, random_hex};
pub use secret::Secret;
pub use timeouts::Timeouts;
