//! A web server of a test: it keeps what it got, and answers as the test says.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use crate::PATIENCE;

/// One request that came.
#[derive(Clone, Debug)]
pub struct Received {
    /// How many came before it.
    pub number: usize,
    /// The request line and the headers.
    pub head: String,
    /// The body.
    pub body: String,
}

/// A receiver on loopback. It serves until the test process ends.
pub struct Receiver {
    /// Where it listens.
    pub port: u16,
    got: Arc<Mutex<Vec<Received>>>,
}

impl Received {
    /// A header's value; names count in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let of = |line: &'_ str| line.split_once(':').map(|(key, _)| key.eq_ignore_ascii_case(name));
        let line = self.head.lines().find(|line| of(line) == Some(true))?;
        line.split_once(':').map(|(_, value)| value.trim())
    }
}

impl Receiver {
    /// Starts one that answers each request, one connection after the other, with the whole response that
    /// `answer` makes; it should say `connection: close`.
    pub fn start(mut answer: impl FnMut(&Received) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let got = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&got);
        std::thread::spawn(move || {
            let mut number = 0;
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                if let Some((head, body)) = request(&mut stream) {
                    let received = Received { number, head, body };
                    number += 1;
                    let answer = answer(&received);
                    log.lock().unwrap().push(received);
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        Self { port, got }
    }

    /// What came so far.
    pub fn requests(&self) -> Vec<Received> {
        self.got.lock().unwrap().clone()
    }
}

fn request(stream: &mut TcpStream) -> Option<(String, String)> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    let mut piece = [0u8; 8192];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_ascii_lowercase();
            let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "))?;
            if body.len() >= length.parse::<usize>().unwrap() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
        }
    }
}
