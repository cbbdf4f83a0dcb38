//! A model provider on loopback with scripted replies. It uses real HTTP/1.1 and can simulate faults of
//! networks and providers.
//!
//! A [`Reply`] is the response to one request: status, headers, body, and faults. The server records the
//! exact bytes of every request ([`Received`]).
//!
//! ```text
//! client ── request ──► Received ──► the script ──► Reply ──► head, body in pieces ──► client
//!                                                      └─ a delay, a cut at byte n, a stall
//! ```

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A model provider with scripted replies. It stops when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    port: u16,
    state: Arc<State>,
}

/// A received request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Path, such as `/v1/messages`.
    pub path: String,
    /// Headers, with lowercase names.
    pub headers: Vec<(String, String)>,
    /// The exact bytes of the body.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// The reply to one request.
#[derive(Clone, Debug)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    framing: Framing,
    wait: Duration,
    piece: usize,
    pause: Duration,
    end: End,
}

/// How the end of the body is indicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// By `Content-Length`.
    Length,
    /// By a wrong `Content-Length`.
    WrongLength(usize),
    /// By the last chunk.
    Chunks,
    /// By the end of the connection.
    Close,
}

/// How the reply ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// After the whole body.
    Whole,
    /// The connection is cut before the head.
    BeforeTheHead,
    /// The connection is cut after this number of bytes of the body.
    CutAt(usize),
    /// Nothing is sent after this number of bytes of the body.
    StallAt(usize),
}

impl Reply {
    /// A body of JSON.
    pub fn json(status: u16, body: impl Into<String>) -> Reply {
        Reply {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.into().into_bytes(),
            framing: Framing::Length,
            wait: Duration::ZERO,
            piece: usize::MAX,
            pause: Duration::ZERO,
            end: End::Whole,
        }
    }

    /// A stream of server-sent events, given as raw bytes.
    pub fn stream(events: impl AsRef<[u8]>) -> Reply {
        let headers = vec![("content-type".into(), "text/event-stream; charset=utf-8".into())];
        let body = events.as_ref().to_vec();
        Reply { headers, body, framing: Framing::Chunks, ..Reply::json(200, "") }
    }

    /// An HTML page, as sent by a proxy.
    pub fn page(status: u16, body: impl Into<String>) -> Reply {
        let headers = vec![("content-type".into(), "text/html; charset=utf-8".into())];
        Reply { headers, ..Reply::json(status, body) }
    }

    /// Sets the `Content-Length` to a number that may be wrong.
    pub fn claiming(self, bytes: usize) -> Reply {
        Reply { framing: Framing::WrongLength(bytes), ..self }
    }

    /// Ends the body with the connection.
    pub fn until_close(self) -> Reply {
        Reply { framing: Framing::Close, ..self }
    }

    /// Cuts the connection before the reply.
    pub fn cut() -> Reply {
        Reply { end: End::BeforeTheHead, ..Reply::json(200, "") }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Delays the reply.
    pub fn after(self, wait: Duration) -> Reply {
        Reply { wait, ..self }
    }

    /// Sends the body in pieces of this number of bytes, which may split characters.
    pub fn in_pieces(self, piece: usize) -> Reply {
        Reply { piece: piece.max(1), ..self }
    }

    /// Pauses after every piece.
    pub fn pausing(self, pause: Duration) -> Reply {
        Reply { pause, ..self }
    }

    /// Cuts the connection after this number of bytes of the body.
    pub fn cut_at(self, bytes: usize) -> Reply {
        Reply { end: End::CutAt(bytes), ..self }
    }

    /// Stalls after this number of bytes of the body.
    pub fn stall_at(self, bytes: usize) -> Reply {
        Reply { end: End::StallAt(bytes), ..self }
    }

    /// Writes the reply. Returns whether the connection stays open.
    fn write(&self, stream: &mut TcpStream, is_stopped: &AtomicBool) -> std::io::Result<bool> {
        sleep(self.wait, is_stopped);
        if matches!(self.end, End::BeforeTheHead) {
            return Ok(false);
        }
        let mut head = format!("HTTP/1.1 {} Scripted\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&match self.framing {
            Framing::Chunks => "transfer-encoding: chunked\r\n\r\n".to_owned(),
            Framing::Length => format!("content-length: {}\r\n\r\n", self.body.len()),
            Framing::WrongLength(len) => format!("content-length: {len}\r\n\r\n"),
            Framing::Close => "connection: close\r\n\r\n".to_owned(),
        });
        let is_chunked = self.framing == Framing::Chunks;
        stream.write_all(head.as_bytes())?;
        let len = match self.end {
            End::CutAt(len) | End::StallAt(len) => len.min(self.body.len()),
            End::Whole | End::BeforeTheHead => self.body.len(),
        };
        for piece in self.body[..len].chunks(self.piece) {
            match is_chunked {
                true => {
                    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                    chunk.extend_from_slice(piece);
                    chunk.extend_from_slice(b"\r\n");
                    stream.write_all(&chunk)?;
                }
                false => stream.write_all(piece)?,
            }
            stream.flush()?;
            sleep(self.pause, is_stopped);
        }
        match self.end {
            End::Whole if is_chunked => stream.write_all(b"0\r\n\r\n")?,
            End::Whole if self.framing == Framing::Close => return Ok(false),
            End::Whole => {}
            End::StallAt(_) => {
                // Wait until the client closes the connection or the server stops.
                stream.set_read_timeout(Some(Duration::from_millis(20)))?;
                let mut rest = [0; 64];
                while !is_stopped.load(Ordering::SeqCst) {
                    if let Ok(0) = stream.read(&mut rest) {
                        break;
                    }
                }
                return Ok(false);
            }
            End::CutAt(_) | End::BeforeTheHead => return Ok(false),
        }
        Ok(true)
    }
}

