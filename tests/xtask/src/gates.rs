//! `cargo xtask gates`: removes the call site of each gate in turn and shows that its test goes red.
//!
//! The tree is copied, so that the one being worked on is never touched. A gate whose test stays
//! green without it is a check that nobody calls, the classic failure of this field.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::project::Project;

/// One gate: where it is called, what is left when it is not, and the test that must notice.
struct Gate {
    name: &'static str,
    file: &'static str,
    call: &'static str,
    without: &'static str,
    test: &'static str,
}

const GATES: &[Gate] = &[
    Gate {
        name: "door",
        file: "host/downstream/src/inbound.rs",
        call: "let text = door::scan(bytes, limits).map_err(|error| {",
        without: "let text = std::str::from_utf8(bytes).or_else(|_| door::scan(bytes, limits)).map_err(|error| {",
        test: "gate_door",
    },
    Gate {
        name: "caller",
        file: "host/downstream/src/http/admit.rs",
        call: "Ok(None) => return Err(answer::unauthorized(true).into()),\n        Err(error) => {\n            tracing::error!(%error, \"a request is refused because its token cannot be checked\");",
        without: "Ok(None) => crate::Credential::new(\"token:none\", \"default\"),\n        Err(error) => {\n            tracing::error!(%error, \"a request is refused because its token cannot be checked\");",
        test: "gate_caller",
    },
    Gate {
        name: "address",
        file: "host/net/src/guard.rs",
        call: "        self.check_literal(&url)?;\n        Ok(self.client.request(method, url))",
        without: "        let _ = Self::check_literal;\n        Ok(self.client.request(method, url))",
        test: "gate_address",
    },
    Gate {
        name: "automatic widening",
        file: "host/gateway/src/updates.rs",
        call: "Ok(Some(offer)) if offer.wider.is_empty() =>",
        without: "Ok(Some(offer)) if offer.wider.len() < usize::MAX =>",
        test: "gate_auto",
    },
    Gate {
        name: "locked name",
        file: "host/gateway/src/assemble/wanted.rs",
        call: "pairs.into_iter().find(|(_, one, other)| one != other)",
        without: "pairs.into_iter().find(|(_, one, other)| one != other && one == other)",
        test: "gate_lock_index",
    },
    Gate {
        name: "locked widening",
        file: "host/cli/src/commands/lock.rs",
        call: "        let _ = operator::prove(config, &format!(\"lock {what}, which may do more than before\"))?;\n",
        without: "",
        test: "gate_lock_widening",
    },
    Gate {
        name: "import",
        file: "host/plugins/src/inspect.rs",
        call: "    check_imports(&found, release)?;\n",
        without: "",
        test: "gate_import_an_undeclared",
    },
    Gate {
        name: "rehearsal",
        file: "host/plugins/src/replay/rehearsal.rs",
        call: "let (release, grants) = confined(release, &admission.grants);",
        without: "let (release, grants) = (release.clone(), admission.grants.clone());",
        test: "gate_rehearsal",
    },
    Gate {
        name: "sources",
        file: "host/cli/src/commands/plugin/rebuild.rs",
        call: "if found != Some(signed) {",
        without: "if found.is_none() {",
        test: "gate_sources",
    },
    Gate {
        name: "rebuild",
        file: "host/cli/src/commands/plugin/rebuild.rs",
        call: "if given != release.component() {",
        without: "if given == Digest::of(b\"\") {",
        test: "gate_rebuild",
    },
    Gate {
        name: "limit",
        file: "host/plugins/src/guest.rs",
        call: "Verdict::Interrupt => UpdateDeadline::Interrupt,",
        without: "Verdict::Interrupt => UpdateDeadline::Continue(1),",
        test: "gate_limit",
    },
    Gate {
        name: "binding",
        file: "host/gateway/src/decide.rs",
        call: "bound: !narrowed_away && servers.iter().any(|name| name == server)",
        without: "bound: !narrowed_away || servers.is_empty()",
        test: "gate_binding",
    },
    Gate {
        name: "lane",
        file: "host/gateway/src/lib.rs",
        call: "persona.servers_in(caller.lane)",
        without: "persona.servers_in(Lane::Automation)",
        test: "gate_lane",
    },
    Gate {
        name: "decide",
        file: "host/gateway/src/forward/judge.rs",
        call: "Ruling::Deny => return Err(self.denied(&verdict).await),",
        without: "Ruling::Deny => return Ok(By::Policies),",
        test: "cap_023",
    },
    Gate {
        name: "ask",
        file: "host/gateway/src/forward/judge.rs",
        call: "match self.gateway.settle(&question, &self.waiting).await.map_err(Stop)? {",
        without: "match self.gateway.settle(&question, &self.waiting).await.unwrap_or(Settled::Passed(By::Policies)) {",
        test: "gate_ask",
    },
    Gate {
        name: "operator",
        file: "host/cli/src/operator.rs",
        call: "OperatorProof::Pin => pin(&operator, what)",
        without: "OperatorProof::Pin => Ok(Proven { how: \"none\" })",
        test: "gate_operator",
    },
    Gate {
        name: "freeze",
        file: "host/gateway/src/decide.rs",
        call: "if let Some(frozen) = binding.frozen(facts) {",
        without: "if let Some(frozen) = binding.frozen(facts).filter(|_| false) {",
        test: "a_freeze_ends_calls",
    },
    Gate {
        name: "rate",
        file: "host/gateway/src/forward.rs",
        call: "if self.take_token().await? && !self.still_passes(&document, by)? {",
        without: "if false {",
        test: "rl_003",
    },
    Gate {
        name: "pin",
        file: "host/gateway/src/surface.rs",
        call: "pin: approved.state_of(kind, &name, &digest),",
        without: "pin: PinState::Matches,",
        test: "gate_pin",
    },
    Gate {
        name: "shown",
        file: "host/gateway/src/views.rs",
        call: "match views.hiding(plugins, binding, facts) {",
        without: "match views.hiding(plugins, binding, facts).filter(|_| false) {",
        test: "gate_result",
    },
    Gate {
        name: "hidden text",
        file: "host/gateway/src/notes.rs",
        call: "        self.note_hidden_text(server, surface, None);\n",
        without: "",
        test: "gate_result",
    },
    Gate {
        name: "ending",
        file: "host/downstream/src/stdio/session.rs",
        call: "        self.backend.stop_opening();\n",
        without: "",
        test: "ht_27_a_server_that_hangs",
    },
    Gate {
        name: "instructions",
        file: "host/gateway/src/instructions.rs",
        call: "if verdict.ruling == Ruling::Deny {",
        without: "if verdict.ruling == Ruling::Deny && false {",
        test: "gate_instructions",
    },
    Gate {
        name: "adapter",
        file: "host/gateway/src/forward/document.rs",
        call: "let Some(adapter) = adapter else { return Ok(document) };",
        without: "let Some(adapter) = adapter.filter(|_| false) else { return Ok(document) };",
        test: "gate_adapter",
    },
    Gate {
        name: "result",
        file: "host/gateway/src/forward/result.rs",
        call: "match self.judged_result(&result).await {",
        without: "match self.judged_result(&result).await.map(|_| None) {",
        test: "gate_result",
    },
    Gate {
        name: "elicit",
        file: "host/gateway/src/forward/questions.rs",
        call: "Ruling::Deny => false,",
        without: "Ruling::Deny => true,",
        test: "gate_elicit_hook",
    },
    Gate {
        name: "auto decline",
        file: "host/gateway/src/forward/questions.rs",
        call: "if kind.is_for_a_person() && self.handle.server.questions.auto_decline {",
        without: "if false {",
        test: "gate_auto_decline",
    },
    Gate {
        name: "abilities",
        file: "host/gateway/src/forward/questions.rs",
        call: "        if !told.has(kind.needs(&params)) {",
        without: "        if false {",
        test: "gate_sampling",
    },
    Gate {
        name: "confirm",
        file: "host/gateway/src/forward/questions.rs",
        call: "ready.into_iter().partition(|one| one.shown.confirm.is_some());",
        without: "ready.into_iter().partition(|_| false);",
        test: "gate_confirm",
    },
    Gate {
        name: "attribution",
        file: "host/upstream/src/pending.rs",
        call: "(Some(_), Some(_)) => Err(Unplaced::SeveralCalls),",
        without: "(Some(first), Some(_)) => Ok(first),",
        test: "gate_attribution",
    },
    Gate {
        name: "parked",
        file: "host/gateway/src/attend.rs",
        call: "        if parked.bound.request != bound.request {",
        without: "        if false {",
        test: "gate_parked",
    },
    Gate {
        name: "foreign",
        file: "host/gateway/src/ask/seal.rs",
        call: "if parts.nth(1) != Some(self.mark(caller).as_str()) {",
        without: "if parts.nth(1).is_none() {",
        test: "gate_foreign",
    },
    Gate {
        name: "audit",
        file: "host/gateway/src/forward.rs",
        call: "        self.record_called(&params).await?;\n",
        without: "",
        test: "gate_audit",
    },
    Gate {
        name: "grant",
        file: "host/plugins/src/capability/http.rs",
        call: "        if !open.hosts.cover(url) {\n",
        without: "        if url.as_str().is_empty() {\n",
        test: "gate_grant",
    },
    Gate {
        name: "reveal",
        file: "host/plugins/src/capability/secrets.rs",
        call: "if grant.reveal && !declared.reveal {",
        without: "if grant.reveal && label.is_empty() {",
        test: "gate_reveal",
    },
    Gate {
        name: "signature",
        // The digest of the component is checked in two places; the signature stands in this one.
        file: "host/signing/src/verify.rs",
        call: "    keys.retain(|key| envelope.signatures.iter().any(|signature| key.verifies(&signed, signature)));\n",
        without: "    let _ = signed;\n",
        test: "a_plugin_signed_by_a_key_without_a_rule",
    },
    Gate {
        name: "lock",
        file: "host/cli/src/commands/serve.rs",
        call: "        context::check_locked(&gateway, None).await?;\n        let options = StdioOptions",
        without: "        let options = StdioOptions",
        test: "gate_lock",
    },
    Gate {
        name: "denial",
        file: "host/gateway/src/assemble/wanted.rs",
        call: "        self.files.check_denied(config, &release, self.from_index())?;\n",
        without: "",
        test: "gate_deny",
    },
    Gate {
        name: "revocation",
        file: "host/gateway/src/assemble.rs",
        call: "None => check_revoked(config, release, from),",
        without: "None => check_revoked(config, release, from).or(Ok(())),",
        test: "gate_index_watch",
    },
    Gate {
        name: "index-watch",
        file: "host/cli/src/context.rs",
        call: "        gateway.watch_indexes(&host);\n",
        without: "        let _ = &host;\n",
        test: "gate_index_watch",
    },
    Gate {
        name: "index-memory",
        file: "host/gateway/src/indexes.rs",
        call: "let known = Remembered::load(&directory(config, index), fingerprint(index)).map_err(|error| {",
        without: "let known = Remembered::load(&directory(config, index), fingerprint(index)).or(Ok(None)).map_err(|error: RegistryError| {",
        test: "gate_index_memory",
    },
    Gate {
        name: "index-tie",
        file: "host/gateway/src/indexes.rs",
        call: "filter(move |index| only.is_none_or(|only| only == index.name))",
        without: "filter(move |_| only.is_none_or(|_| true))",
        test: "gate_index_tie",
    },
    Gate {
        name: "sequence",
        file: "host/gateway/src/install.rs",
        call: "if stated.sequence < highest && !terms.allow_older {",
        without: "if stated.sequence < highest && false {",
        test: "gate_sequence",
    },
    Gate {
        name: "widening",
        file: "host/cli/src/commands/plugin/install.rs",
        call: "if offer.wider.is_empty() && offer.installed.is_some()",
        without: "if offer.installed.is_some()",
        test: "gate_widening",
    },
    Gate {
        name: "trust-add",
        file: "host/cli/src/commands/plugin/trust.rs",
        call: "    compare(args, &every)?;\n",
        without: "    let _ = compare;\n",
        test: "gate_trust_add",
    },
    Gate {
        name: "reload",
        file: "host/gateway/src/reload.rs",
        call: "                Self::reload(&gateway, &host, names).await;\n",
        without: "                let _: (&Arc<PluginHost>, Vec<String>) = (&host, names);\n",
        test: "gate_reload",
    },
    Gate {
        name: "recheck",
        file: "host/gateway/src/forward.rs",
        call: "let standing = self.renew();",
        without: "let standing = Standing::Same;",
        test: "gate_recheck",
    },
    Gate {
        name: "headers",
        file: "host/gateway/src/forward.rs",
        call: "        self.check_headers(&call).await?;\n",
        without: "",
        test: "gate_param_headers",
    },
    Gate {
        name: "logging",
        file: "host/gateway/src/forward.rs",
        call: "            logs: call.logs.clone().filter(|_| self.handle.server.questions.logging),\n",
        without: "            logs: call.logs.clone(),\n",
        test: "gate_logging_without",
    },
    Gate {
        name: "tool headers",
        file: "host/upstream/src/listing.rs",
        call: "            headers::annotations(schema).map_err(|error| error.to_string())?;\n",
        without: "",
        test: "gate_tool_headers",
    },
    Gate {
        name: "twins",
        file: "host/gateway/src/surface.rs",
        call: "        leave_out_twins(&mut items, &mut dropped);\n",
        without: "",
        test: "gate_twins",
    },
    Gate {
        name: "sse origin",
        file: "host/upstream/src/http/legacy_sse.rs",
        call: "if !address::same_origin(&core.url, &endpoint) {",
        without: "if !address::same_origin(&core.url, &endpoint) && false {",
        test: "ht_25",
    },
    Gate {
        name: "storm",
        file: "host/gateway/src/supervise.rs",
        call: "                tokio::time::sleep(RELIST_PAUSE.saturating_sub(listed.elapsed())).await;\n",
        without: "",
        test: "gate_storm",
    },
    Gate {
        name: "connections",
        file: "host/gateway/src/links.rs",
        call: "if taken(&links) >= server.max_connections {\n            let now",
        without: "if taken(&links) == usize::MAX {\n            let now",
        test: "gate_connections",
    },
    Gate {
        name: "idle",
        file: "host/gateway/src/supervise.rs",
        call: "} else if link.idle() >= limit {",
        without: "} else if link.idle() == Duration::MAX {",
        test: "gate_connections",
    },
    Gate {
        name: "session-end",
        file: "host/downstream/src/http/sessions.rs",
        call: "        self.backend.end_session(&session.name);\n",
        without: "",
        test: "gate_session_end",
    },
    Gate {
        name: "restarts",
        file: "host/gateway/src/connect.rs",
        call: "health.start(Instant::now()))",
        without: "health.start(Instant::now()).or(Ok::<(), String>(())))",
        test: "fails_too_often",
    },
    Gate {
        name: "ends",
        file: "host/gateway/src/links.rs",
        call: "if self.backoff.is_spent(now) {",
        without: "if self.backoff.is_spent(now) && false {",
        test: "ends_after_each_start",
    },
    Gate {
        name: "sessions",
        file: "host/downstream/src/http/sessions.rs",
        call: "if table.values().filter(own).count() >= self.max_per_token {",
        without: "if table.values().filter(own).count() == usize::MAX {",
        test: "gate_sessions",
    },
    Gate {
        name: "running",
        file: "host/downstream/src/http/share.rs",
        call: "if *count >= self.max {",
        without: "if *count == usize::MAX {",
        test: "gate_running",
    },
    Gate {
        name: "head",
        file: "host/downstream/src/http.rs",
        call: "if spoke.load(Ordering::Relaxed) {",
        without: "if spoke.load(Ordering::Relaxed) || true {",
        test: "gate_head",
    },
    Gate {
        name: "memory",
        file: "host/plugins/src/limits.rs",
        call: "if total > self.memory_limit {",
        without: "if total == usize::MAX {",
        test: "gate_limits",
    },
    Gate {
        name: "tables",
        file: "host/plugins/src/limits.rs",
        call: "if total > MAX_TABLE_ELEMENTS {",
        without: "if total == usize::MAX {",
        test: "gate_limits",
    },
    // Handles are bounded twice, by the store and by the resource table; either alone ends the guest,
    // so removing one shows nothing.
    Gate {
        name: "host-bytes",
        file: "host/plugins/src/guest.rs",
        call: "        store.set_hostcall_fuel(limits.host_bytes);\n",
        without: "",
        test: "gate_limits",
    },
];

