//! TLS: one version on each side, a certificate made for each server, and a client that believes any.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme, SupportedProtocolVersion};

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Version {
    /// TLS 1.2.
    #[value(name = "1.2")]
    Tls12,
    /// TLS 1.3.
    #[value(name = "1.3")]
    Tls13,
}

static ONLY_12: [&SupportedProtocolVersion; 1] = [&TLS12];
static ONLY_13: [&SupportedProtocolVersion; 1] = [&TLS13];

impl Version {
    fn only(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Self::Tls12 => &ONLY_12,
            Self::Tls13 => &ONLY_13,
        }
    }
}

/// A certificate that its own key signed (ECDSA, P-256), valid for any test: in PEM and DER.
pub struct Identity {
    /// The certificate.
    pub certificate: rcgen::Certificate,
    /// Its key.
    pub key: rcgen::KeyPair,
}

impl Identity {
    /// A new one, of a key that nobody has seen.
    pub fn new() -> Result<Self, rcgen::Error> {
        let made = rcgen::generate_simple_self_signed(["nicbench.test".to_owned()])?;
        Ok(Self { certificate: made.cert, key: made.signing_key })
    }
}

/// A server of either version, without tickets: every handshake is a whole one.
pub fn server(identity: &Identity) -> Result<Arc<ServerConfig>, Error> {
    let certificates = vec![identity.certificate.der().clone()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(identity.key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS12, &TLS13])?
        .with_no_client_auth()
        .with_single_cert(certificates, key)?;
    config.send_tls13_tickets = 0;
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    Ok(Arc::new(config))
}

/// A client of this version alone, which resumes nothing.
pub fn client(version: Version) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(version.only())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    config.resumption = rustls::client::Resumption::disabled();
    Ok(Arc::new(config))
}

/// Believes every certificate: a tester measures the server that it is pointed at. Signatures are checked as ever, so
/// that a handshake costs what it costs.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
