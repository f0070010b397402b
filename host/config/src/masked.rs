//! The merged configuration as it may be shown (rows SEC-004, SEC-017; field report SE-12).
//!
//! Contract: every value of a variable or header is `***`, whoever wrote it; where a variable was
//! expanded elsewhere the template is shown instead of what it became; userinfo and query values of
//! a URL are `***`; an argument that looks like a secret is `***`. Each server says its origin.

use serde_json::{Map, Value, json};
use toolgate_net::Url;

use crate::duration::show;
use crate::index::Updates;
use crate::model::{Arguments, Bundle, Config, Durability, FirstUse};
use crate::permissions::Permissions;
use crate::persona::{CutAsks, Persona};
use crate::server::{Instance, Origin, Protocol, Server, Transport, looks_like_secret};
use crate::sink::{Sink, SinkFormat, SinkTarget};

#[cfg(test)]
mod tests;

const MASK: &str = "***";

/// The whole configuration for `config show`.
pub fn masked(config: &Config) -> Value {
    let servers: Map<String, Value> =
        config.servers.iter().map(|(name, server)| (name.clone(), masked_server(server))).collect();
    let personas: Map<String, Value> =
        config.personas.iter().map(|(name, persona)| (name.clone(), persona_value(persona))).collect();
    let skills: Map<String, Value> = config
        .skills
        .iter()
        .map(|(name, skill)| {
            (name.clone(), json!({ "runtime": skill.runtime.as_str(), "servers": skill.servers }))
        })
        .collect();
    json!({
        "file": config.path,
        "data_dir": config.data_dir,
        "config_dir": config.config_dir,
        "managed": if config.managed { "on" } else { "off" },
        "serve": {
            "listen": config.serve.listen.to_string(),
            "allowed_hosts": config.serve.allowed_hosts,
            "allowed_origins": config.serve.allowed_origins,
            "keep_alive": show(config.serve.keep_alive),
            "head_timeout": show(config.serve.head_timeout),
            "session_idle": show(config.serve.session_idle),
            "idle_exit": show(config.serve.idle_exit),
            "max_sessions": config.serve.max_sessions,
            "max_sessions_per_token": config.serve.max_sessions_per_token,
            "max_running": config.serve.max_running,
            "max_unread_mib": config.serve.max_unread_mib,
            "max_unread_total_mib": config.serve.max_unread_total_mib,
            "max_tool_name": config.serve.max_tool_name,
            "behind_proxy": config.serve.behind_proxy,
        },
        "servers": servers,
        "personas": personas,
        "skills": skills,
        "permissions": { "mcp": permissions_value(&config.permissions) },
        "approvals": approvals_value(config),
        "pins": { "first_use": match config.pins.first_use { FirstUse::Pin => "pin", FirstUse::Review => "review" } },
        "plugins": plugins_value(config),
        "audit": audit_value(config),
    })
}

/// The URL is masked too: such addresses often hold a token.
fn approvals_value(config: &Config) -> Value {
    let approvals = &config.approvals;
    json!({
        "timeout": show(approvals.timeout),
        "hold": show(approvals.hold),
        "webhook": approvals.webhook.as_ref().map(|webhook| json!({
            "url": MASK,
            "secret": MASK,
            "keys": webhook.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })),
    })
}

fn permissions_value(permissions: &Permissions) -> Value {
    let servers: Map<String, Value> =
        permissions.servers.iter().map(|(name, permit)| (name.clone(), json!(permit.as_str()))).collect();
    match permissions.all {
        Some(permit) => json!(permit.as_str()),
        None => json!(servers),
    }
}

fn audit_value(config: &Config) -> Value {
    json!({
        "durability": match config.audit.durability {
            Durability::Process => "process",
            Durability::Disk => "disk",
        },
        "arguments": match config.audit.arguments {
            Arguments::Digest => "digest",
            Arguments::Redacted => "redacted",
            Arguments::Full => "full",
        },
        "sinks": config.audit.sinks.iter().map(sink_value).collect::<Vec<_>>(),
    })
}

fn sink_value(sink: &Sink) -> Value {
    let hidden = |headers: &[(String, toolgate_base::Secret)]| -> Map<String, Value> {
        headers.iter().map(|(name, _)| (name.clone(), json!(MASK))).collect()
    };
    let target = match &sink.target {
        SinkTarget::Jsonl { path, rotate, keep } => json!({ "path": path, "rotate": rotate, "keep": keep }),
        SinkTarget::Syslog { host, port } => json!({ "address": format!("{host}:{port}") }),
        SinkTarget::Otlp { url, headers } | SinkTarget::Webhook { url, headers } => {
            json!({ "url": mask_url(url), "headers": hidden(headers) })
        }
    };
    let format = match sink.format {
        SinkFormat::Toolgate => "toolgate",
        SinkFormat::Ocsf => "ocsf",
    };
    json!({ "name": sink.name, "type": sink.target.kind(), "format": format, "target": target })
}

