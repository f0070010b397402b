//! The author's kit with a real guest toolchain: minutes, not seconds, so a test binary of its own.
//!
//! The machine that it plays is one where rustup can fetch nothing: no program of rustup's is in the
//! path, and Debian's packages build the standard library from source (only the linker may come from
//! a rustup toolchain). Where those packages are missing it uses what `plugin build` finds; where `CI`
//! is set, that is a failure, so that the branch which is hard to come by is the one that is shown.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use toolgate_e2e::{Run, Sandbox};

/// The longest that one script may take. A build of the standard library on a busy machine is slow.
const LONGEST: Duration = Duration::from_mins(20);

#[test]
fn an_afternoon_leads_from_nothing_to_a_call_that_the_new_adapter_changed_in_under_ten_commands() {
    let author = Author::new();
    let (commands, expected) = afternoon();
    let typed = commands.iter().filter(|line| line.starts_with("toolgate ")).count();
    assert!((5..10).contains(&typed), "{typed} commands: {commands:#?}");
    let run = author.shell(&format!("set -e\n{}", commands.join("\n")));
    assert_eq!(run.code, 0, "{run:?}");
    for line in &expected {
        assert!(run.stdout.lines().any(|have| have == line), "`{line}` was not printed: {run:?}");
    }
    // The server itself gives back what it gets: without the adapter the spaces are there.
    let bare = author.sandbox.read("work/tidy.yaml").replace("adapter:", "# adapter:");
    author.sandbox.write("work/bare.yaml", bare);
    let run = author
        .shell("toolgate --config bare.yaml mcp call notes.echo --json '{\"message\":\"   hello   \"}'");
    assert_eq!((run.code, run.stdout.as_str()), (0, "   hello   \n"), "{run:?}");

    // The release names what it was built with.
    let told = author.shell("toolgate --config tidy.yaml plugin inspect ./tidy --json").stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let toolchain = told["toolchain"].as_str().unwrap();
    assert!(toolchain.contains("wasm32-unknown-unknown"), "{toolchain}");
    if author.debian {
        assert!(toolchain.contains("std built from source"), "{toolchain}");
    }

    gate_rebuild_what_was_signed_is_what_its_sources_give_and_a_changed_source_is_refused(&author);
    a_setting_that_does_not_fit_is_told_by_line_and_column(&author);
    the_rest_of_the_document_is_true(&author);
    recorded_documents_keep_no_secret(&author);
    a_panic_reaches_the_author_with_message_hook_and_pointer(&author);
    the_other_kinds_build_and_answer_their_documents(&author);
}

/// `plugin verify --rebuild` with a real compiler: the release that the afternoon signed is compiled again by
/// somebody else, from a copy of the sources that lies elsewhere, and the bytes are the same. A source, or a
/// lock file, that is another is refused before anything is compiled.
fn gate_rebuild_what_was_signed_is_what_its_sources_give_and_a_changed_source_is_refused(author: &Author) {
    let copied = author.shell("mkdir -p elsewhere/of/somebody && cp -r tidy elsewhere/of/somebody/sources && rm -r elsewhere/of/somebody/sources/target");
    assert_eq!(copied.code, 0, "{copied:?}");
    let verify = "toolgate --config tidy.yaml plugin verify ./tidy --rebuild elsewhere/of/somebody/sources";
    let run = author.shell(verify);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("give the same bytes, with rustc "), "{run:?}");
    // What is compiled is a copy: the sources that were named are as they were.
    assert!(!author.sandbox.path("work/elsewhere/of/somebody/sources/target").exists());

    for (file, change) in [("src/lib.rs", "\n// another\n"), ("Cargo.lock", "\n"), ("sdk/src/lib.rs", "\n")] {
        let place = format!("work/elsewhere/of/somebody/sources/{file}");
        let text = author.sandbox.read(&place);
        author.sandbox.write(&place, format!("{text}{change}"));
        let started = Instant::now();
        let run = author.shell(verify);
        assert_eq!(run.code, 5, "{file}: {run:?}");
        for part in ["are not those of", "nothing was compiled", "next:"] {
            assert!(run.stderr.contains(part), "{file}: {part} is missing in {run:?}");
        }
        assert!(started.elapsed() < Duration::from_mins(1), "nothing was compiled");
        author.sandbox.write(&place, text);
    }
}

fn a_setting_that_does_not_fit_is_told_by_line_and_column(author: &Author) {
    let wrong = author.sandbox.read("work/tidy.yaml").replace("longest: 200", "longest: many");
    let line = wrong.lines().position(|line| line.contains("many")).unwrap() + 1;
    author.sandbox.write("work/wrong.yaml", wrong);
    let run = author.shell("toolgate --config wrong.yaml mcp call notes.echo --json '{\"message\":\"x\"}'");
    let place = format!("wrong.yaml:{line}:");
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(run.code != 0 && told.contains(&place) && told.contains("longest"), "{run:?}");
}

/// Every line of the blocks `sh kit`, each with the exit code that its comment states.
fn the_rest_of_the_document_is_true(author: &Author) {
    let lines = blocks("sh kit");
    assert!(lines.len() > 4, "{lines:?}");
    for line in &lines {
        let code = line.rsplit_once("# exit ").map_or(0, |(_, code)| {
            code.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
        });
        let run = author.shell(line);
        assert_eq!(run.code, code, "{line}: {run:?}");
    }
    let answer = author.sandbox.read("work/tidy/documents/arguments-echo.expected.json");
    assert!(answer.contains("\"/message\""), "{answer}");
}

