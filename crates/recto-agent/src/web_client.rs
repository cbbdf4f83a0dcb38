//! The HTTP client for models and MCP servers.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::RootCertStore;

use crate::Secret;
use crate::secrets::redacted_url;

/// A client for one URL, with TLS by rustls and ring. It does not follow redirects, because the key
/// must not be sent to another host. The error contains no secrets.
pub(crate) fn client<'a>(
    url: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a Secret)>,
    connect: Duration,
) -> Result<Client, String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    if !["http", "https"].contains(&parsed.scheme()) {
        return Err(format!(
            "{:?} is not an http or https URL; use the form https://…",
            redacted_url(url)
        ));
    }
    let failed =
        |error: &dyn std::fmt::Display| format!("the HTTP client could not be created: {error}");
    let provider = rustls::crypto::ring::default_provider();
    let roots = trusted_roots().map_err(|error| failed(&error))?;
    let tls = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(connect)
        .default_headers(header_map(headers)?);
    let builder = if is_loopback(&parsed) { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| failed(&error))
}

/// The trusted certificate authorities: the bundled ones of Mozilla, and those of the system, which may
/// include one of a company or a proxy. The variables `SSL_CERT_FILE` and `SSL_CERT_DIR` replace those of the
/// system.
fn trusted_roots() -> Result<Arc<RootCertStore>, String> {
    /// Read once per process, because there are hundreds.
    static ROOTS: OnceLock<Result<Arc<RootCertStore>, String>> = OnceLock::new();
    let read = || {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let found = rustls_native_certs::load_native_certs();
        let (added, _) = roots.add_parsable_certificates(found.certs);
        let given = ["SSL_CERT_FILE", "SSL_CERT_DIR"]
            .into_iter()
            .find(|variable| std::env::var_os(variable).is_some_and(|value| !value.is_empty()));
        match given {
            Some(variable) if added == 0 => {
                let reason = found.errors.first().map(|error| format!(": {error}"));
                let reason = reason.unwrap_or_default();
                Err(format!(
                    "the variable {variable} names no certificate that can be read{reason}"
                ))
            }
            _ => Ok(Arc::new(roots)),
        }
    };
    ROOTS.get_or_init(read).clone()
}

/// Whether the host of a URL is this machine.
fn is_loopback(url: &reqwest::Url) -> bool {
    url.host_str().is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback())
    })
}

/// Refuses to send secrets over plain HTTP to another machine, because every machine on the way could read
/// them. `has_secrets` refers to the headers. A user name, a password or a key in the URL is also a secret.
pub(crate) fn check_plain_http(
    url: &str,
    has_secrets: bool,
    is_allowed: bool,
) -> Result<(), String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    let is_refused = parsed.scheme() == "http"
        && !is_loopback(&parsed)
        && (has_secrets || has_credentials(&parsed) || has_secret_query(&parsed));
    match is_refused && !is_allowed {
        true => Err(format!(
            "the key would be sent over plain HTTP to {:?}, where others can read it; use https, or \
             allow it (`--allow-http`, `allow_http`)",
            redacted_url(url)
        )),
        false => Ok(()),
    }
}

/// Whether a URL has a password, or a user name: some servers take the key as the name.
fn has_credentials(url: &reqwest::Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// Whether a parameter of the query has the name of a secret, such as `key` or `access_token`.
fn has_secret_query(url: &reqwest::Url) -> bool {
    const NAMES: [&str; 8] =
        ["auth", "code", "credential", "key", "password", "secret", "sig", "token"];
    url.query_pairs().any(|(name, value)| {
        let name = name.to_lowercase();
        let is_secret = NAMES.iter().any(|secret| name.contains(secret));
        is_secret && !value.is_empty()
    })
}

fn header_map<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a Secret)>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let invalid = || format!("the header {name:?} has characters that HTTP does not allow");
        let name = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// An error and its sources as one text.
pub(crate) fn error_chain(error: &dyn std::error::Error) -> String {
    let mut chain = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !chain.contains(&text) {
            chain.push_str(": ");
            chain.push_str(&text);
        }
        cause = next.source();
    }
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_query_is_not_sent_over_plain_http_to_another_machine() {
        for url in ["http://192.0.2.1/v1?key=abc", "http://h/v1?api-version=1&access_token=x"] {
            let refused = check_plain_http(url, false, false).unwrap_err();
            assert!(refused.contains("plain HTTP") && !refused.contains("abc"), "{refused}");
            assert_eq!(check_plain_http(url, false, true), Ok(()));
        }
        for url in [
            "http://192.0.2.1/v1?api-version=2024-10-21",
            "https://192.0.2.1/v1?key=abc",
            "http://127.0.0.1/v1?key=abc",
        ] {
            assert_eq!(check_plain_http(url, false, false), Ok(()), "{url}");
        }
    }
}
