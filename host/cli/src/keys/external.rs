//! A program that signs, in front of a device or a key service.
//!
//! Contract: the program gets the pre-authentication encoding on standard input, and its standard
//! output is the signature. It inherits standard error, so that it can ask for a touch or a PIN.
//!
//! Bounds: two minutes, 4 KiB of output; a program that goes on is ended. What it prints is checked
//! under the public key before it is used.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use toolgate_signing::{PublicKey, SignError, Signer, read_signature};

use crate::exit::Failure;

/// Longest time for one signature: somebody may have to find the device.
const PATIENCE: Duration = Duration::from_mins(2);
/// Most bytes of output.
const MAX_OUTPUT: u64 = 4 * 1024;

/// A command and the key that it signs with.
pub(super) struct Program {
    words: Vec<String>,
    public: PublicKey,
}

impl Program {
    /// The command is split as a shell splits words, and no shell runs it.
    pub(super) fn new(command: &str, public: PublicKey) -> Result<Self, Failure> {
        match shlex::split(command) {
            Some(words) if !words.is_empty() => Ok(Self { words, public }),
            _ => Err(Failure::usage("--signer is no command: its quotes do not match, or it is empty")),
        }
    }

    fn run(&self, input: &[u8]) -> Result<Vec<u8>, String> {
        let (program, arguments) = self.words.split_first().ok_or("it is empty")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let mut stdin = child.stdin.take();
        let (bytes, mut stdout) = (input.to_vec(), child.stdout.take());
        // The threads end with the pipes, which end with the child.
        std::thread::spawn(move || stdin.take().is_some_and(|mut stdin| stdin.write_all(&bytes).is_ok()));
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut output = Vec::new();
            let read = stdout.take().map(|stdout| stdout.take(MAX_OUTPUT + 1).read_to_end(&mut output));
            let _ = sender.send((read, output));
        });
        let ended = wait(&mut child, program)?;
        if !ended.success() {
            return Err(format!("{program} ended with {ended}"));
        }
        let (_, output) =
            receiver.recv_timeout(Duration::from_secs(5)).map_err(|_| "its output did not end")?;
        if output.len() as u64 > MAX_OUTPUT {
            return Err(format!("{program} printed more than {MAX_OUTPUT} bytes"));
        }
        Ok(output)
    }
}

/// Waits within the bound; a program that goes on is ended.
fn wait(child: &mut Child, program: &str) -> Result<std::process::ExitStatus, String> {
    let until = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} took longer than {} s and was ended", PATIENCE.as_secs()));
            }
            Err(error) => return Err(format!("{program} cannot be waited for: {error}")),
        }
    }
}

impl Signer for Program {
    fn public(&self) -> PublicKey {
        self.public
    }

    fn sign(&self, encoded: &[u8]) -> Result<[u8; 64], SignError> {
        let output = self.run(encoded).map_err(SignError::Refused)?;
        read_signature(&output)
    }
}
