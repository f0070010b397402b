//! `toolgate logs`: what servers said beside their messages, and what Toolgate said itself.
//!
//! Everything is escaped when it is printed, whoever wrote the file: it may be shown on a terminal.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use toolgate_base::display::show_multiline;
use toolgate_base::rotate::numbered;
use toolgate_gateway::server_log;

use crate::args::Logs;
use crate::context;
use crate::exit::Failure;
use crate::logging::{self, GOES_ON};
use crate::output;

/// How often a file is looked at for more.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of one file that are read at once, at most.
const MOST: u64 = 32 * 1024 * 1024;

/// Prints the last lines of one log or of all servers', and with `--follow` those that come.
pub(crate) async fn run(explicit: Option<&Path>, args: &Logs) -> Result<(), Failure> {
    let config = context::config(explicit)?;
    let data_dir = &config.data_dir;
    let mut logs: Vec<Watched> = if args.own {
        vec![Watched::new("toolgate", logging::own_file(data_dir), logging::KEPT)]
    } else if let Some(server) = &args.server {
        let path = server_log::file_of(data_dir, server);
        if !config.servers.contains_key(server) && !path.exists() {
            return Err(super::mcp::no_server(&config, server));
        }
        vec![Watched::new(server, path, server_log::KEPT)]
    } else {
        let name = |name: &String| Watched::new(name, server_log::file_of(data_dir, name), server_log::KEPT);
        config.servers.keys().map(name).collect()
    };
    let several = logs.len() > 1;
    let mut last: Vec<Line> = Vec::new();
    for log in &mut logs {
        last.extend(log.last(args.lines));
    }
    // Each entry begins with its time.
    last.sort_by(|one, other| one.time().cmp(other.time()));
    let from = last.len().saturating_sub(args.lines);
    last.iter().skip(from).try_for_each(|line| line.print(args, several))?;
    if !args.follow {
        if last.is_empty() {
            output::note(&nothing_yet(args, &logs));
        }
        return Ok(());
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            _ = tokio::signal::ctrl_c() => return Ok(()),
        }
        for log in &mut logs {
            log.more().iter().try_for_each(|line| line.print(args, several))?;
        }
    }
}

/// Why there is nothing to print, for whoever waits for it.
fn nothing_yet(args: &Logs, logs: &[Watched]) -> String {
    match (args.own, logs) {
        (true, [log, ..]) => {
            format!("no gateway has written to {} yet; one does while it serves", log.path.display())
        }
        (false, [log]) => {
            format!("nothing is in {}; {} is started when it is needed", log.path.display(), log.of)
        }
        _ => "no server has said anything yet".to_owned(),
    }
}

/// One line of one log, with those that go on with it.
struct Line {
    of: String,
    text: String,
}

impl Line {
    fn time(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    fn print(&self, args: &Logs, several: bool) -> Result<(), Failure> {
        if args.json {
            let mut words = self.text.splitn(3, ' ');
            let mut next = || words.next().unwrap_or_default();
            // Toolgate's own lines have a level in the second place, after blanks.
            let (time, source, text) = (next(), next(), next());
            return if args.own {
                let (level, text) =
                    self.text.trim_start_matches(time).trim_start().split_once(' ').unwrap_or_default();
                output::json(&json!({ "log": self.of, "time": time, "level": level, "text": text }))
            } else {
                output::json(&json!({ "log": self.of, "time": time, "source": source, "text": text }))
            };
        }
        let text = show_multiline(&self.text);
        output::line(&if several { format!("{}: {text}", self.of) } else { text })
    }
}

/// A log file that is read on.
struct Watched {
    of: String,
    path: PathBuf,
    kept: usize,
    file: Option<File>,
    rest: Vec<u8>,
}

impl Watched {
    fn new(of: &str, path: PathBuf, kept: usize) -> Self {
        Self { of: of.to_owned(), path, kept, file: None, rest: Vec::new() }
    }

    /// The last lines there are, of older files too where the newest has fewer.
    fn last(&mut self, count: usize) -> Vec<Line> {
        let mut lines = self.more();
        for number in 1..=self.kept {
            if lines.len() >= count {
                break;
            }
            let Ok(bytes) = std::fs::read(numbered(&self.path, number)) else { break };
            let mut older = self.lines(&bytes);
            older.append(&mut lines);
            lines = older;
        }
        let from = lines.len().saturating_sub(count);
        lines.split_off(from)
    }

    /// The lines that came since. A file that was put aside is read to its end first.
    fn more(&mut self) -> Vec<Line> {
        let mut bytes = std::mem::take(&mut self.rest);
        if let Some(file) = &mut self.file {
            let _ = file.take(MOST).read_to_end(&mut bytes);
        }
        if !self.is_current()
            && let Ok(file) = File::open(&self.path)
        {
            let length = file.metadata().map(|found| found.len()).unwrap_or_default();
            let mut file = file;
            let _ = file.seek(SeekFrom::Start(length.saturating_sub(MOST)));
            let _ = (&mut file).take(MOST).read_to_end(&mut bytes);
            self.file = Some(file);
        }
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        self.rest = bytes.split_off(end);
        self.lines(&bytes)
    }

    fn is_current(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let open = self.file.as_ref().and_then(|file| file.metadata().ok());
        let named = std::fs::metadata(&self.path).ok();
        match (open, named) {
            (Some(open), Some(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
            _ => false,
        }
    }

    fn lines(&self, bytes: &[u8]) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        for text in String::from_utf8_lossy(bytes).lines() {
            match lines.last_mut().filter(|_| text.starts_with(GOES_ON)) {
                Some(line) => line.text.extend(["\n", text]),
                None => lines.push(Line { of: self.of.clone(), text: text.to_owned() }),
            }
        }
        lines
    }
}