/// Sleeps in short intervals, and returns early when the server stops.
fn sleep(time: Duration, is_stopped: &AtomicBool) {
    let interval = Duration::from_millis(20);
    let mut left = time;
    while !left.is_zero() && !is_stopped.load(Ordering::SeqCst) {
        std::thread::sleep(left.min(interval));
        left = left.saturating_sub(interval);
    }
}

type Script = dyn FnMut(&Received) -> Reply + Send;

struct State {
    received: Mutex<Vec<Received>>,
    script: Mutex<Box<Script>>,
    is_stopped: AtomicBool,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

impl ModelServer {
    /// A server that sends these replies in order, then status 500.
    pub fn replying(replies: impl IntoIterator<Item = Reply>) -> ModelServer {
        let mut replies: VecDeque<Reply> = replies.into_iter().collect();
        ModelServer::answering(move |_| {
            let none = || Reply::json(500, r#"{"error":{"message":"the script has ended"}}"#);
            replies.pop_front().unwrap_or_else(none)
        })
    }

    /// A server that gets each reply from a function.
    pub fn answering(script: impl FnMut(&Received) -> Reply + Send + 'static) -> ModelServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let state = Arc::new(State {
            received: Mutex::default(),
            script: Mutex::new(Box::new(script)),
            is_stopped: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(client, &shared));
            }
        });
        ModelServer { port, state }
    }

    /// Base URL: `http://127.0.0.1:…`, without a path.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The received requests, in order.
    pub fn received(&self) -> Vec<Received> {
        self.state.received.lock().expect("no code panics while it holds this lock").clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.state.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn serve(mut client: TcpStream, state: &State) {
    let _ = client.set_nodelay(true);
    let Ok(reading) = client.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    while let Some(request) = read_request(&mut reader) {
        // The request is recorded before the script is called.
        state
            .received
            .lock()
            .expect("no code panics while it holds this lock")
            .push(request.clone());
        let reply = (state.script.lock().expect("no script panics"))(&request);
        match reply.write(&mut client, &state.is_stopped) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Received { path, headers, body: Vec::new() };
    let len = request.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    request.body.resize(len, 0);
    reader.read_exact(&mut request.body).ok()?;
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a request and returns the raw reply.
    fn send(server: &ModelServer, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
        let len = body.len();
        write!(stream, "POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n{body}")
            .unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut reply = Vec::new();
        let _ = stream.read_to_end(&mut reply);
        String::from_utf8_lossy(&reply).into_owned()
    }

    #[test]
    fn replies_are_sent_in_order_and_requests_are_recorded() {
        let server = ModelServer::replying([
            Reply::json(429, "{}").header("retry-after", "2"),
            Reply::stream("data: é\n\n").in_pieces(7),
            Reply::stream("data: whole\n\n").cut_at(5),
            Reply::cut(),
        ]);
        let refused = send(&server, "é1");
        assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
        assert!(refused.contains("retry-after: 2\r\n") && refused.ends_with("\r\n\r\n{}"));
        // Seven bytes end inside the character.
        assert!(send(&server, "2").ends_with("\r\n3\r\n\u{fffd}\n\n\r\n0\r\n\r\n"));
        assert!(send(&server, "3").ends_with("\r\n5\r\ndata:\r\n"));
        assert_eq!(send(&server, "4"), "");
        assert!(send(&server, "5").starts_with("HTTP/1.1 500"));
        let received = server.received();
        assert_eq!(received.len(), 5);
        assert_eq!((received[0].path.as_str(), &received[0].body[..]), ("/v1/x", "é1".as_bytes()));
        assert_eq!(received[0].header("host"), Some("h"));
    }
}
