//! The terminal that controls this process, for what must be typed by a person.
//!
//! Contract: [`Terminal::open`] is `/dev/tty` and nothing else, whatever standard input, output and
//! error are connected to; a process without a controlling terminal has none. What is typed into
//! [`Terminal::secret`] is not shown, and the terminal is as before when it ends, `Ctrl-C` included:
//! that is read as a character, because a signal would leave the echo off.
//!
//! Bounds: [`MAX_TYPED`] bytes. Everything that is shown is escaped first.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use toolgate_base::{Secret, display};
use zeroize::Zeroizing;

/// Longest input that is taken, in bytes.
const MAX_TYPED: usize = 256;
const INTERRUPT: u8 = 3;
const END: u8 = 4;
const BACKSPACE: [u8; 2] = [8, 127];
const ERASE_LINE: u8 = 21;

/// The controlling terminal.
pub(crate) struct Terminal(File);

impl Terminal {
    /// The terminal; an error where this process has none.
    pub(crate) fn open() -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).open("/dev/tty").map(Self)
    }

    /// Shows a line.
    pub(crate) fn line(&self, text: &str) -> io::Result<()> {
        writeln!(&self.0, "{}", display::show_multiline(text))
    }

    /// Asks for a word; what is typed is shown. `None`: it was given up.
    pub(crate) fn answer(&self, prompt: &str) -> io::Result<Option<String>> {
        let mut terminal = &self.0;
        write!(terminal, "{}", display::show(prompt))?;
        let typed = read(terminal)?;
        Ok(typed.map(|typed| typed.expose().trim().to_owned()))
    }

    /// Asks for something that is not shown while it is typed. `None`: it was given up.
    pub(crate) fn secret(&self, prompt: &str) -> io::Result<Option<Secret>> {
        let mut terminal = &self.0;
        let quiet = Quiet::on(terminal)?;
        write!(terminal, "{}", display::show(prompt))?;
        let typed = read(terminal);
        drop(quiet);
        // The line end that was typed was not shown either.
        writeln!(terminal)?;
        typed
    }
}

fn read(mut terminal: &File) -> io::Result<Option<Secret>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_TYPED));
    let mut byte = [0_u8];
    loop {
        if terminal.read(&mut byte)? == 0 {
            return Ok(None);
        }
        match byte[0] {
            INTERRUPT | END => return Ok(None),
            b'\n' | b'\r' => break,
            ERASE_LINE => bytes.clear(),
            other if BACKSPACE.contains(&other) => {
                // One character, which may be several bytes.
                while bytes.pop().is_some_and(|last| last & 0b1100_0000 == 0b1000_0000) {}
            }
            other if bytes.len() < MAX_TYPED => bytes.push(other),
            _ => return Err(io::Error::other(format!("more than {MAX_TYPED} bytes were typed"))),
        }
    }
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(Secret::new(text))),
        Err(_) => Err(io::Error::other("what was typed is no UTF-8")),
    }
}

/// A terminal that shows nothing of what is typed, until this value goes.
struct Quiet<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn on(terminal: &'a File) -> io::Result<Self> {
        let before = tcgetattr(terminal)?;
        let mut quiet = before.clone();
        quiet
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG | LocalModes::IEXTEN);
        // What was typed before the question was seen is no answer to it.
        tcsetattr(terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(self.terminal, OptionalActions::Flush, &self.before) {
            tracing::warn!(%error, "the terminal could not be set back; type `reset`");
        }
    }
}
