//! PgBouncer on loopback, in front of a [`PostgresServer`](crate::PostgresServer).

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::postgres::{PostgresServer, ServerScript, free_port, make_folder};
use crate::programs::Programs;

/// A running PgBouncer with `pool_mode = session`. It ends with the test process, even if the process is
/// killed.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    _script: ServerScript,
}

impl PgBouncer {
    /// Starts PgBouncer for all databases of a server.
    pub fn start(server: &PostgresServer) -> PgBouncer {
        let programs = Programs::find();
        let folder = folder();
        make_folder(&folder, &programs);
        let port = free_port();
        let configuration = folder.join("pgbouncer.ini");
        std::fs::write(&configuration, settings(server.port(), port)).expect("it is writable");
        let mut command = programs.command("/bin/sh");
        command.args(["-c", include_str!("run_server.sh"), "run_server"]).arg(&folder);
        command.arg(pgbouncer()).arg(&configuration);
        let bouncer = PgBouncer { port, _script: ServerScript::spawn(command) };
        bouncer.wait_until_ready(&folder);
        bouncer
    }

    /// The address of a database of the server, through PgBouncer.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    fn wait_until_ready(&self, folder: &std::path::Path) {
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if start.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                panic!("PgBouncer does not accept connections; its log:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn folder() -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("recto-pgbouncer-{}-{number}", std::process::id()))
}

/// The path of the program `pgbouncer`. Packages install it in `/usr/sbin`, which is not on every user's
/// `PATH`.
fn pgbouncer() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut programs = folders.map(|folder| folder.join("pgbouncer"));
    programs.find(|program| program.is_file()).expect(
        "PgBouncer is not installed; `cargo xtask test` installs it (or: apt-get install pgbouncer)",
    )
}

/// Default settings, with limits that are high enough for parallel tests. An idle connection to the server
/// is closed after a second, because each test has its own database.
fn settings(server: u16, port: u16) -> String {
    format!(
        "[databases]\n\
         * = host=127.0.0.1 port={server} user=postgres\n\
         [pgbouncer]\n\
         listen_addr = 127.0.0.1\n\
         listen_port = {port}\n\
         unix_socket_dir =\n\
         auth_type = any\n\
         pool_mode = session\n\
         max_client_conn = 500\n\
         server_idle_timeout = 1\n"
    )
}
