//! A peer that writes its own bytes, in either role.

use std::future::IntoFuture as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use weida::Identity;

use crate::world::soon;

/// HELLO of a default peer. [wire 25.1 G2]
const HELLO: &[u8] = &[
    0x57, 0x00, 0x10, 0xA5, 0x00, 0x81, 0x00, 0x01, 0x19, 0x40, 0x00, 0x02, 0x19, 0x08, 0x00, 0x03,
    0x80, 0x04, 0x80,
];

/// A raw peer with a live connection.
pub(crate) struct Raw {
    pub(crate) connection: quinn::Connection,
    _endpoint: quinn::Endpoint,
}

impl Raw {
    /// Dials `server` and says HELLO.
    pub(crate) async fn dial(server: SocketAddr) -> Self {
        Self::dial_with(server, quinn::TransportConfig::default(), HELLO).await
    }

    pub(crate) async fn dial_with(
        server: SocketAddr,
        transport: quinn::TransportConfig,
        hello: &[u8],
    ) -> Self {
        let raw = Self::connect(server, transport).await;
        raw.say(hello).await;
        assert_eq!(raw.heard().await, HELLO);
        raw
    }

    async fn connect(server: SocketAddr, transport: quinn::TransportConfig) -> Self {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"weida/0".to_vec()];
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let dialling = endpoint.connect_with(config, server, "localhost").unwrap();
        Self {
            connection: soon(dialling).await.unwrap(),
            _endpoint: endpoint,
        }
    }

    /// Dials without reading the server's HELLO, so that its only stream credit
    /// stays used up until [`Raw::recover`].
    pub(crate) async fn stalled(server: SocketAddr, transport: quinn::TransportConfig) -> Self {
        let raw = Self::connect(server, transport).await;
        raw.say(HELLO).await;
        raw
    }

    /// Grants stream credit again; the server's HELLO counts as read.
    pub(crate) fn recover(&self) {
        self.connection
            .set_max_concurrent_uni_streams(4096u32.into());
    }

    /// Writes `bytes` on a one-way stream and finishes it.
    pub(crate) async fn say(&self, bytes: &[u8]) {
        let mut stream = self.connection.open_uni().await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.finish().unwrap();
    }

    pub(crate) async fn subscribe(&self, path: &str, filter: &str) {
        self.say(&frame(3, path, filter)).await;
    }

    pub(crate) async fn unsubscribe(&self, path: &str, filter: &str) {
        self.say(&frame(4, path, filter)).await;
    }

    /// Everything on the next one-way stream.
    pub(crate) async fn heard(&self) -> Vec<u8> {
        let mut stream = soon(self.connection.accept_uni()).await.unwrap();
        soon(stream.read_to_end(64 << 20)).await.unwrap()
    }

    /// Fails if the other side opens anything within a moment, or closes.
    pub(crate) async fn hears_nothing(&self) {
        let moment = std::time::Duration::from_millis(150);
        tokio::select! {
            stream = self.connection.accept_uni() => panic!("{stream:?}"),
            stream = self.connection.accept_bi() => panic!("{stream:?}"),
            () = tokio::time::sleep(moment) => {}
        }
        self.is_open();
    }

    pub(crate) fn is_open(&self) {
        let closed = self.connection.close_reason();
        assert!(closed.is_none(), "{closed:?}");
    }

    /// The code and sentence the other side closes with.
    pub(crate) async fn closed(&self) -> (u64, String) {
        match soon(self.connection.closed()).await {
            quinn::ConnectionError::ApplicationClosed(close) => (
                close.error_code.into_inner(),
                String::from_utf8(close.reason.to_vec()).unwrap(),
            ),
            other => panic!("{other}"),
        }
    }
}

/// A raw server: accepts one connection and says HELLO.
pub(crate) struct RawServer {
    pub(crate) endpoint: quinn::Endpoint,
    pub(crate) identity: Identity,
}

impl RawServer {
    pub(crate) fn bind() -> Self {
        let identity = Identity::generate().unwrap();
        let pem = identity.to_pem().unwrap();
        let chain = CertificateDer::pem_slice_iter(pem.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        tls.alpn_protocols = vec![b"weida/0".to_vec()];
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let local = (Ipv4Addr::LOCALHOST, 0).into();
        let endpoint = quinn::Endpoint::server(config, local).unwrap();
        Self { endpoint, identity }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let key = self.identity.fingerprint().unwrap();
        let addr = self.endpoint.local_addr().unwrap();
        format!("weida://{key}@{addr}{path}")
    }

    /// The next connection, after HELLO both ways.
    pub(crate) async fn accept(&self) -> Raw {
        let incoming = soon(self.endpoint.accept()).await.unwrap();
        let raw = Raw {
            connection: soon(incoming.into_future()).await.unwrap(),
            _endpoint: self.endpoint.clone(),
        };
        raw.say(HELLO).await;
        assert_eq!(raw.heard().await, HELLO);
        raw
    }
}

/// SUBSCRIBE (3) or UNSUBSCRIBE (4) of `filter` at `path`. [wire 8.4]
pub(crate) fn frame(kind: u8, path: &str, filter: &str) -> Vec<u8> {
    let mut header = vec![0xA2, 0x00];
    text(&mut header, path);
    header.push(0x01);
    text(&mut header, filter);
    head(kind, &header)
}

/// A frame head around `header`.
pub(crate) fn head(kind: u8, header: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x57, kind];
    match header.len() {
        short @ 0..64 => frame.push(u8::try_from(short).unwrap()),
        long => frame.extend((0x4000 | u16::try_from(long).unwrap()).to_be_bytes()),
    }
    frame.extend_from_slice(header);
    frame
}

/// A CBOR text string.
pub(crate) fn text(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        short @ 0..24 => out.push(0x60 | u8::try_from(short).unwrap()),
        byte @ 24..256 => out.extend([0x78, u8::try_from(byte).unwrap()]),
        long => {
            out.push(0x79);
            out.extend(u16::try_from(long).unwrap().to_be_bytes());
        }
    }
    out.extend_from_slice(text.as_bytes());
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts every server; a raw peer checks nothing.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
