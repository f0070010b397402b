//! Rules for the arguments of calls: at this JSON pointer there has to be such a value.
//!
//! Settings: `{"rules": [{"calls": [labels], "at": "/pointer", CONDITION, "optional": false,
//! "each": false, "otherwise": "deny" | "ask", "reason": "…"}]}` with one condition:
//! - `"equals": VALUE`: that JSON value; numbers by their value, members of objects in any order;
//! - `"prefix": "TEXT"`: a string that begins so;
//! - `"range": {"min": 1, "max": 10}`: a number, each end included and each end optional;
//! - `"pattern": ["a*"]`: a string that one of these matches; `*` stands for any run of characters;
//! - `"within": ["/dir"]`: a path that, read lexically, lies below one of these directories.
//!
//! A rule applies to the calls whose label one of `calls` covers. An argument that is not there
//! breaks it unless it is `optional`; with `each` it has to be a list, and every element has to
//! satisfy the condition. A call that keeps every rule is left to the other policies.
//!
//! Paths are compared as they are written: whoever follows links needs the adapter
//! `toolgate/filesystem` in front, which gives the policies the path behind them.

use serde::Deserialize;
use serde_json::Value;
use toolgate_sdk::{CallPolicy, Decision, Error, Request, document, matching, settings};

/// The policy `toolgate/arguments`.
pub struct Arguments;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    calls: Vec<String>,
    at: String,
    #[serde(default, deserialize_with = "given")]
    equals: Option<Value>,
    prefix: Option<String>,
    range: Option<Range>,
    pattern: Option<Vec<String>>,
    within: Option<Vec<String>>,
    #[serde(default)]
    optional: bool,
    #[serde(default)]
    each: bool,
    #[serde(default)]
    otherwise: Otherwise,
    reason: Option<String>,
}

/// A value that is there, `null` included.
fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(value).map(Some)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Range {
    min: Option<f64>,
    max: Option<f64>,
}

/// What becomes of a call that breaks a rule.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Otherwise {
    #[default]
    Deny,
    Ask,
}

/// What the host does for a rule, by its number.
trait Host {
    fn covers(&self, pattern: &str, label: &str) -> Result<bool, Error>;
    fn matches(&self, rule: usize, text: &str) -> Result<bool, Error>;
    fn within(&self, rule: usize, path: &str) -> Result<bool, Error>;
}

/// The host itself, which compiles patterns and directories once.
struct Here;

impl Host for Here {
    fn covers(&self, pattern: &str, label: &str) -> Result<bool, Error> {
        matching::label_covers(pattern, label)
    }

    fn matches(&self, rule: usize, text: &str) -> Result<bool, Error> {
        Ok(matching::first_pattern(&format!("/rules/{rule}/pattern"), text)?.is_some())
    }

    fn within(&self, rule: usize, path: &str) -> Result<bool, Error> {
        Ok(matching::path_within(&format!("/rules/{rule}/within"), path)?.is_some())
    }
}

impl CallPolicy for Arguments {
    fn call(request: &Request) -> Decision {
        let judged = settings::parse().and_then(|Settings { rules }| {
            let arguments = match request.document() {
                Some(arguments) => document::parse(&arguments, "")?.unwrap_or(Value::Null),
                None => Value::Null,
            };
            judge(&rules, &request.label(), &arguments, &Here)
        });
        judged.unwrap_or_else(|fault| {
            Decision::Deny(format!("the rules for its arguments cannot be applied: {fault}"))
        })
    }
}

/// The decision about one call. A denial comes before a question, whatever their order.
fn judge(rules: &[Rule], label: &str, arguments: &Value, host: &impl Host) -> Result<Decision, Error> {
    let mut asked = None;
    for (number, rule) in rules.iter().enumerate() {
        if rule.conditions() != 1 {
            return Err(Error::Invalid(format!("settings: rule {number} needs exactly one condition")));
        }
        if !applies(rule, label, host)? || kept(rule, number, arguments, host)? {
            continue;
        }
        match rule.otherwise {
            Otherwise::Deny => return Ok(Decision::Deny(rule.told())),
            Otherwise::Ask => asked = asked.or_else(|| Some(rule.told())),
        }
    }
    Ok(asked.map_or(Decision::Abstain, Decision::Ask))
}

fn applies(rule: &Rule, label: &str, host: &impl Host) -> Result<bool, Error> {
    for pattern in &rule.calls {
        if host.covers(pattern, label)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn kept(rule: &Rule, number: usize, arguments: &Value, host: &impl Host) -> Result<bool, Error> {
    let Some(value) = arguments.pointer(&rule.at) else { return Ok(rule.optional) };
    if !rule.each {
        return rule.holds(number, value, host);
    }
    let Value::Array(elements) = value else { return Ok(false) };
    for element in elements {
        if !rule.holds(number, element, host)? {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Rule {
    fn conditions(&self) -> usize {
        [
            self.equals.is_some(),
            self.prefix.is_some(),
            self.range.is_some(),
            self.pattern.is_some(),
            self.within.is_some(),
        ]
        .into_iter()
        .filter(|given| *given)
        .count()
    }

    fn holds(&self, number: usize, value: &Value, host: &impl Host) -> Result<bool, Error> {
        if let Some(wanted) = &self.equals {
            return Ok(equal(wanted, value));
        }
        if let Some(range) = &self.range {
            return Ok(value.as_f64().is_some_and(|found| range.holds(found)));
        }
        let Some(text) = value.as_str() else { return Ok(false) };
        if let Some(prefix) = &self.prefix {
            return Ok(text.starts_with(prefix.as_str()));
        }
        if self.pattern.is_some() { host.matches(number, text) } else { host.within(number, text) }
    }

    /// Why, for the caller and the person who is asked.
    fn told(&self) -> String {
        let what = match (&self.equals, &self.prefix, &self.range, &self.pattern, &self.within) {
            (Some(value), ..) => format!("must be {value}"),
            (_, Some(prefix), ..) => format!("must begin with `{prefix}`"),
            (_, _, Some(range), ..) => format!("must be a number {range}"),
            (.., Some(patterns), _) => format!("must match one of {}", listed(patterns)),
            (.., within) => format!("must lie in one of {}", listed(within.as_deref().unwrap_or_default())),
        };
        let each = if self.each { "each element of the argument" } else { "the argument" };
        let own = self.reason.as_ref().map(|reason| format!(" ({reason})")).unwrap_or_default();
        format!("{each} at `{}` {what}{own}", self.at)
    }
}

fn listed(texts: &[String]) -> String {
    texts.iter().map(|text| format!("`{text}`")).collect::<Vec<_>>().join(", ")
}

impl Range {
    fn holds(&self, found: f64) -> bool {
        self.min.is_none_or(|min| found >= min) && self.max.is_none_or(|max| found <= max)
    }
}

impl core::fmt::Display for Range {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match (self.min, self.max) {
            (Some(min), Some(max)) => write!(out, "from {min} to {max}"),
            (Some(min), None) => write!(out, "of at least {min}"),
            (None, Some(max)) => write!(out, "of at most {max}"),
            (None, None) => out.write_str("of any size"),
        }
    }
}

/// By value: `1` is `1.0`, and the order of members does not count.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, value)| other.get(key).is_some_and(|found| equal(value, found)))
        }
        _ => one == other,
    }
}

toolgate_sdk::policy!(Arguments: call);

#[cfg(test)]
mod tests;
