//! The strict door: what a policy judged must be what the other side reads.
//!
//! Contract: [`scan`] answers with the text only if every reader of it must see the same message. It refuses bytes
//! that are not UTF-8, text that is not JSON, keys that occur twice in one object (compared after unescaping), lone
//! surrogates, more open containers than [`Limits::max_depth`] and messages longer than [`Limits::max_message`].
//!
//! Threat: a peer sends `{"name":"safe","name":"evil"}`, or hides the second key behind `\u006e`, and hopes that the
//! gateway and the server pick different ones. JSON parsers disagree exactly on what is refused here.
//!
//! Bounds: UTF-8 is checked by the standard library at memory speed, then the text is walked once. There is no
//! recursion and no allocation per value; the keys of open objects take 16 bytes each until their object closes.

mod recover;
mod scanner;

pub use recover::Recovered;
pub(crate) use recover::Recovery;

use crate::{Id, Limits};

/// Defects that [`survey`] collects before it gives up on a message.
pub const MAX_DEFECTS: usize = 64;

/// Checks one message and returns it as text.
pub fn scan<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, DoorError> {
    let text = read(bytes, limits)?;
    scanner::Scanner::new(text, limits.max_depth, 0).run()?;
    Ok(text)
}

/// Like [`scan`], but goes on after a duplicate key, a lone surrogate or too deep a container and reports where each
/// stands, so that one tool of a listing can be dropped instead of the listing (design.md 3.1). The text must not be
/// used before every defect has been cut out of it. Syntax, UTF-8 and length stay fatal, as do more than
/// [`MAX_DEFECTS`] defects.
pub fn survey<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Survey<'a>, DoorError> {
    let text = read(bytes, limits)?;
    let defects = scanner::Scanner::new(text, limits.max_depth, MAX_DEFECTS).run()?;
    Ok(Survey { text, defects })
}

/// Best effort on bytes the door refused: the top-level `id`, so that only that one request fails (field report
/// ST-11). `None` if there is none, if it is no id, or if two different ones are there.
pub fn recover_id(bytes: &[u8]) -> Option<Id> {
    recover(bytes).id
}

/// Like [`recover_id`], and also tells a call from a reply: an `id` beside a `method` is the peer's own request and
/// must not end one of ours.
pub fn recover(bytes: &[u8]) -> Recovered {
    let mut recovery = Recovery::new();
    recovery.push(bytes);
    recovery.finish()
}

/// What [`survey`] found in a message whose syntax is sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Survey<'a> {
    /// The message.
    pub text: &'a str,
    /// Its defects in the order they were met; empty means [`scan`] would have passed it.
    pub defects: Vec<DoorError>,
}

impl Survey<'_> {
    /// Sorts the defects by the element of the array at `pointer` they lie in: `(index, defect)` in order. `None`
    /// where one lies elsewhere, so that the whole message must be refused.
    ///
    /// `survey.by_element("/result/tools")` names the tools of a listing to drop, with the reason for each.
    pub fn by_element(&self, pointer: &str) -> Option<Vec<(usize, &DoorError)>> {
        let index = |defect: &DoorError| {
            let token = defect.pointer.strip_prefix(pointer)?.strip_prefix('/')?.split('/').next()?;
            token.parse().ok()
        };
        self.defects.iter().map(|defect| Some((index(defect)?, defect))).collect()
    }
}

/// Why a message was refused. The sender is at fault; the message can only be sent again in a sound form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}, in `{pointer}`")]
pub struct DoorError {
    /// What is wrong.
    pub kind: DoorErrorKind,
    /// RFC 6901 pointer of the offending place, or of the last place the scan had reached. A key longer than 256
    /// bytes is cut and ends in `…`.
    pub pointer: String,
    /// Bytes from the start of the message.
    pub offset: usize,
}

/// The kinds of refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DoorErrorKind {
    /// The bytes are not UTF-8.
    #[error("the message is not UTF-8")]
    NotUtf8,
    /// The text is not JSON (RFC 8259).
    #[error("the message is not JSON")]
    Syntax,
    /// An object holds this key twice, compared after unescaping.
    #[error("the key {0:?} occurs twice in one object")]
    DuplicateKey(String),
    /// A string holds half of a surrogate pair.
    #[error("a string holds a lone surrogate")]
    LoneSurrogate,
    /// More containers are open at once than the limit allows.
    #[error("the message is nested deeper than the limit of {0} levels")]
    TooDeep(usize),
    /// The message has more bytes than the limit allows.
    #[error("the message is longer than the limit")]
    TooLong,
}

/// Length and UTF-8: what must hold before there is a text to walk.
fn read<'a>(bytes: &'a [u8], limits: &Limits) -> Result<&'a str, DoorError> {
    // Offsets are kept in 32 bits, so that the keys of a hostile object cost no more than they must.
    let most = limits.max_message.min(u32::MAX as usize);
    if bytes.len() > most {
        return Err(DoorError { kind: DoorErrorKind::TooLong, pointer: String::new(), offset: most });
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = error.valid_up_to();
        let sound = bytes.get(..offset).and_then(|head| std::str::from_utf8(head).ok()).unwrap_or_default();
        // The sound head ends inside the place that is broken, so a scan of it stops there.
        let pointer = match scanner::Scanner::new(sound, limits.max_depth, 0).run() {
            Err(stopped) => stopped.pointer,
            Ok(_) => String::new(),
        };
        DoorError { kind: DoorErrorKind::NotUtf8, pointer, offset }
    })
}

#[cfg(test)]
mod tests;
