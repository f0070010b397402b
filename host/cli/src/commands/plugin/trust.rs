//! `toolgate plugin trust`: who may sign what. Never a silent first use: fingerprint and words are shown,
//! and the operator says that they are the ones the author told.

use serde_json::{Value, json};
use toolgate_base::{Clock as _, SystemClock, clock};
use toolgate_config::Config;
use toolgate_config::plugins_layer::{AddedRule, PluginsLayer};
use toolgate_signing::PublicKey;
use toolgate_store::{AuditRow, Event};

use crate::args::{PluginTrust, TrustAdd, TrustRemove};
use crate::context;
use crate::exit::{Code, Failure};
use crate::keys::read_public;
use crate::operator;
use crate::output;
use crate::terminal::Terminal;

/// Most rules that are added this way.
const MAX_RULES: usize = 1_000;

/// Runs one verb.
pub(super) fn run(config: &Config, command: &PluginTrust) -> Result<(), Failure> {
    match command {
        PluginTrust::Add(args) => add(config, args),
        PluginTrust::List(args) => list(config, args.json),
        PluginTrust::Remove(args) => remove(config, args),
    }
}

fn add(config: &Config, args: &TrustAdd) -> Result<(), Failure> {
    check_pattern(&args.plugins)?;
    if !config.plugins.managed {
        return Err(Failure::usage(
            "toolgate.yaml says `managed: off`, so no rule is added; write it under plugins.trust there",
        ));
    }
    if let Some(rule) =
        config.operator_plugins.trust.iter().find(|rule| overlaps(&rule.plugins, &args.plugins))
    {
        return Err(Failure::usage(format!(
            "toolgate.yaml has a rule for {}, which decides; change it there",
            rule.plugins
        )));
    }
    let keys = read_all(&args.keys)?;
    let all_of = read_all(&args.all_of)?;
    if all_of.iter().any(|key| keys.contains(key)) {
        return Err(Failure::usage("a key stands in both lists; keep it in one of them"));
    }
    if args.minimum == 0 || args.minimum as usize > keys.len() {
        return Err(Failure::usage(format!("--minimum is 1 to {}, the number of keys", keys.len())));
    }
    let every: Vec<PublicKey> = keys.iter().chain(&all_of).copied().collect();
    compare(args, &every)?;
    let what = format!("let {} keys sign {}", every.len(), args.plugins);
    let proven = operator::prove(config, &what)?;
    write(
        config,
        AddedRule {
            plugins: args.plugins.clone(),
            keys,
            minimum: args.minimum,
            all_of,
            added: clock::utc_text(SystemClock.now_ms()),
        },
    )?;
    let ids: Vec<String> = every.iter().map(|key| key.id().to_string()).collect();
    super::install::note(
        config,
        AuditRow::new(Event::PluginTrustAdded)
            .with("plugins", args.plugins.as_str())
            .with("keys", ids.join(" "))
            .with("approver", proven.approver()),
    )?;
    if args.json {
        return output::json(&json!({ "plugins": args.plugins, "keys": ids, "minimum": args.minimum }));
    }
    output::line(&format!("{} may be signed by {} of these keys", args.plugins, args.minimum))
}

fn write(config: &Config, rule: AddedRule) -> Result<(), Failure> {
    let layer = PluginsLayer::of(&config.data_dir);
    let lock = layer.lock().map_err(context::config_failure)?;
    let mut rules = layer.rules().map_err(context::config_failure)?;
    if rules.iter().any(|known| known.plugins == rule.plugins) {
        return Err(Failure::usage(format!("there is a rule for {} already", rule.plugins))
            .hint(format!("toolgate plugin trust remove '{}'", rule.plugins)));
    }
    if rules.len() >= MAX_RULES {
        return Err(Failure::usage(format!("there are {MAX_RULES} rules, which is the limit")));
    }
    rules.push(rule);
    layer.write_rules(&lock, &rules).map_err(context::config_failure)
}

