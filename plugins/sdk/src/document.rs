//! Reading documents, which stay with the host so that a large result is not copied into every
//! policy. Ask for the smallest part that decides: [`crate::Document::text`] gives one string.

#[cfg(feature = "json")]
use crate::{Document, Error};

/// Parses the value at an RFC 6901 pointer of a document; none where nothing is.
///
/// [`Error::Invalid`] when the value is not of that shape, with the pointer and the reason, and
/// [`Error::LimitExceeded`] when it is larger than the plugin's `host-bytes` limit.
#[cfg(feature = "json")]
pub fn parse<T: serde::de::DeserializeOwned>(document: &Document, pointer: &str) -> Result<Option<T>, Error> {
    document
        .pointer(pointer)?
        .map(|text| {
            serde_json::from_str(&text)
                .map_err(|fault| Error::Invalid(format!("the value at {pointer:?}: {fault}")))
        })
        .transpose()
}

/// One segment of an RFC 6901 pointer: `~` and `/` inside a name are escaped.
///
/// ```
/// assert_eq!(toolgate_sdk::document::segment("a/b~c"), "a~1b~0c");
/// ```
pub fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
