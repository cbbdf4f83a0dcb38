//! TLS settings for PostgreSQL connections.
//!
//! | `sslmode` in the address | meaning |
//! |---|---|
//! | `disable` | no encryption |
//! | `require` | encryption; the server's certificate is verified only if `sslrootcert` is given |
//! | `verify-full` | encryption, and the server needs a valid certificate for its name |
//! | none | `disable` on this machine, `verify-full` over a network |
//!
//! `sslrootcert` names a PEM file with root certificates. Default: the roots that browsers trust.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::Error;

const OPENING: &str = "opening the store";

/// The TLS parameters of an address.
#[derive(Default)]
pub(super) struct Encryption {
    /// `sslmode`.
    pub(super) mode: Option<String>,
    /// `sslrootcert`.
    pub(super) roots: Option<String>,
}

impl Encryption {
    /// Configures the driver. Returns `None` for connections without encryption.
    pub(super) fn prepare(self, config: &mut Config) -> Result<Option<MakeRustlsConnect>, Error> {
        let trusts_all = match self.mode.as_deref() {
            Some("disable") => None,
            None if is_local(config) => None,
            Some("require") => Some(self.roots.is_none()),
            None | Some("verify-full") => Some(false),
            Some(_) => {
                let reason = "sslmode must be disable, require or verify-full".to_owned();
                return Err(Error::InvalidParameter { reason });
            }
        };
        let Some(trusts_all) = trusts_all else {
            config.ssl_mode(SslMode::Disable);
            return Ok(None);
        };
        config.ssl_mode(SslMode::Require);
        let provider = Arc::new(ring::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match trusts_all {
            true => Arc::new(AnyCertificate(provider.clone())),
            false => {
                let roots = Arc::new(self.roots()?);
                let verifier = WebPkiServerVerifier::builder_with_provider(roots, provider.clone());
                let no_roots = |_| Error::failed(OPENING, "sslrootcert holds no certificate");
                verifier.build().map_err(no_roots)?
            }
        };
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring knows the versions of TLS")
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Some(MakeRustlsConnect::new(client)))
    }

    fn roots(&self) -> Result<RootCertStore, Error> {
        let Some(path) = &self.roots else {
            return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
        };
        let unreadable =
            || Error::failed(OPENING, format!("the certificates in {path} cannot be read"));
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_file_iter(path).map_err(|_| unreadable())? {
            let certificate = certificate.map_err(|_| unreadable())?;
            roots.add(certificate).map_err(|_| unreadable())?;
        }
        Ok(roots)
    }
}

/// Whether all hosts of the address are on this machine.
fn is_local(config: &Config) -> bool {
    let names = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    names && config.get_hostaddrs().iter().all(|ip| ip.is_loopback())
}

/// Accepts every certificate, but verifies that the server has its private key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::PostgresOptions;
    use super::super::parameters::Parameters;
    use super::*;

    fn mode(address: &str) -> Result<(SslMode, bool), Error> {
        let parameters = Parameters::read(address, PostgresOptions::default())?;
        let mut config: Config = parameters.address.parse().unwrap();
        let tls = parameters.encryption.prepare(&mut config)?;
        Ok((config.get_ssl_mode(), tls.is_some()))
    }

    #[test]
    fn nothing_goes_over_a_network_in_the_clear_unless_the_address_says_so() {
        let (clear, encrypted) = ((SslMode::Disable, false), (SslMode::Require, true));
        for (address, expected) in [
            ("postgres://localhost/a", clear),
            ("postgres://127.0.0.1/a?connect_timeout=3", clear),
            ("postgres://[::1]/a", clear),
            ("postgres://localhost/a?sslmode=require", encrypted),
            ("postgres://db.example/a", encrypted),
            ("postgres://db.example/a?connect_timeout=3&sslmode=verify-full", encrypted),
            ("postgres://db.example/a?sslmode=require", encrypted),
            ("postgres://localhost,db.example/a", encrypted),
            ("postgres://localhost/a?hostaddr=10.0.0.1", encrypted),
            ("postgres://db.example/a?sslmode=disable", clear),
        ] {
            assert_eq!(mode(address), Ok(expected), "{address}");
        }
        for sslmode in ["prefer", "allow", "verify-ca", "", "VERIFY-FULL"] {
            assert!(mode(&format!("postgres://db.example/a?sslmode={sslmode}")).is_err());
        }
        let missing = mode("postgres://db.example/a?sslrootcert=%2Fno%20where.pem").unwrap_err();
        assert!(missing.to_string().contains("/no where.pem cannot be read"), "{missing}");
    }
}
