//! HTTPS endpoints whose certificate authority is not a public one.
//!
//! The trusted certificate authorities are read once per process, so each case runs in a child process: this
//! test binary with its own environment.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bytes::Bytes;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use recto_agent::{CallContext, Endpoint, HttpModel, Model as _, Target};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

#[test]
fn an_endpoint_of_a_private_certificate_authority_needs_its_root_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let (root, server) = certificate_authority();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (trusted, other) = (file("root.pem", &root), file("other.pem", &certificate_authority().0));
    let empty = file("empty.pem", "");
    let url = serve(server);

    assert_eq!(call(&url, Some(&trusted)), "hello");
    for untrusted in [None, Some(&*other)] {
        let error = call(&url, untrusted);
        assert!(error.contains("certificate"), "{untrusted:?}: {error}");
        assert!(!error.contains("SSL_CERT_FILE"), "{untrusted:?}: {error}");
    }
    for unreadable in [&empty, Path::new("/nonexistent.pem")] {
        let error = call(&url, Some(unreadable));
        assert!(error.contains("SSL_CERT_FILE names no certificate"), "{unreadable:?}: {error}");
    }
}

/// The reply to a call in a child process, or its error.
fn call(url: &str, roots: Option<&Path>) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "certificates::calls_an_endpoint";
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env("RECTO_CHILD_URL", url).env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR");
    command.envs(roots.map(|roots| ("SSL_CERT_FILE", roots)));
    let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let result = output.lines().find_map(|line| line.strip_prefix(RESULT));
    result.unwrap_or_else(|| panic!("{output}")).to_owned()
}

/// Begins the line with the result of a child process.
const RESULT: &str = "result ";

#[tokio::test]
#[ignore = "is started by another test"]
#[allow(clippy::print_stdout, reason = "the parent reads it")]
async fn calls_an_endpoint() {
    let Ok(url) = std::env::var("RECTO_CHILD_URL") else { return };
    let mut endpoint = Endpoint::new(url, "m-1").key("sk-secret").without_streaming();
    endpoint.retry.max_attempts = 1;
    let result = match HttpModel::new(Target::OpenAiChat, endpoint) {
        Ok(model) => match model.call(Bytes::new(), &CallContext::default()).await {
            Ok(reply) => reply.text(),
            Err(error) => error.to_string(),
        },
        Err(error) => error.to_string(),
    };
    // Starts with a line end, because the test harness leaves its last line open.
    println!("\n{RESULT}{}", result.replace('\n', " "));
}

/// A new certificate authority: its root certificate, and a server with a certificate for loopback.
fn certificate_authority() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let root = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config =
        ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
    (root, Arc::new(config))
}

/// Starts a server that ends with the process. It answers one request per connection.
fn serve(config: Arc<ServerConfig>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            // A client that does not trust the certificate ends the connection.
            let _ = answer(StreamOwned::new(connection, client));
        }
    });
    format!("https://127.0.0.1:{port}/v1")
}

fn answer(mut stream: StreamOwned<ServerConnection, std::net::TcpStream>) -> std::io::Result<()> {
    // The body of the request is empty.
    let (mut request, mut byte) = (Vec::new(), [0]);
    while !request.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(byte[0]);
    }
    let body = r#"{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}]}"#;
    let len = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\
         connection: close\r\n\r\n{body}"
    )?;
    stream.conn.send_close_notify();
    stream.flush()
}