/// A URL with its userinfo and the values of its query masked. What is no URL is masked whole.
pub fn mask_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else { return MASK.to_owned() };
    if url.password().is_some() {
        // Neither can fail for a URL with a host, and without one there is no userinfo to hide.
        let _ = url.set_password(Some(MASK));
    }
    if !url.username().is_empty() {
        let _ = url.set_username(MASK);
    }
    if url.query().is_some() {
        let names: Vec<String> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        // A query without `=` may be the secret itself, so it has no name to show.
        let bare = !url.query().unwrap_or_default().contains('=');
        let masked: Vec<String> = if bare {
            vec![MASK.to_owned()]
        } else {
            names.iter().map(|name| format!("{name}={MASK}")).collect()
        };
        url.set_query(Some(&masked.join("&")));
    }
    url.to_string()
}

/// The template of a URL: what is written out in its userinfo and its query is masked, variables stay.
pub(crate) fn mask_template(text: &str) -> String {
    let hide = |value: &str| {
        let names_only = value.starts_with("${") && value.find('}') == value.len().checked_sub(1);
        // A default value is written out as well.
        let names_only = names_only && !value.contains(":-");
        if value.is_empty() || names_only { value.to_owned() } else { MASK.to_owned() }
    };
    let (whole, fragment) = text.split_once('#').map_or((text, ""), |(whole, rest)| (whole, rest));
    let (base, query) = whole.split_once('?').map_or((whole, None), |(base, query)| (base, Some(query)));
    let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
    // The default value of a variable may hold a slash, which does not end the host.
    let mut braces = 0_i32;
    let ends = |(_, character): &(usize, char)| {
        braces += i32::from(*character == '{') - i32::from(*character == '}');
        *character == '/' && braces == 0
    };
    let end = rest.char_indices().find(ends).map_or(rest.len(), |(at, _)| at);
    let at = rest.get(..end).and_then(|host| host.rfind('@'));
    let mut shown = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    match at.and_then(|at| Some((rest.get(..at)?, rest.get(at + 1..)?))) {
        Some((user, host)) => {
            let parts: Vec<String> = user.splitn(2, ':').map(hide).collect();
            shown.extend([&parts.join(":"), "@", host]);
        }
        None => shown += rest,
    }
    if let Some(query) = query {
        let pairs: Vec<String> = query
            .split('&')
            .map(|pair| match pair.split_once('=') {
                Some((name, value)) => format!("{name}={}", hide(value)),
                None => hide(pair),
            })
            .collect();
        shown.extend(["?", &pairs.join("&")]);
    }
    if !fragment.is_empty() {
        shown.extend(["#", MASK]);
    }
    shown
}

/// One server as it may be shown, with its origin and identity.
pub fn masked_server(server: &Server) -> Value {
    let mut shown = transport_value(server);
    let origin = match &server.origin {
        Origin::Operator => json!("operator"),
        Origin::Managed(path) => json!(format!("managed: {}", path.display())),
    };
    let rest = json!({
        "enabled": server.enabled,
        "protocol": match server.protocol {
            Protocol::Auto => "auto",
            Protocol::Legacy => "legacy",
            Protocol::Modern => "2026-07-28",
        },
        "instance": match server.instance {
            Instance::PerCaller => "per-caller",
            Instance::Session => "session",
            Instance::Shared => "shared",
        },
        "timeouts": {
            "init": show(server.timeouts.init),
            "call": show(server.timeouts.call),
            "probe": show(server.timeouts.probe),
            "max_total": show(server.timeouts.max_total),
            "task_lost": show(server.timeouts.task_lost),
        },
        "restarts": {
            "first": show(server.restarts.first),
            "longest": show(server.restarts.longest),
            "starts": server.restarts.starts,
            "within": show(server.restarts.within),
        },
        "max_connections": server.max_connections,
        "tools": { "allow": server.tools.allow, "deny": server.tools.deny },
        "trust": {
            "auto_approve_tools": server.trust.auto_approve_tools,
            "pinned_tool_hash": server.trust.pinned_tool_hash,
            "host_escape": server.trust.host_escape,
        },
        "adapter": server.adapter.as_ref().map(|adapter| json!({
            "plugin": adapter.plugin,
            "grants": server.shown.grants,
            "settings": server.shown.settings.clone().unwrap_or_else(|| json!({})),
        })),
        "description": server.description,
        "rate_limit": server.rate_limit.map(|limit| json!({ "requests_per_minute": limit })),
        "missing_env": server.missing_env,
        "identity": server.identity().to_string(),
        "origin": origin,
    });
    if let Value::Object(rest) = rest {
        shown.extend(rest);
    }
    let asks = &server.questions;
    let forward = |forwards: bool| json!(if forwards { "forward" } else { "refuse" });
    shown.extend([
        ("elicitation".to_owned(), json!(if asks.auto_decline { "auto_decline" } else { "prompt" })),
        ("elicitation_timeout".to_owned(), json!(show(asks.timeout))),
        ("sampling".to_owned(), forward(asks.sampling)),
        ("roots".to_owned(), forward(asks.roots)),
    ]);
    Value::Object(shown)
}

