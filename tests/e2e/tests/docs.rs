//! The documents keep their word: every command in them runs as it is typed, every configuration in
//! them is accepted, every output they quote was printed, every test they name exists.
//!
//! Each document has a sandbox of its own, with what a reader would have: the binary and `npx` in the
//! path (here a stand-in that starts the fixture server, because a test asks no network), and for
//! plugin authors a signed plugin in `guard/`. In a ```` ```sh ```` block, `# exit N` in a comment is the
//! expected exit code. A ```` ```yaml ```` block is written to the file that its first line names and
//! goes through `config check`; a ```` ```toml ```` block is the rest of a manifest, from which a release is
//! made. A line of a ```` ```text ```` block has to stand in what was printed
//! before it, `…` for any text.

mod not_run;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use toolgate_e2e::{Run, Sandbox};
use toolgate_signing::{Kind, SigningKey, sign_release};

use self::not_run::NOT_RUN;
use crate::guests::{call_policy, release, says};
use crate::{TOOLGATE, sandbox};

/// Blocks that `tests/e2e/slow` runs as they stand, because they compile.
const RUN_ELSEWHERE: [&str; 3] = ["sh afternoon", "text afternoon", "sh kit"];

/// What never ends, builds or asks the network, and so must be in the table.
const MUST_BE_LISTED: [&str; 6] =
    ["cargo ", "npx ", "curl ", "toolgate serve", "toolgate registry serve", "toolgate audit tail -f"];

/// The longest that one line may take.
const LONGEST: Duration = Duration::from_mins(1);

#[test]
fn every_command_configuration_and_output_of_the_documents_is_true() {
    let documents = documents();
    let mut used = vec![false; NOT_RUN.len()];
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> =
            documents.iter().map(|path| scope.spawn(|| Document::read(path).follow())).collect();
        let mut wrong = Vec::new();
        for run in runs {
            let (found, listed) = run.join().unwrap();
            wrong.extend(found);
            for index in listed {
                used[index] = true;
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    for (entry, used) in NOT_RUN.iter().zip(used) {
        assert!(used, "no document has a line `{}` ({})", entry.begins, entry.why);
    }
}

#[test]
fn every_line_that_is_not_run_names_what_covers_it() {
    let code = sources(&root().join("tests"));
    for entry in NOT_RUN {
        let exists =
            root().join(entry.covered_by).is_file() || code.contains(&format!("fn {}(", entry.covered_by));
        assert!(exists, "`{}` is covered by {}, which does not exist", entry.begins, entry.covered_by);
    }
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let text = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let names: Vec<&str> = text.split('`').skip(1).step_by(2).filter(|token| token.contains("::")).collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let parts: Vec<&str> = name.split("::").collect();
        let [place, module, case] = parts[..] else { panic!("{name} is not PLACE::MODULE::TEST") };
        let code = match place {
            "e2e" => module_of_tests(module),
            "registry" => sources(&root().join("registry/src")),
            _ => sources(&root().join("host").join(place)),
        };
        assert!(code.contains(&format!("fn {case}(")), "{name} does not exist");
    }
}

/// A module of these tests, with what is split off from it.
fn module_of_tests(module: &str) -> String {
    let directory = root().join("tests/e2e/tests");
    let own = fs::read_to_string(directory.join(format!("{module}.rs"))).unwrap_or_default();
    let parts = directory.join(module);
    if parts.is_dir() { own + &sources(&parts) } else { own }
}

/// What no program enforces, in the document of whoever has to know it: words that have to stand there.
const SAID: &[(&str, &str, &[&str])] = &[
    ("SCP-011", "operators.md", &["A skill stays the one that decides", "no second selection"]),
    (
        "APR-021",
        "security-teams.md",
        &["`mcporter`", "no approval for a single tool", "skills of your own making alone"],
    ),
    (
        "TRU-007",
        "operators.md",
        &["A server is software that you install", "is read by a model", "Connect only servers"],
    ),
    (
        "TRU-009",
        "security-teams.md",
        &[
            "`outputSchema`",
            "schedule or allow by annotations",
            "search results for the secrets of your entries",
        ],
    ),
    (
        "SEC-019",
        "operators.md",
        &["lends it none of the agent's", "made for your account alone (0600)", "is your part"],
    ),
    (
        "SEC-020",
        "operators.md",
        &["the real boundary between reading and writing", "no more scopes than its tools need"],
    ),
];

#[test]
fn scp_011_apr_021_tru_007_tru_009_sec_019_sec_020_what_no_program_enforces_is_said_to_who_has_to_know_it() {
    for (row, document, words) in SAID {
        let text = fs::read_to_string(root().join("docs").join(document)).unwrap();
        for word in *words {
            assert!(text.contains(word), "{row}: docs/{document} no longer says: {word}");
        }
    }
}

#[test]
fn every_link_between_the_documents_leads_somewhere() {
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            let there = file.is_empty() || file.contains("://") || path.parent().unwrap().join(file).exists();
            assert!(there, "{}: {target} leads nowhere", path.display());
        }
    }
}

