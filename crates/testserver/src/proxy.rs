//! A TCP proxy on loopback that cuts connections at a point that the test chooses.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// A proxy that forwards bytes in both directions.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The bytes from a client at which its connection is cut, and the point of the cut.
    plan: Mutex<Option<(Vec<u8>, Cut)>>,
    cuts: AtomicU32,
    refuses: AtomicBool,
    is_frozen: AtomicBool,
}

/// The point at which a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the server receives the bytes.
    BeforeTheServer,
    /// After the server has replied, before the client receives the reply.
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

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Cuts the connection on which a client next sends these bytes. Other connections continue.
    pub fn cut_at(&self, bytes: &[u8], cut: Cut) {
        *self.state.plan.lock().expect("no code panics while it holds this lock") =
            Some((bytes.to_vec(), cut));
    }

    /// Sets whether new connections are refused.
    pub fn refuse(&self, refuse: bool) {
        self.state.refuses.store(refuse, Ordering::SeqCst);
    }

    /// Sets whether bytes are held back: connections stay open, and nothing arrives.
    pub fn freeze(&self, freeze: bool) {
        self.state.is_frozen.store(freeze, Ordering::SeqCst);
    }

    /// Number of connections that were cut.
    pub fn cuts(&self) -> u32 {
        self.state.cuts.load(Ordering::SeqCst)
    }
}

impl State {
    fn wait_while_frozen(&self) {
        while self.is_frozen.load(Ordering::SeqCst) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }
}

fn connect(client: TcpStream, server: TcpStream, state: &Arc<State>) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a socket can be shared");
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    // Set before the bytes are forwarded to the server: the connection is cut when the server replies.
    let cuts_reply = Arc::new(AtomicBool::new(false));
    let to_server = (clone(&client), clone(&server), Arc::clone(&cuts_reply), Arc::clone(state));
    std::thread::spawn(move || {
        let (from, to, cuts_reply, state) = to_server;
        forward(&from, &to, |bytes| {
            state.wait_while_frozen();
            let mut plan = state.plan.lock().expect("no code panics while it holds this lock");
            let cut_here =
                plan.as_ref().filter(|(pattern, _)| contains(bytes, pattern)).map(|(_, cut)| *cut);
            if cut_here.is_some() {
                *plan = None;
            }
            match cut_here {
                Some(Cut::BeforeTheServer) => {
                    state.cuts.fetch_add(1, Ordering::SeqCst);
                    return false;
                }
                Some(Cut::BeforeTheClient) => cuts_reply.store(true, Ordering::SeqCst),
                None => {}
            }
            true
        });
    });
    let state = Arc::clone(state);
    std::thread::spawn(move || {
        forward(&server, &client, |_| {
            state.wait_while_frozen();
            let continues = !cuts_reply.load(Ordering::SeqCst);
            if !continues {
                state.cuts.fetch_add(1, Ordering::SeqCst);
            }
            continues
        });
    });
}

/// Forwards bytes until one side closes or `continues` returns false; then closes both ends.
fn forward(mut from: &TcpStream, mut to: &TcpStream, mut continues: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if !continues(&buffer[..read]) || to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

fn contains(bytes: &[u8], pattern: &[u8]) -> bool {
    bytes.windows(pattern.len()).any(|window| window == pattern)
}
