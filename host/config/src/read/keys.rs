//! The tables of keys: what each block accepts, other spellings of it, and what is not built yet.
//!
//! These tables are what the reader refuses by and what the published JSON Schema is compared with.

/// The keys of one block.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Accepted.
    pub(crate) known: &'static [&'static str],
    /// Other spellings: (as written, as meant).
    pub(crate) aliases: &'static [(&'static str, &'static str)],
    /// In the canonical configuration, but not in this version.
    pub(crate) later: &'static [&'static str],
}

const fn keys(known: &'static [&'static str]) -> Keys {
    Keys { known, aliases: &[], later: &[] }
}

pub(crate) const TOP: Keys = Keys {
    known: &[
        "data_dir",
        "on_missing_env",
        "managed",
        "serve",
        "servers",
        "personas",
        "skills",
        "permissions",
        "approvals",
        "pins",
        "plugins",
        "audit",
    ],
    aliases: &[],
    later: &["registries", "agents", "presets"],
};

/// Keys that only a file of the managed layer has; elsewhere they are refused with the reason.
pub(crate) const MANAGED_ONLY: [&str; 2] = ["bind", "format"];

pub(crate) const SERVE: Keys = Keys {
    known: &[
        "listen",
        "allowed_hosts",
        "allowed_origins",
        "keep_alive",
        "head_timeout",
        "session_idle",
        "idle_exit",
        "max_sessions",
        "max_sessions_per_token",
        "max_running",
        "max_unread_mib",
        "max_unread_total_mib",
        "max_tool_name",
        "behind_proxy",
    ],
    aliases: &[],
    later: &["console", "tls", "auth"],
};

pub(crate) const SERVER: Keys = Keys {
    known: &[
        "transport",
        "command",
        "args",
        "env",
        "cwd",
        "url",
        "headers",
        "protocol",
        "enabled",
        "instance",
        "timeouts",
        "restarts",
        "max_connections",
        "tools",
        "trust",
        "adapter",
        "description",
        "rate_limit",
        "elicitation",
        "elicitation_timeout",
        "sampling",
        "roots",
        "logging",
        "bind",
        "format",
    ],
    aliases: &[("type", "transport"), ("protocol_version", "protocol"), ("rateLimit", "rate_limit")],
    later: &["auth", "shell", "sandbox"],
};

pub(crate) const TIMEOUTS: Keys = keys(&["init", "call", "probe", "max_total", "task_lost"]);
pub(crate) const RESTARTS: Keys = keys(&["first", "longest", "starts", "within"]);
pub(crate) const RATE_LIMIT: Keys = Keys {
    known: &["requests_per_minute"],
    aliases: &[("requestsPerMinute", "requests_per_minute"), ("callsPerMinute", "requests_per_minute")],
    later: &[],
};
pub(crate) const TOOLS: Keys = keys(&["allow", "deny"]);
pub(crate) const TRUST: Keys = Keys {
    known: &["auto_approve_tools", "pinned_tool_hash", "host_escape"],
    aliases: &[
        ("autoApproveTools", "auto_approve_tools"),
        ("pinnedToolHash", "pinned_tool_hash"),
        ("hostEscape", "host_escape"),
    ],
    later: &[],
};
pub(crate) const ADAPTER: Keys = keys(&["plugin", "settings", "grants"]);

pub(crate) const PERSONA: Keys = keys(&["servers", "skills", "capabilities", "approvals"]);
pub(crate) const SKILL: Keys = Keys {
    known: &["directory", "runtime", "servers"],
    aliases: &[("ankole-runtime", "runtime")],
    later: &[],
};
pub(crate) const CAPABILITIES: Keys = Keys {
    known: &["allow", "require_approval"],
    aliases: &[("requireApproval", "require_approval")],
    later: &[],
};
pub(crate) const PERSONA_APPROVALS: Keys = keys(&["in_client", "cut"]);

pub(crate) const APPROVALS: Keys = keys(&["timeout", "hold", "webhook"]);

pub(crate) const APPROVALS_WEBHOOK: Keys = keys(&["url", "secret", "keys"]);
pub(crate) const PERMISSIONS: Keys =
    Keys { known: &["mcp"], aliases: &[], later: &["mcp_install", "web.fetch", "http.get", "file.write"] };
pub(crate) const PINS: Keys = keys(&["first_use"]);
pub(crate) const AUDIT: Keys = keys(&["durability", "arguments", "sinks"]);
pub(crate) const SINK: Keys =
    keys(&["name", "type", "path", "rotate", "keep", "address", "url", "headers", "format"]);

pub(crate) const PLUGINS: Keys = Keys {
    known: &["bundle", "fallback", "trust", "load", "managed", "min_age", "update", "indexes", "hosts"],
    aliases: &[],
    later: &[],
};
pub(crate) const HOST: Keys = keys(&["host", "ca", "private", "username", "password"]);
pub(crate) const INDEX: Keys = keys(&["name", "url", "root", "refresh"]);
pub(crate) const TRUST_RULE: Keys = keys(&["plugins", "any_of", "all_of", "keys", "index"]);
pub(crate) const ANY_OF: Keys = keys(&["minimum", "keys"]);
pub(crate) const LOAD: Keys = keys(&["plugin", "mode", "decisions", "settings", "grants"]);
pub(crate) const GRANTS: Keys = keys(&["http", "secrets", "kv", "files"]);
pub(crate) const GRANT_HTTP: Keys = keys(&["hosts", "methods", "max_response", "timeout"]);
pub(crate) const GRANT_SECRET: Keys = keys(&["value", "send_to", "reveal"]);
pub(crate) const GRANT_KV: Keys = keys(&["max_bytes"]);
pub(crate) const GRANT_FILES: Keys = keys(&["directories", "access"]);
