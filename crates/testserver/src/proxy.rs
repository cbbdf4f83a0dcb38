//! A proxy on loopback that cuts connections at a moment of the test's choice.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// Passes bytes on, both ways, until it is told to cut.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What the client sends before its connection is cut, and when it is.
    plan: Mutex<Option<(Vec<u8>, Cut)>>,
    cuts: AtomicU32,
    refuses: AtomicBool,
}

/// When a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the server has heard it.
    BeforeTheServer,
    /// After the server has answered, before the client has heard that.
    BeforeTheClient,
}

impl Proxy {
    /// Starts a proxy to a port on loopback.
    pub fn to(target: u16) -> Proxy {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.refuses.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                connect(client, server, &shared);
            }
        });
        Proxy { port, state }
    }

    /// Where it listens, on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection on which the client next sends these bytes; others go on.
    pub fn cut_at(&self, bytes: &[u8], cut: Cut) {
        *self.state.plan.lock().expect("no holder panics") = Some((bytes.to_vec(), cut));
    }

    /// Whether new connections are refused.
    pub fn refuse(&self, refuse: bool) {
        self.state.refuses.store(refuse, Ordering::SeqCst);
    }

    /// How many connections it has cut.
    pub fn cuts(&self) -> u32 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

fn connect(client: TcpStream, server: TcpStream, state: &Arc<State>) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    // Set while the server works on what the connection will be cut at.
    let doomed = Arc::new(AtomicBool::new(false));
    let there = (clone(&client), clone(&server), Arc::clone(&doomed), Arc::clone(state));
    std::thread::spawn(move || {
        let (from, to, doomed, state) = there;
        pump(&from, &to, |bytes| {
            let mut plan = state.plan.lock().expect("no holder panics");
            let meant = plan.as_ref().filter(|(sign, _)| holds(bytes, sign)).map(|(_, cut)| *cut);
            if meant.is_some() {
                *plan = None;
            }
            match meant {
                Some(Cut::BeforeTheServer) => {
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    return false;
                }
                Some(Cut::BeforeTheClient) => doomed.store(true, Ordering::SeqCst),
                None => {}
            }
            true
        });
    });
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        pump(&server, &client, |_| {
            let goes_on = !doomed.load(Ordering::SeqCst);
            if !goes_on {
                state.cuts.fetch_add(1, Ordering::SeqCst);
            }
            goes_on
        });
    });
}

/// Passes bytes on until one side ends or `goes_on` says no; then both ends are closed.
fn pump(mut from: &TcpStream, mut to: &TcpStream, mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !goes_on(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn holds(bytes: &[u8], sign: &[u8]) -> bool {
    bytes.windows(sign.len()).any(|window| window == sign)
}
