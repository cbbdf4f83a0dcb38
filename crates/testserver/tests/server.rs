//! Tests of the servers.
#![cfg(unix)]

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use testserver::PostgresServer;

#[test]
fn committed_rows_survive_a_kill() {
    let server = PostgresServer::start();
    server.database();
    server.sql("test0", "CREATE TABLE kept (number bigint); INSERT INTO kept VALUES (7)");
    server.kill();
    server.restart();
    assert_eq!(server.sql("test0", "SELECT number FROM kept"), "7");
}

#[test]
fn a_server_that_is_dropped_leaves_no_files() {
    let server = PostgresServer::start();
    let data = server.data();
    assert!(data.exists());
    drop(server);
    assert!(!data.exists());
}

/// Starts itself as a child process, which writes the path of its server to a file and is then killed.
#[test]
fn a_server_ends_with_its_process_even_if_that_is_killed() {
    const CHILD: &str = "RECTO_TESTSERVER_CHILD";
    if let Some(file) = std::env::var_os(CHILD) {
        let server = PostgresServer::start();
        std::fs::write(file, server.data().to_str().unwrap()).unwrap();
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let file = std::env::temp_dir().join(format!("recto-testserver-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_server_ends_with_its_process_even_if_that_is_killed"])
        .env(CHILD, &file)
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let data = wait_for(|| std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty()));
    let pid_file = std::path::Path::new(&data).join("postmaster.pid");
    let pid = std::fs::read_to_string(pid_file).unwrap().lines().next().unwrap().to_owned();
    // Kills the whole process group, as a terminal or a time limit does.
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().unwrap().success());
    child.wait().unwrap();
    std::fs::remove_file(&file).unwrap();
    wait_for(|| (!std::path::Path::new(&data).exists()).then_some(()));
    let alive = Command::new("kill").args(["-0", &pid]).stderr(Stdio::null()).status().unwrap();
    assert!(!alive.success());
}

fn wait_for<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(
            start.elapsed() < Duration::from_secs(30),
            "the condition did not become true in 30 seconds"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}
