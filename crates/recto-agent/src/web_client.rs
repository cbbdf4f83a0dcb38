//! The HTTP client that models and servers of tools are reached with.

use std::time::Duration;

use reqwest::Client;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::Secret;
use crate::secrets::shown;

/// A client for one URL: encrypted with rustls and ring, and it follows nobody elsewhere, since a key
/// must not go there. An error says what is wrong, without any secret.
pub(crate) fn client<'a>(
    url: &str,
    headers: impl IntoIterator<Item = (&'a str, &'a Secret)>,
    connect: Duration,
) -> Result<Client, String> {
    let parsed = reqwest::Url::parse(url).map_err(|error| error.to_string())?;
    if !["http", "https"].contains(&parsed.scheme()) {
        return Err(format!("{:?} is no URL of the web; write https://…", shown(url)));
    }
    let failed = |error: &dyn std::fmt::Display| format!("no HTTP client: {error}");
    let provider = rustls::crypto::ring::default_provider();
    let roots = rustls::RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
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
    let is_here = parsed.host_str().is_some_and(|host| {
        host == "localhost"
            || host
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback())
    });
    let builder = if is_here { builder.no_proxy() } else { builder };
    builder.build().map_err(|error| failed(&error))
}

fn header_map<'a>(
    headers: impl IntoIterator<Item = (&'a str, &'a Secret)>,
) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || format!("the header {name:?} cannot be sent; look at its characters");
        let name = HeaderName::try_from(name).map_err(|_| wrong())?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|_| wrong())?;
        value.set_sensitive(true);
        map.insert(name, value);
    }
    Ok(map)
}

/// An error with its causes: the outermost alone seldom says what happened.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !told.contains(&text) {
            told.push_str(": ");
            told.push_str(&text);
        }
        cause = next.source();
    }
    told
}
