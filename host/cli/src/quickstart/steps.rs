//! The steps themselves. Each one checks that what came back is what it claims to show.

use serde_json::json;
use toolgate_gateway::assemble::PluginFiles;

use crate::context;
use crate::exit::Failure;
use crate::quickstart::client::{Agent, Answer};
use crate::quickstart::place::{Place, unwritable};
use crate::quickstart::report::{Report, Step};

/// An allowed call, an ask, a denial, and arguments that the adapter corrects.
pub(crate) async fn calls(place: &Place, report: &mut Report) -> Result<(), Failure> {
    let agent = Agent::connect(place).await?;
    let tools = agent.tools().await?;
    report.step(&Step {
        name: "listed",
        title: "The agent lists its tools",
        asked: "tools/list".to_owned(),
        answer: tools.join("\n"),
        why: "the servers offer three tools each; what no label of the persona covers is not even listed",
    })?;
    expect(!tools.iter().any(|tool| tool.ends_with("delete_note")), "a tool without a label was listed")?;

    let path = place.notes.join("welcome.md");
    let answer = agent.call("notes__read_note", &json!({ "path": path })).await?;
    expect(!answer.is_error, &answer.text)?;
    report.step(&Step {
        name: "allowed",
        title: "A call that is allowed",
        asked: format!("notes__read_note path={}", path.display()),
        answer: answer.text,
        why: "the label mcp.call:notes/read_note is in capabilities.allow",
    })?;

    let answer = agent.call("notes__write_note", &json!({ "path": "new.md", "text": "hello" })).await?;
    expect_code(&answer, "approval_required")?;
    expect(answer.ask.is_some(), "the reply names no ask")?;
    expect(!place.notes.join("new.md").exists(), "a call that was only asked about has run")?;
    report.step(&Step {
        name: "asked",
        title: "A call that a person has to approve",
        asked: "notes__write_note path=new.md text=hello".to_owned(),
        answer: answer.text,
        why: "the label mcp.call:notes/write_note is in capabilities.require_approval; nothing was sent",
    })?;

    let direct = agent.call("notes__delete_note", &json!({ "path": "old.md" })).await?;
    expect_code(&direct, "denied")?;
    expect(place.notes.join("old.md").exists(), "a denied call has run")?;
    report.step(&Step {
        name: "denied",
        title: "A call that is denied",
        asked: "notes__delete_note path=old.md".to_owned(),
        answer: direct.text,
        why: "no label covers it; that it was guessed instead of listed makes no difference",
    })?;
    adapter(place, report, &agent).await?;
    agent.leave().await
}

async fn adapter(place: &Place, report: &mut Report, agent: &Agent) -> Result<(), Failure> {
    let answer = agent.call("notes__read_note", &json!({ "path": "drafts/../welcome.md" })).await?;
    let corrected = place.notes.join("welcome.md").display().to_string();
    expect(answer.text.starts_with(&corrected), &answer.text)?;
    report.step(&Step {
        name: "corrected",
        title: "Arguments that the adapter corrected",
        asked: "notes__read_note path=drafts/../welcome.md".to_owned(),
        answer: answer.text,
        why: "the signed adapter toolgate/filesystem made the path absolute and normal before the verdict",
    })?;
    let answer = agent.call("notes__read_note", &json!({ "path": "../../../../etc/passwd" })).await?;
    expect_code(&answer, "adapter_refused")?;
    report.step(&Step {
        name: "refused_path",
        title: "A path that leaves the configured directory",
        asked: "notes__read_note path=../../../../etc/passwd".to_owned(),
        answer: answer.text,
        why: "the adapter keeps every path inside its roots; the server never saw this one",
    })
}

/// A server whose description changes after it was pinned.
pub(crate) async fn changed_description(place: &Place, report: &mut Report) -> Result<(), Failure> {
    toolgate_base::files::write_private(&place.story, b"changed\n")
        .map_err(|error| unwritable(&place.story, &error))?;
    let agent = Agent::connect(place).await?;
    let answer = agent.call("fickle__read_note", &json!({ "path": place.notes.join("welcome.md") })).await?;
    agent.leave().await?;
    expect_code(&answer, "denied")?;

    let config = context::config(Some(&place.config))?;
    let caller = context::operator(&config, toolgate_config::DEFAULT_PERSONA)?;
    let gateway = context::gateway(config, "cli")?;
    let drift = gateway.diff(&caller, "fickle").await;
    gateway.shutdown().await;
    let drift = drift.map_err(Failure::failed)?;
    expect(drift.len() == 1, "the changed description is not the only difference")?;
    let diff: Vec<String> = drift.into_iter().map(|drift| drift.diff).collect();
    report.step(&Step {
        name: "drifted",
        title: "A server that changed its description after it was pinned",
        asked: "fickle__read_note, which was approved under another description".to_owned(),
        answer: format!("{}\n{}", answer.text, diff.join("\n").trim_end()),
        why: "the definition is not the pinned one; `toolgate mcp pin fickle --accept` would approve it",
    })
}

/// A plugin with one flipped bit.
pub(crate) fn flipped_byte(place: &Place, report: &mut Report) -> Result<(), Failure> {
    let dir = place.damaged_plugin()?;
    let refused = PluginFiles::read(&dir).and_then(|files| files.verify(&[]));
    let Err(refusal) = refused else {
        return Err(Failure::integrity("a damaged plugin passed verification"));
    };
    report.step(&Step {
        name: "flipped",
        title: "A plugin with one flipped bit",
        asked: format!("toolgate plugin verify {}", dir.display()),
        answer: refusal.to_string(),
        why: "the signed release names the digest of the component; nothing of it was compiled",
    })
}

/// The audit log of all of the above.
pub(crate) fn audit(place: &Place, report: &mut Report) -> Result<(), Failure> {
    let config = context::config(Some(&place.config))?;
    let verified = toolgate_store::Store::verify(&config.data_dir).map_err(context::store_failure)?;
    if let Some(finding) = verified.findings.first() {
        return Err(Failure::integrity(format!("the audit log is not whole: {finding}")));
    }
    let rows: u64 = verified.chains.iter().map(|chain| chain.rows).sum();
    expect(rows > 0, "the audit log is empty")?;
    report.step(&Step {
        name: "audit",
        title: "The audit log of all of this",
        asked: "toolgate audit verify".to_owned(),
        answer: format!("whole: {rows} rows in {} chains", verified.chains.len()),
        why: "each row is chained to the one before it, and was there before the call left",
    })
}

fn expect_code(answer: &Answer, code: &str) -> Result<(), Failure> {
    let got = answer.code.as_deref().unwrap_or("no code");
    expect(got == code, &format!("expected {code}, got {got}: {}", answer.text))
}

fn expect(holds: bool, otherwise: &str) -> Result<(), Failure> {
    if holds { Ok(()) } else { Err(Failure::failed(format!("quickstart went wrong: {otherwise}"))) }
}
