//! Error codes of JSON-RPC 2.0, of the protocol's revisions, and Toolgate's own.
//!
//! Bounds: the protocol reserves -32768..=-32000; Toolgate's own codes are positive, so that a refusal by the gateway
//! can never be taken for an error of the peer behind it (protocol.md 1.2).

/// The bytes are no JSON (JSON-RPC 2.0, 5.1).
pub const PARSE_ERROR: i64 = -32700;
/// The JSON is no request; also what the strict door answers a client with (design.md 3.1).
pub const INVALID_REQUEST: i64 = -32600;
/// The method is unknown, or its server capability was not advertised.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// Malformed parameters or `_meta`, an unknown tool, prompt, cursor or resource.
pub const INVALID_PARAMS: i64 = -32602;
/// The peer failed in itself (JSON-RPC 2.0, 5.1).
pub const INTERNAL_ERROR: i64 = -32603;

/// A header disagrees with the body, or a required one is absent (revision 2026-07-28; HTTP 400).
pub const HEADER_MISMATCH: i64 = -32020;
/// The request needs a client capability that its `_meta` does not declare (revision 2026-07-28; HTTP 400).
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// The named protocol revision is not served; `data` is `{supported, requested}` (revision 2026-07-28; HTTP 400).
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// Resource not found, as servers before 2026-07-28 say it. Accepted, never emitted.
pub const LEGACY_RESOURCE_NOT_FOUND: i64 = -32002;
/// A URL must be visited first (2025-11-25). Accepted, never emitted.
pub const LEGACY_URL_ELICITATION: i64 = -32042;

/// A policy, or the absence of one that allows, refused.
pub const DENIED: i64 = 1001;
/// A person has not answered yet; the error's data names the ask.
pub const ASK_PENDING: i64 = 1002;
/// A deadline of the gateway passed.
pub const TIMED_OUT: i64 = 1003;
/// The upstream server is not connected, or was lost during the call.
pub const UPSTREAM_UNAVAILABLE: i64 = 1004;
/// The upstream server answered with something that is no answer.
pub const UPSTREAM_INVALID: i64 = 1005;
/// The upstream server wants a sign-in that only the operator can give.
pub const AUTHENTICATION_NEEDED: i64 = 1006;
/// A definition no longer matches its pin.
pub const PIN_MISMATCH: i64 = 1007;
/// A plugin failed; the error's data names it.
pub const PLUGIN_FAULT: i64 = 1008;
/// A message or result is longer than its limit.
pub const TOO_LARGE: i64 = 1009;
/// The audit row could not be written, so nothing was sent.
pub const AUDIT_UNAVAILABLE: i64 = 1010;
/// The caller, or the gateway's shutdown, cancelled.
pub const CANCELLED: i64 = 1011;

/// The stable word for one of Toolgate's own codes, for `_meta["toolgate/error"]`; `None` for any other code.
pub fn word(code: i64) -> Option<&'static str> {
    Some(match code {
        DENIED => "denied",
        ASK_PENDING => "ask_pending",
        TIMED_OUT => "timed_out",
        UPSTREAM_UNAVAILABLE => "upstream_unavailable",
        UPSTREAM_INVALID => "upstream_invalid",
        AUTHENTICATION_NEEDED => "authentication_needed",
        PIN_MISMATCH => "pin_mismatch",
        PLUGIN_FAULT => "plugin_fault",
        TOO_LARGE => "too_large",
        AUDIT_UNAVAILABLE => "audit_unavailable",
        CANCELLED => "cancelled",
        _ => return None,
    })
}

/// Whether a code says that a server speaks the modern era (protocol.md 1.9: "recognised modern error").
pub fn is_modern_error(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_VERSION)
}

#[cfg(test)]
mod tests;
