//! An error and why, for a person.

/// An error with what caused it, on one line: a client says `error sending request`, and only its cause
/// says that nobody listens there. It names the URL unless the error was stripped of it.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}
