//! A stream of events as the body of a response.
//!
//! **Bounds.** A short queue feeds it; who fills the queue waits, or drops what may be lost. A stream
//! with nothing to say sends a comment now and then, so that nothing between takes it for dead. Whatever
//! hangs on the stream ends when the client closes it, because the guard goes with the body.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;
use toolgate_wire::sse;

use super::answer::Body;
use crate::unread::Waiting;

/// Events that wait for the client to read.
pub(super) const QUEUE: usize = 16;

/// Something to send.
pub(super) enum Item {
    /// A message in between.
    Message(Waiting),
    /// The last message, or the end without one.
    Last(Option<Waiting>),
}

struct State {
    /// Taken before anything of the queue.
    first: Option<Item>,
    items: mpsc::Receiver<Item>,
    keep_alive: Duration,
    ended: bool,
    /// Cancels what feeds the stream when the body is dropped.
    _guard: Option<DropGuard>,
}

/// The body that sends `first` and then what comes through the queue, until the last item or until the
/// queue closes.
pub(super) fn body(
    first: Option<Item>,
    items: mpsc::Receiver<Item>,
    keep_alive: Duration,
    guard: Option<DropGuard>,
) -> Body {
    let state = State { first, items, keep_alive, ended: false, _guard: guard };
    StreamBody::new(stream::unfold(state, next)).boxed_unsync()
}

/// The body of one event.
pub(super) fn single(message: Option<Waiting>) -> Body {
    let (_, items) = mpsc::channel(1);
    body(Some(Item::Last(message)), items, Duration::from_mins(1), None)
}

async fn next(mut state: State) -> Option<(Result<Frame<Bytes>, Infallible>, State)> {
    if state.ended {
        return None;
    }
    let item = match state.first.take() {
        Some(item) => Some(item),
        None => match tokio::time::timeout(state.keep_alive, state.items.recv()).await {
            Ok(item) => item,
            Err(_) => return Some((Ok(frame(sse::KEEP_ALIVE.to_owned().into())), state)),
        },
    };
    let message = match item? {
        Item::Message(message) => message,
        Item::Last(message) => {
            state.ended = true;
            message?
        }
    };
    Some((Ok(frame(message.map(|text| sse::encode(None, None, text)))), state))
}

fn frame(text: Waiting) -> Frame<Bytes> {
    Frame::data(text.into_bytes())
}
