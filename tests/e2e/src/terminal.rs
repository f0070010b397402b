//! A person at a terminal: the binary with a real pseudo-terminal that controls it.
//!
//! `script` of util-linux opens the terminal and hands on what is typed; what comes back is everything
//! that the terminal showed.

use std::io::Write as _;
use std::process::{Child, Command, Stdio as Pipe};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use crate::{PATIENCE, Run, Sandbox};

/// The binary on a pseudo-terminal.
pub struct Terminal {
    child: Child,
    shown: Receiver<Vec<u8>>,
    text: String,
    /// How much of the text was waited for already.
    seen: usize,
}

impl Sandbox {
    /// Starts the binary at a terminal of its own.
    pub fn at_terminal(&self, args: &[&str]) -> Terminal {
        let inner = self.command(args);
        let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_str().unwrap().replace('\'', r"'\''"));
        let words: Vec<String> =
            std::iter::once(inner.get_program()).chain(inner.get_args()).map(quoted).collect();
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &words.join(" "), "/dev/null"]).env_clear();
        for (name, value) in inner.get_envs() {
            command.envs(value.map(|value| (name, value)));
        }
        command.env("SHELL", "/bin/sh").current_dir(inner.get_current_dir().unwrap());
        Terminal::start(command)
    }

    /// Runs the binary at a terminal and types each answer when its prompt has come.
    #[track_caller]
    pub fn type_to(&self, args: &[&str], answers: &[(&str, &str)]) -> Run {
        let mut terminal = self.at_terminal(args);
        for (prompt, answer) in answers {
            terminal.wait_for(prompt);
            terminal.type_line(answer);
        }
        terminal.end()
    }
}

impl Terminal {
    fn start(mut command: Command) -> Self {
        command.stdin(Pipe::piped()).stdout(Pipe::piped()).stderr(Pipe::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("no terminal without `script` of util-linux: {error}"));
        let mut output = child.stdout.take().unwrap();
        let (sender, shown) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0_u8; 4096];
            while let Ok(count) = std::io::Read::read(&mut output, &mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, shown, text: String::new(), seen: 0 }
    }

    /// Waits until the terminal shows this after what was waited for before.
    #[track_caller]
    pub fn wait_for(&mut self, prompt: &str) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.text[self.seen..].find(prompt) {
                self.seen += at + prompt.len();
                return;
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.shown.recv_timeout(left) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(error) => panic!("`{prompt}` did not come ({error}): {:?}", self.text),
            }
        }
    }

    /// Types a line.
    pub fn type_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Waits for the end; standard output and error are what the terminal showed.
    #[track_caller]
    pub fn end(mut self) -> Run {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.shown.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it did not end: {:?}", self.text),
            }
        }
        let status = self.child.wait().unwrap();
        let shown = std::mem::take(&mut self.text);
        Run { code: status.code().unwrap_or(-1), stderr: shown.clone(), stdout: shown }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
