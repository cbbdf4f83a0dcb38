//! A PostgreSQL server on loopback, in its own directory, with default durability.
//!
//! A shell script runs the server and reads commands from a pipe. Only this process has the other end of
//! the pipe. When this process ends, even by a signal, the pipe closes, and the script stops the server and
//! removes the directory. Tests therefore need no cleanup.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::programs::Programs;

/// A running PostgreSQL server.
#[derive(Debug)]
pub struct PostgresServer {
    programs: Programs,
    folder: PathBuf,
    port: u16,
    databases: AtomicU32,
    script: Mutex<ServerScript>,
}

/// The script that runs the server, and the pipe that keeps it running.
#[derive(Debug)]
pub(crate) struct ServerScript {
    process: Child,
    commands: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
}

impl PostgresServer {
    /// The server that all tests of a process share.
    pub fn shared() -> &'static PostgresServer {
        static SHARED: OnceLock<PostgresServer> = OnceLock::new();
        SHARED.get_or_init(PostgresServer::start)
    }

    /// A server for a test that kills it or reads its files.
    pub fn start() -> PostgresServer {
        PostgresServer::start_with(None)
    }

    /// A server that also accepts TLS connections, with a self-signed
    /// [`certificate`](PostgresServer::certificate) for these names.
    pub fn start_encrypted(names: &[&str]) -> PostgresServer {
        PostgresServer::start_with(Some(names))
    }

    fn start_with(names: Option<&[&str]>) -> PostgresServer {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("recto-postgres-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let programs = Programs::find();
        make_folder(&folder, &programs);
        initialise(&folder, &programs);
        let port = free_port();
        if let Some(names) = names {
            write_certificate(&folder, &programs, names);
        }
        let script = Mutex::new(ServerScript::new(&programs, &folder, port, names.is_some()));
        let server =
            PostgresServer { programs, folder, port, databases: AtomicU32::new(0), script };
        server.wait_until_ready();
        server
    }

    /// Creates an empty database and returns its address.
    pub fn database(&self) -> String {
        let name = format!("test{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.address(&name)
    }

    /// The address of a database.
    pub fn address(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of a server that was [started](PostgresServer::start_encrypted) with one.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("server.crt")
    }

    /// The directory that holds the databases.
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Runs SQL in a database and returns the output without headings.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.psql(database, sql).output().expect("psql runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{sql}: {stderr}");
        String::from_utf8(output.stdout).expect("psql prints UTF-8").trim().to_owned()
    }

    /// Dumps a database as statements for [`load`](PostgresServer::load).
    pub fn dump(&self, database: &str) -> String {
        let mut dump = self.programs.command(self.programs.path("pg_dump"));
        dump.args(["--inserts", "--no-owner", "--no-privileges"]);
        let output =
            dump.args(["--dbname", &self.address(database)]).output().expect("pg_dump runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr}");
        let dump = String::from_utf8(output.stdout).expect("pg_dump prints UTF-8");
        // Without comments, and without commands that only some releases of psql support.
        let is_statement = |line: &&str| !line.starts_with(['\\', '-']) && !line.is_empty();
        dump.lines().filter(is_statement).fold(String::new(), |all, line| all + line + "\n")
    }

    /// Runs the statements of a file in a database.
    pub fn load(&self, database: &str, file: &Path) {
        let mut psql = self.psql(database, "SELECT 1");
        let statements = std::fs::File::open(file).expect("the file exists");
        let output = psql.args(["--file", "-"]).stdin(statements).output().expect("psql runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {stderr}", file.display());
    }

    /// Kills all processes of the server at once, so that it cannot shut down cleanly.
    pub fn kill(&self) {
        self.script().run("kill");
    }

    /// Stops the server as `pg_ctl stop` does, and waits until it has ended.
    pub fn stop(&self) {
        self.script().run("stop");
    }

    /// Restarts the server after [`kill`](PostgresServer::kill) or [`stop`](PostgresServer::stop), and waits
    /// until it accepts connections.
    pub fn restart(&self) {
        self.script().run("start");
        self.wait_until_ready();
    }

    /// Suspends all processes of the server: connections stay open, and the server sends no responses.
    pub fn freeze(&self) {
        self.script().run("freeze");
    }

    /// Resumes the processes after [`freeze`](PostgresServer::freeze).
    pub fn thaw(&self) {
        self.script().run("thaw");
    }

    fn script(&self) -> std::sync::MutexGuard<'_, ServerScript> {
        self.script.lock().expect("no command panics")
    }

    fn psql(&self, database: &str, sql: &str) -> Command {
        let mut psql = self.programs.command(self.programs.path("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"]);
        psql.args(["--set", "ON_ERROR_STOP=1", "--dbname", &self.address(database)]);
        psql.args(["--command", sql]).env("PGCONNECT_TIMEOUT", "5").stdin(Stdio::null());
        psql
    }

    fn wait_until_ready(&self) {
        let start = Instant::now();
        loop {
            let output = self.psql("postgres", "SELECT 1").output().expect("psql runs");
            if output.status.success() {
                return;
            }
            if start.elapsed() > Duration::from_secs(30) {
                let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                panic!("PostgreSQL does not accept connections; its log:\n{log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl ServerScript {
    fn new(programs: &Programs, folder: &Path, port: u16, is_encrypted: bool) -> ServerScript {
        let mut script = programs.command("/bin/sh");
        script.args(["-c", include_str!("run_server.sh"), "run_server"]).arg(folder);
        script.arg(programs.path("postgres")).arg("-D").arg(folder.join("data"));
        let encryption = is_encrypted.then(|| {
            let file = |name: &str| folder.join(name).display().to_string();
            [
                "ssl=on".to_owned(),
                format!("ssl_cert_file={}", file("server.crt")),
                format!("ssl_key_file={}", file("server.key")),
            ]
        });
        let name = folder.file_name().expect("it has a name").display();
        let settings = [
            format!("port={port}"),
            format!("cluster_name={name}"),
            "listen_addresses=127.0.0.1".to_owned(),
            format!("unix_socket_directories={}", folder.display()),
            "fsync=on".to_owned(),
            "max_connections=200".to_owned(),
            "max_prepared_transactions=4".to_owned(),
        ];
        for setting in settings.into_iter().chain(encryption.into_iter().flatten()) {
            script.args(["-c", &setting]);
        }
        ServerScript::spawn(script)
    }

    /// Starts the script.
    pub(crate) fn spawn(mut script: Command) -> ServerScript {
        // Its own process group: a signal to the group of the tests must not end the script before it has
        // cleaned up.
        script.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = script.spawn().expect("sh runs");
        let commands = process.stdin.take();
        let replies = BufReader::new(process.stdout.take().expect("standard output is piped"));
        ServerScript { process, commands, replies }
    }

    /// Sends a command and waits until the script has run it.
    fn run(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("the pipe is open until the end");
        writeln!(commands, "{command}").expect("the script reads commands");
        let mut reply = String::new();
        self.replies.read_line(&mut reply).expect("the script replies");
        assert_eq!(reply.trim(), command);
    }
}

impl Drop for ServerScript {
    fn drop(&mut self) {
        drop(self.commands.take());
        let _ = self.process.wait();
    }
}

pub(crate) fn make_folder(folder: &Path, programs: &Programs) {
    std::fs::create_dir(folder).expect("the folder for temporary files is writable");
    if let Some(user) = programs.user() {
        std::os::unix::fs::chown(folder, Some(user.uid), Some(user.gid))
            .expect("root may change the owner of a folder");
    }
}

/// Creates a certificate and its key, readable only by the user of the server.
fn write_certificate(folder: &Path, programs: &Programs, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let certified = rcgen::generate_simple_self_signed(names).expect("the names are valid");
    for (name, text) in [
        ("server.crt", certified.cert.pem()),
        ("server.key", certified.signing_key.serialize_pem()),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("the folder is writable");
        let only_owner = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&path, only_owner).expect("this process owns the file");
        if let Some(user) = programs.user() {
            std::os::unix::fs::chown(&path, Some(user.uid), Some(user.gid))
                .expect("root may change the owner of a file");
        }
    }
}

fn initialise(folder: &Path, programs: &Programs) {
    let mut initdb = programs.command(programs.path("initdb"));
    initdb.arg("--pgdata").arg(folder.join("data"));
    // Any local user may connect; the data of tests needs no protection.
    initdb.args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    let output = initdb.args(["--no-sync", "--data-checksums"]).output().expect("initdb runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub(crate) fn free_port() -> u16 {
    let socket = TcpListener::bind(("127.0.0.1", 0)).expect("loopback has a free port");
    socket.local_addr().expect("a bound socket has an address").port()
}