/// A fenced block of a document.
struct Block {
    line: usize,
    language: String,
    lines: Vec<String>,
}

struct Document {
    name: String,
    blocks: Vec<Block>,
}

impl Document {
    fn read(path: &Path) -> Self {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut blocks: Vec<Block> = Vec::new();
        let mut inside = false;
        for (number, line) in fs::read_to_string(path).unwrap().lines().enumerate() {
            match (line.strip_prefix("```"), inside) {
                (Some(language), false) => {
                    blocks.push(Block {
                        line: number + 1,
                        language: language.trim().to_owned(),
                        lines: Vec::new(),
                    });
                    inside = true;
                }
                (Some(_), true) => inside = false,
                (None, true) => blocks.last_mut().unwrap().lines.push(line.to_owned()),
                (None, false) => {}
            }
        }
        Self { name, blocks }
    }

    /// Does what the document says, in order; gives what was wrong and the lines that are not run.
    fn follow(&self) -> (Vec<String>, Vec<usize>) {
        let reader = Reader::new();
        let (mut exports, mut printed) = (String::new(), String::new());
        let (mut wrong, mut listed) = (Vec::new(), Vec::new());
        for block in &self.blocks {
            for (offset, line) in block.lines.iter().enumerate() {
                let place = format!("{}:{}: {line}", self.name, block.line + offset + 1);
                match block.language.as_str() {
                    "sh" if line.trim().is_empty() => {}
                    "sh" if line.starts_with("export ") => exports = format!("{exports}{line}\n"),
                    "sh" => match NOT_RUN.iter().position(|entry| line.starts_with(entry.begins)) {
                        Some(index) => listed.push(index),
                        None if MUST_BE_LISTED.iter().any(|word| line.starts_with(word)) => {
                            wrong.push(format!("{place}\nis neither run nor listed in NOT_RUN"));
                        }
                        None => {
                            let run = reader.shell(&format!("{exports}{line}"));
                            if run.code != expected(line) {
                                wrong.push(format!(
                                    "{place}\nended with {}, not {}: {run:?}",
                                    run.code,
                                    expected(line)
                                ));
                            }
                            printed.push_str(&run.stdout);
                            printed.push_str(&run.stderr);
                        }
                    },
                    "text" if !printed.lines().any(|have| is_like(have, line)) => {
                        wrong.push(format!("{place}\nwas not printed by the commands before it:\n{printed}"));
                    }
                    _ => {}
                }
            }
            if block.language == "toml" {
                let run = reader.declare(block);
                if run.code != 0 {
                    wrong.push(format!("{}:{}: the manifest is refused: {run:?}", self.name, block.line));
                }
            }
            let known = ["sh", "yaml", "toml", "text", ""].contains(&block.language.as_str());
            if !known && !RUN_ELSEWHERE.contains(&block.language.as_str()) {
                wrong.push(format!(
                    "{}:{}: a block `{}` is run by nobody",
                    self.name, block.line, block.language
                ));
            }
            if block.language == "yaml" {
                let run = reader.check(block);
                if run.code != 0 {
                    wrong
                        .push(format!("{}:{}: the configuration is refused: {run:?}", self.name, block.line));
                }
            }
        }
        (wrong, listed)
    }
}

/// Somebody who reads a document and types what it says.
struct Reader {
    sandbox: Sandbox,
}

