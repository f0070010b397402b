//! The steps as they are told: in plain words, or as data.

use std::path::Path;

use serde_json::{Value, json};

use crate::exit::Failure;
use crate::output;

/// What was shown so far.
pub(crate) struct Report {
    as_json: bool,
    steps: Vec<Value>,
}

/// One step.
pub(crate) struct Step<'a> {
    /// A stable name for programs.
    pub(crate) name: &'a str,
    /// What is shown.
    pub(crate) title: &'a str,
    /// What was asked.
    pub(crate) asked: String,
    /// What came back.
    pub(crate) answer: String,
    /// Why.
    pub(crate) why: &'a str,
}

impl Report {
    pub(crate) fn new(as_json: bool) -> Self {
        Self { as_json, steps: Vec::new() }
    }

    pub(crate) fn start(&self, dir: &Path) -> Result<(), Failure> {
        if self.as_json {
            return Ok(());
        }
        output::line(&format!("Everything of this run is in {}", dir.display()))?;
        output::line(
            "An MCP client starts `toolgate serve --stdio`, which starts a demo server with three tools.",
        )
    }

    pub(crate) fn step(&mut self, step: &Step<'_>) -> Result<(), Failure> {
        let number = self.steps.len() + 1;
        self.steps.push(json!({
            "step": step.name, "title": step.title, "asked": step.asked, "answer": step.answer, "why": step.why,
        }));
        if self.as_json {
            return Ok(());
        }
        output::line("")?;
        output::line(&format!("{number}. {}", step.title))?;
        output::line(&indented("asked ", &step.asked))?;
        output::line(&indented("answer", &step.answer))?;
        output::line(&indented("why   ", step.why))
    }

    pub(crate) fn data(&self, dir: &Path) -> Value {
        json!({ "directory": dir, "steps": self.steps })
    }
}

fn indented(label: &str, text: &str) -> String {
    let mut lines = text.lines();
    let mut out = format!("   {label}  {}", lines.next().unwrap_or(""));
    for line in lines {
        out.push_str("\n           ");
        out.push_str(line);
    }
    out
}
