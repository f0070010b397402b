//! Finds characters that a person does not see and a model reads (SE-01).
//!
//! What counts as hidden is the host's table, so that the policy, the host's own filter and the
//! console agree. The setting `mode` says what follows: `block` denies, `strip` removes them by
//! the host's filter, `show` only logs. Without it, a definition is blocked and a result is
//! stripped: a definition that hides something is a reason not to trust the server, a result may
//! hold a stray byte-order mark and is of use without it. A mode that is none of these denies
//! everything, because a misspelt `block` must not become `show`.
//!
//! What the characters spell goes to the log alone: a reason is read by the model, and repeating
//! the message there would deliver it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use toolgate_sdk::{
    Decision, Document, Error, Finding, ListPolicy, Redaction, Request, ResultPolicy, log, matching,
    settings, words,
};

/// The policy `toolgate/hidden-text`.
pub struct HiddenText;

impl ListPolicy for HiddenText {
    fn list(request: &Request) -> Decision {
        let shown = request.definition().or_else(|| request.document());
        judge(request, shown, Mode::Block)
    }
}

impl ResultPolicy for HiddenText {
    fn result(request: &Request) -> Decision {
        judge(request, request.document(), Mode::Strip)
    }
}

/// What to do about hidden characters.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    Block,
    Strip,
    Show,
}

/// Looks for hidden characters, logs them, and decides by the mode.
fn judge(request: &Request, document: Option<Document>, default: Mode) -> Decision {
    let mode = match mode(&settings::text("/mode"), default) {
        Ok(mode) => mode,
        Err(reason) => return Decision::Deny(reason),
    };
    let Some(document) = document else {
        return Decision::Abstain;
    };
    let findings = matching::hidden_text(&document);
    if findings.is_empty() {
        return Decision::Abstain;
    }
    let place =
        format!("{} of server `{}`", words::subject(request.kind(), &request.name()), request.server());
    log::write(log::Level::Warn, &log_line(&place, &findings));
    decide(mode, &place, &findings)
}

/// The mode that the settings ask for.
fn mode(setting: &Result<Option<String>, Error>, default: Mode) -> Result<Mode, String> {
    match setting.as_ref().map(Option::as_deref) {
        Ok(None) => Ok(default),
        Ok(Some("block")) => Ok(Mode::Block),
        Ok(Some("strip")) => Ok(Mode::Strip),
        Ok(Some("show")) => Ok(Mode::Show),
        Ok(Some(other)) => Err(format!(
            "the setting `mode` of toolgate/hidden-text is `{other}`; the operator must make it \
             `block`, `strip` or `show`, until then nothing passes"
        )),
        Err(fault) => Err(format!(
            "the setting `mode` of toolgate/hidden-text cannot be used ({fault}); the operator \
             must make it `block`, `strip` or `show`, until then nothing passes"
        )),
    }
}

/// The decision about a document in which something was found.
fn decide(mode: Mode, place: &str, findings: &[Finding]) -> Decision {
    match mode {
        Mode::Show => Decision::Abstain,
        Mode::Strip => Decision::Redact(Redaction::HiddenText),
        Mode::Block => Decision::Deny(format!(
            "{place} holds characters that a person does not see: {}",
            summary(findings)
        )),
    }
}

/// Kinds and code points, each once: `tag, zero-width (U+200B, U+E0053)`.
fn summary(findings: &[Finding]) -> String {
    let kinds: BTreeSet<&str> = findings.iter().map(|finding| finding.kind.as_str()).collect();
    let points: BTreeSet<&str> =
        findings.iter().flat_map(|finding| &finding.code_points).map(String::as_str).collect();
    format!("{} ({})", listed(&kinds), listed(&points))
}

/// At most 16 words, and how many more there are.
fn listed(words: &BTreeSet<&str>) -> String {
    const MOST: usize = 16;
    let mut text = words.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = words.len().checked_sub(MOST) {
        let _ = write!(text, " and {more} more");
    }
    text
}

/// One line for the operator: where, which, and what they spell.
fn log_line(place: &str, findings: &[Finding]) -> String {
    let pointers: BTreeSet<&str> = findings.iter().map(|finding| finding.pointer.as_str()).collect();
    let spelt: Vec<&str> = findings.iter().filter_map(|finding| finding.decoded.as_deref()).take(4).collect();
    let mut line = format!("hidden characters in {place} at {}: {}", listed(&pointers), summary(findings));
    if !spelt.is_empty() {
        let _ = write!(line, "; they spell {spelt:?}");
    }
    line
}

toolgate_sdk::policy!(HiddenText: list, result);

#[cfg(test)]
mod tests;