impl Reader {
    fn new() -> Self {
        let sandbox = sandbox();
        fs::create_dir_all(sandbox.path("bin")).unwrap();
        symlink(TOOLGATE, sandbox.path("bin/toolgate")).unwrap();
        let tools = sandbox.write(
            "tools.json",
            r#"[{"name":"read_text_file","inputSchema":{"type":"object"}},{"name":"write_file","inputSchema":{"type":"object"}}]"#,
        );
        let npx = format!("#!/bin/sh\nexec '{}' --tools '{tools}'\n", sandbox.fixture().display());
        let npx = sandbox.write("bin/npx", npx);
        fs::set_permissions(npx, fs::Permissions::from_mode(0o755)).unwrap();
        let guest = call_policy(&says(3));
        let stated =
            toolgate_signing::Release { name: "acme/guard".to_owned(), ..release(Kind::Policy, &guest) };
        sandbox.write("work/guard/component.wasm", &guest);
        sandbox.write(
            "work/guard/release.dsse.json",
            sign_release(&stated, &guest, &SigningKey::from_seed(&[7; 32])),
        );
        fs::copy(root().join("registry/ceremony.sh"), sandbox.path("work/ceremony.sh")).unwrap();
        Self { sandbox }
    }

    fn shell(&self, script: &str) -> Run {
        let like = self.sandbox.command(&[]);
        let path =
            format!("{}:{}", self.sandbox.path("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).env_clear().current_dir(like.get_current_dir().unwrap());
        command.envs(like.get_envs().filter_map(|(name, value)| Some((name, value?)))).env("PATH", path);
        // The documents say `~/.config`, as it is for most readers.
        command.env_remove("XDG_CONFIG_HOME");
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (ended, wait) = mpsc::channel();
        std::thread::spawn(move || ended.send(child.wait_with_output()));
        let output = wait
            .recv_timeout(LONGEST)
            .unwrap_or_else(|_| panic!("{script}\ndid not end within {LONGEST:?}"))
            .unwrap();
        Run {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Makes a release of a policy whose manifest ends with this block; signing is not needed to see that it
    /// could be signed.
    fn declare(&self, block: &Block) -> Run {
        let manifest = format!(
            "manifest = 1\nname = \"acme/declared\"\nversion = \"0.1.0\"\nsequence = 1\nkind = \"policy\"\nmin-host = \"0.1.0\"\n{}\n",
            block.lines.join("\n")
        );
        self.sandbox.write("work/declared/plugin.toml", manifest);
        fs::copy(
            self.sandbox.path("work/guard/component.wasm"),
            self.sandbox.path("work/declared/component.wasm"),
        )
        .unwrap();
        self.sandbox.run(&["plugin", "sign", "declared", "--payload-out", "declared/payload"])
    }

    /// Writes a configuration where the commands after it look for it, and checks it.
    fn check(&self, block: &Block) -> Run {
        let named = block
            .lines
            .first()
            .and_then(|line| line.strip_prefix("# "))
            .filter(|name| Path::new(name).extension().is_some_and(|end| end == "yaml"));
        let name = named.map_or_else(|| format!("line-{}.yaml", block.line), str::to_owned);
        let file = self.sandbox.write(&format!("work/{name}"), block.lines.join("\n"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        self.sandbox.run(&["--config", &file, "config", "check"])
    }
}

/// The exit code that a line's comment states; 0 where it states none.
fn expected(line: &str) -> i32 {
    let stated = line.rsplit_once("# exit ").map(|(_, rest)| rest);
    let digits = |rest: &str| rest.chars().take_while(char::is_ascii_digit).collect::<String>();
    stated.and_then(|rest| digits(rest).parse().ok()).unwrap_or(0)
}

/// Whether a line is a pattern's, in which `…` stands for any text.
fn is_like(line: &str, pattern: &str) -> bool {
    let mut rest = line;
    let mut parts = pattern.split('…');
    let begins = parts.next().is_none_or(|first| match rest.strip_prefix(first) {
        Some(after) => {
            rest = after;
            true
        }
        None => false,
    });
    begins
        && parts.all(|part| match rest.find(part) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
}

fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.push(root().join("README.md"));
    found.sort();
    found
}

/// Every Rust file below a directory, as one text.
fn sources(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text.push_str(&sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
    text
}

/// The project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
