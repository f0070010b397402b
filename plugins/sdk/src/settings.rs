//! The settings that the operator wrote for this plugin, always one JSON object.

use crate::bindings::imports::toolgate::plugin::settings as host;
use crate::{Document, Error};

/// The settings as a document; the empty object where the operator wrote none.
pub fn document() -> Document {
    host::get()
}

/// The string at an RFC 6901 pointer of the settings; none where it is not set.
///
/// [`Error::Invalid`] where something other than a string stands there: a setting that is wrong
/// must not pass for one that is absent.
pub fn text(pointer: &str) -> Result<Option<String>, Error> {
    let settings = host::get();
    match (settings.text(pointer)?, settings.pointer(pointer)?) {
        (Some(text), _) => Ok(Some(text)),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(Error::Invalid(format!("the setting {pointer} must be a string"))),
    }
}

/// The settings as a type of the author's; use `deny_unknown_fields`, so that a misspelt key is an
/// error and not a setting that does nothing.
///
/// [`Error::Invalid`] where they are not of that shape, [`Error::LimitExceeded`] above the
/// plugin's `host-bytes` limit.
#[cfg(feature = "json")]
pub fn parse<T: serde::de::DeserializeOwned>() -> Result<T, Error> {
    serde_json::from_str(&host::get().read()?).map_err(|fault| Error::Invalid(format!("settings: {fault}")))
}