fn recorded_documents_keep_no_secret(author: &Author) {
    let record = "toolgate --config tidy.yaml mcp record notes --out other --call 'echo={\"message\":\" a \",\"password\":\"hunter22\"}'";
    let run = author.shell(record);
    assert_eq!(run.code, 0, "{run:?}");
    let document = author.sandbox.read("work/other/arguments-echo.json");
    assert!(document.contains("\" a \"") && document.contains("***"), "{document}");
    assert!(!document.contains("hunter22"), "{document}");
}

fn a_panic_reaches_the_author_with_message_hook_and_pointer(author: &Author) {
    let source = author.sandbox.read("work/tidy/src/lib.rs");
    let panics = source.replace(
        "let tidy = text.trim();",
        "let tidy = text.trim(); assert!(tidy != \"cats\", \"no cats\");",
    );
    assert_ne!(source, panics);
    author.sandbox.write("work/tidy/src/lib.rs", panics);
    let built = author.shell("toolgate plugin build tidy");
    assert_eq!(built.code, 0, "{built:?}");
    let run = author.shell("toolgate plugin test tidy");
    assert_eq!(run.code, 1, "{run:?}");
    for part in ["FAULT", "arguments-tidy", "in `arguments`", "`/text`", "no cats", "src/lib.rs:"] {
        assert!(run.stdout.contains(part), "{part} is missing in {run:?}");
    }
    // A fault is nothing to expect.
    assert_eq!(author.shell("toolgate plugin test tidy --update").code, 1);
    assert!(!author.sandbox.read("work/tidy/documents/arguments-tidy.expected.json").contains("fault"));
}

// CARD-006
/// The other kinds take the place of the first: the flags of a build name the directory, so that another
/// directory would compile the standard library anew, which is minutes and shows nothing more.
fn the_other_kinds_build_and_answer_their_documents(author: &Author) {
    for kind in ["policy", "installer"] {
        let script = format!(
            "set -e\nmv tidy/target target\nrm -r tidy\n\
             toolgate plugin new {kind} acme/{kind} --dir tidy\nmv target tidy/target\n\
             toolgate plugin build tidy\ntoolgate plugin test tidy"
        );
        let run = author.shell(&script);
        assert_eq!(run.code, 0, "{kind}: {run:?}");
        assert!(!run.stdout.contains("not asked"), "{kind}: {run:?}");
    }
}

/// The commands of the afternoon in docs/plugin-authors.md, and the lines that it says they print.
fn afternoon() -> (Vec<String>, Vec<String>) {
    (blocks("sh afternoon"), blocks("text afternoon"))
}

/// The lines of all blocks of docs/plugin-authors.md with this word.
fn blocks(word: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/plugin-authors.md")).unwrap();
    let (mut lines, mut inside) = (Vec::new(), None);
    for line in text.lines() {
        match (line.strip_prefix("```"), inside) {
            (Some(begun), None) => inside = Some(begun == word),
            (Some(_), Some(_)) => inside = None,
            (None, Some(true)) if !line.trim().is_empty() => lines.push(line.to_owned()),
            _ => {}
        }
    }
    lines
}

/// Somebody with the binary, a compiler, and nothing else.
struct Author {
    sandbox: Sandbox,
    debian: bool,
}

impl Author {
    fn new() -> Self {
        let sandbox = Sandbox::new(env!("CARGO_BIN_EXE_toolgate"));
        fs::create_dir_all(sandbox.path("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_toolgate"), sandbox.path("bin/toolgate")).unwrap();
        let npx = format!("#!/bin/sh\nexec '{}'\n", sandbox.fixture().display());
        let npx = sandbox.write("bin/npx", npx);
        fs::set_permissions(npx, fs::Permissions::from_mode(0o755)).unwrap();
        let debian = Path::new("/usr/bin/rustc").is_file()
            && Path::new("/usr/bin/cargo").is_file()
            && fs::read_dir("/usr/src").is_ok_and(|mut entries| {
                entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with("rustc-"))
            });
        assert!(
            debian || std::env::var_os("CI").is_none(),
            "apt-get install rustc-web cargo-web rust-web-src, which .ci/run does"
        );
        if !debian {
            eprintln!("Debian's packages are missing; this shows the branch of rustup instead");
        }
        Self { sandbox, debian }
    }

    /// Runs a script as the author types it. Rustup is out of the path where Debian's packages are in.
    fn shell(&self, script: &str) -> Run {
        let home = std::env::var("HOME").unwrap_or_default();
        let of = |name: &str, below: &str| std::env::var(name).unwrap_or_else(|_| format!("{home}/{below}"));
        let path =
            if self.debian { "/usr/bin:/bin".to_owned() } else { std::env::var("PATH").unwrap_or_default() };
        let files = [self.sandbox.path("stdout"), self.sandbox.path("stderr")];
        let [stdout, stderr] = files.each_ref().map(|file| Stdio::from(fs::File::create(file).unwrap()));
        let mut child = Command::new("/bin/sh")
            .args(["-c", script])
            .env_clear()
            .env("PATH", format!("{}:{path}", self.sandbox.path("bin").display()))
            .env("HOME", self.sandbox.path("home"))
            .env("CARGO_HOME", of("CARGO_HOME", ".cargo"))
            .env("RUSTUP_HOME", of("RUSTUP_HOME", ".rustup"))
            .current_dir(self.sandbox.path("work"))
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .unwrap();
        let until = Instant::now() + LONGEST;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > until {
                let _ = child.kill();
                panic!("{script}\ndid not end within {LONGEST:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let [stdout, stderr] =
            files.map(|file| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned());
        Run { code: status.code().unwrap_or(-1), stdout, stderr }
    }
}

/// The project.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