/// Removes each gate in turn; true if every test went red, and was green before.
pub(crate) fn run(project: &Project, only: Option<&str>) -> Outcome<bool> {
    let copy = project.path("target/gates");
    copy_tree(&project.path("."), &copy)?;
    let chosen: Vec<&Gate> = GATES.iter().filter(|gate| only.is_none_or(|name| name == gate.name)).collect();
    if chosen.is_empty() {
        return Err(format!("there is no gate {}", only.unwrap_or_default()).into());
    }
    build(project, &copy)?;
    if !passes(project, &copy, &chosen.iter().map(|gate| gate.test).collect::<Vec<_>>())? {
        return Err("a gate's test fails with every gate in place, so nothing can be proven".into());
    }
    let mut proven = true;
    for gate in chosen {
        let path = copy.join(gate.file);
        let whole = fs::read_to_string(&path)?;
        if whole.matches(gate.call).count() != 1 {
            return Err(format!(
                "{}: the call site of gate {} is not there exactly once",
                gate.file, gate.name
            )
            .into());
        }
        fs::write(&path, whole.replace(gate.call, gate.without))?;
        let built = build(project, &copy);
        let red = built.is_ok() && !passes(project, &copy, &[gate.test])?;
        fs::write(&path, &whole)?;
        built?;
        let verdict = if red {
            "proven: the test goes red without it"
        } else {
            "NOT PROVEN: the test stays green without it"
        };
        println!("{:<10} {:<26} {verdict}", gate.name, gate.test);
        proven &= red;
    }
    Ok(proven)
}