/// The operator compares by eye, or says which fingerprint it must be.
fn compare(args: &TrustAdd, keys: &[PublicKey]) -> Result<(), Failure> {
    if !args.fingerprint.is_empty() {
        let said: Vec<String> =
            args.fingerprint.iter().map(|text| text.replace([' ', ':'], "").to_lowercase()).collect();
        let unknown = keys.iter().find(|key| !said.contains(&key.id().as_str().to_owned()));
        return match unknown {
            None => Ok(()),
            Some(key) => Err(Failure::integrity(format!(
                "the key {key} has the fingerprint {}, which is none of those you gave; nothing was trusted",
                key.id().fingerprint()
            ))),
        };
    }
    let terminal = Terminal::open().map_err(|_| {
        Failure::new(Code::Denied, "somebody has to compare the fingerprint, and nobody is at a terminal")
            .hint("run it at a terminal, or give the fingerprint that the author told you with --fingerprint")
    })?;
    let unusable = |error: std::io::Error| Failure::failed(format!("the terminal cannot be used: {error}"));
    for key in keys {
        let id = key.id();
        terminal.line(&format!("{key}")).map_err(unusable)?;
        terminal.line(&format!("  fingerprint  {}", id.fingerprint())).map_err(unusable)?;
        terminal.line(&format!("  words        {}", id.words())).map_err(unusable)?;
    }
    terminal
        .line("Compare this with what the author told you by another way than this file.")
        .map_err(unusable)?;
    let answer = terminal.answer("Are they the same? Type yes: ").map_err(unusable)?;
    if answer.as_deref() == Some("yes") {
        return Ok(());
    }
    Err(Failure::new(Code::Denied, "nothing was trusted"))
}

fn list(config: &Config, as_json: bool) -> Result<(), Failure> {
    let rules: Vec<Value> = config
        .plugins
        .trust
        .iter()
        .map(|rule| {
            let keys: Vec<Value> = rule
                .keys
                .iter()
                .map(|key| json!({ "public": key, "words": key.id().words(), "must": rule.all_of.contains(key) }))
                .collect();
            let origin = if rule.added { "plugin trust add" } else { "toolgate.yaml" };
            json!({ "plugins": rule.plugins, "minimum": rule.minimum, "keys": keys, "origin": origin })
        })
        .collect();
    if as_json {
        return output::json(&json!({ "rules": rules }));
    }
    let mut rows = Vec::new();
    for rule in &config.plugins.trust {
        for key in &rule.keys {
            rows.push(vec![
                rule.plugins.clone(),
                rule.minimum.to_string(),
                if rule.all_of.contains(key) { "must" } else { "may" }.to_owned(),
                key.to_string(),
                key.id().words(),
                if rule.added { "plugin trust add" } else { "toolgate.yaml" }.to_owned(),
            ]);
        }
    }
    output::table(&["PLUGINS", "MINIMUM", "SIGNS", "KEY", "WORDS", "FROM"], &rows)
}

/// Taking trust away needs no proof.
fn remove(config: &Config, args: &TrustRemove) -> Result<(), Failure> {
    let layer = PluginsLayer::of(&config.data_dir);
    let lock = layer.lock().map_err(context::config_failure)?;
    let mut rules = layer.rules().map_err(context::config_failure)?;
    let before = rules.len();
    rules.retain(|rule| rule.plugins != args.plugins);
    if rules.len() == before {
        return Err(Failure::usage(format!("`trust add` made no rule for {}", args.plugins)));
    }
    layer.write_rules(&lock, &rules).map_err(context::config_failure)?;
    drop(lock);
    super::install::note(
        config,
        AuditRow::new(Event::PluginTrustRemoved).with("plugins", args.plugins.as_str()),
    )?;
    if args.json {
        return output::json(&json!({ "plugins": args.plugins, "state": "removed" }));
    }
    output::line(&format!("nobody may sign {} any more by this rule", args.plugins))
}

fn read_all(given: &[String]) -> Result<Vec<PublicKey>, Failure> {
    let mut keys: Vec<PublicKey> = Vec::new();
    for text in given {
        let key = read_public(text)?;
        if keys.contains(&key) {
            return Err(Failure::usage(format!("the key {key} is given twice, and a key counts once")));
        }
        keys.push(key);
    }
    Ok(keys)
}

/// `owner/name` or `owner/*`; a pattern without its slash could mean somebody else's plugins too.
fn check_pattern(text: &str) -> Result<(), Failure> {
    if text.starts_with("toolgate/") {
        return Err(Failure::usage(
            "toolgate/* is signed by Toolgate's own keys, and no rule can change that",
        ));
    }
    let part = |part: &str| {
        let plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        !part.is_empty() && part.len() <= 63 && part.bytes().all(plain)
    };
    let fine = text.split_once('/').is_some_and(|(owner, name)| part(owner) && (name == "*" || part(name)));
    if fine {
        return Ok(());
    }
    Err(Failure::usage(format!("{text} is no name of plugins"))
        .hint("write owner/name, or owner/* for all of that owner; owner* would cover owner-malicious too"))
}

/// Whether a rule of the operator's decides about everything that the new one is about.
fn overlaps(rule: &str, new: &str) -> bool {
    rule == new
        || rule.strip_suffix('*').is_some_and(|prefix| prefix.ends_with('/') && new.starts_with(prefix))
}