fn transport_value(server: &Server) -> Map<String, Value> {
    let display = &server.shown;
    let mut shown = Map::new();
    let mut put = |key: &str, value: Value| {
        shown.insert(key.to_owned(), value);
    };
    put("transport", server.transport.name().into());
    match &server.transport {
        Transport::Stdio { command, args, env, cwd } => {
            put("command", display.command.clone().unwrap_or_else(|| command.clone()).into());
            put("args", mask_args(display.args.as_ref().unwrap_or(args)).into());
            put("env", env.keys().map(|name| (name.clone(), json!(MASK))).collect::<Map<_, _>>().into());
            put("cwd", display.cwd.clone().map_or_else(|| json!(cwd), Value::from));
        }
        Transport::StreamableHttp { headers, .. } | Transport::Sse { headers, .. } => {
            put("url", server.shown_url().into());
            put(
                "headers",
                headers.iter().map(|(name, _)| (name.clone(), json!(MASK))).collect::<Map<_, _>>().into(),
            );
        }
    }
    shown
}

/// Masks arguments that look like secrets, by themselves (`--token=x`, `sk-…`) or by the one before.
fn mask_args(args: &[String]) -> Vec<String> {
    let mut before = "";
    let mut masked = Vec::with_capacity(args.len());
    for argument in args {
        let shown = match argument.split_once('=') {
            Some((name, value)) if looks_like_secret(name, value) => format!("{name}={MASK}"),
            _ if is_option(before) && !argument.starts_with('-') && looks_like_secret(before, argument) => {
                MASK.to_owned()
            }
            _ if looks_like_secret("", argument) => MASK.to_owned(),
            _ => argument.clone(),
        };
        masked.push(shown);
        before = argument;
    }
    masked
}

/// An option whose value is the next argument.
fn is_option(argument: &str) -> bool {
    argument.starts_with('-') && !argument.contains('=')
}

fn persona_value(persona: &Persona) -> Value {
    let texts = |patterns: &[toolgate_labels::Pattern]| -> Vec<String> {
        patterns.iter().map(ToString::to_string).collect()
    };
    json!({
        "servers": persona.servers,
        "skills": persona.skills,
        "capabilities": persona.capabilities.as_ref().map(|labels| json!({
            "allow": texts(&labels.allow),
            "require_approval": texts(&labels.require_approval),
        })),
        "approvals": {
            "in_client": persona.approvals.in_client,
            "cut": match persona.approvals.cut {
                CutAsks::Cli => "cli",
                CutAsks::Ask => "ask",
            },
        },
    })
}

fn plugins_value(config: &Config) -> Value {
    let plugins = &config.plugins;
    let trust: Vec<Value> = plugins
        .trust
        .iter()
        .map(|rule| {
            let keys: Vec<String> = rule.keys.iter().map(ToString::to_string).collect();
            let all: Vec<String> = rule.all_of.iter().map(ToString::to_string).collect();
            let origin = if rule.added { "plugins.d" } else { "toolgate.yaml" };
            json!({
                "plugins": rule.plugins,
                "any_of": { "minimum": rule.minimum, "keys": keys },
                "all_of": all,
                "index": rule.index,
                "origin": origin,
            })
        })
        .collect();
    let load: Vec<Value> = plugins
        .load
        .iter()
        .map(|entry| {
            let version = entry.version.as_ref().map(ToString::to_string);
            json!({
                "plugin": entry.plugin,
                "version": version,
                "mode": if entry.monitor { "monitor" } else { "enforce" },
                "decisions": entry.decisions,
                "settings": entry.shown_settings,
                "grants": entry.shown_grants,
                "origin": if entry.is_installed() { "plugins.d" } else { "toolgate.yaml" },
            })
        })
        .collect();
    let indexes: Vec<Value> = plugins
        .indexes
        .iter()
        .map(|index| {
            json!({
                "name": index.name,
                "url": index.place,
                "root": format!("{}:{}", index.root_version, index.root),
                "refresh": show(index.refresh),
            })
        })
        .collect();
    let hosts: Vec<Value> = plugins
        .hosts
        .iter()
        .map(|host| {
            json!({
                "host": host.host,
                "ca": host.ca,
                "private": host.private,
                "username": host.sign_in.as_ref().map(|(name, _)| name),
                "password": host.sign_in.as_ref().map(|_| &host.shown_password),
            })
        })
        .collect();
    let update = match plugins.update {
        Updates::Ask => "ask",
        Updates::Auto => "auto",
        Updates::Never => "never",
    };
    json!({
        "indexes": indexes,
        "hosts": hosts,
        "update": update,
        "min_age": show(plugins.min_age),
        "bundle": match plugins.bundle { Bundle::Default => "default", Bundle::None => "none" },
        "fallback": plugins.fallback,
        "trust": trust,
        "load": load,
    })
}