/// Builds the binary, the fixture and the tests from the copy. What does not compile is no proof.
fn build(project: &Project, copy: &Path) -> Outcome<()> {
    for arguments in [
        ["build", "--release", "--quiet", "-p", "toolgate-fixtures"].as_slice(),
        &["test", "--release", "--quiet", "-p", "toolgate-cli", "--test", "e2e", "--no-run"],
    ] {
        if !cargo(project, copy).args(arguments).status()?.success() {
            return Err(format!("the copy does not compile: cargo {}", arguments.join(" ")).into());
        }
    }
    Ok(())
}

/// Whether these tests pass on the binary of the copy.
fn passes(project: &Project, copy: &Path, tests: &[&str]) -> Outcome<bool> {
    let fixed = ["test", "--release", "--quiet", "-p", "toolgate-cli", "--test", "e2e", "--"];
    Ok(cargo(project, copy).args(fixed).args(tests).output()?.status.success())
}

fn cargo(project: &Project, copy: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let shared = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.path("target"), PathBuf::from);
    command.current_dir(copy).env("CARGO_TARGET_DIR", shared);
    command
}

/// Copies what git tracks, as it is in the working tree.
fn copy_tree(from: &Path, to: &Path) -> Outcome<()> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(from).output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let target = to.join(name);
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent)?;
        }
        let source = from.join(name);
        let same = match (fs::read(&source), fs::read(&target)) {
            (Ok(new), Ok(old)) => new == old,
            _ => false,
        };
        if !same && source.exists() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}
