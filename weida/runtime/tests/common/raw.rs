//! A raw QUIC peer that writes whatever bytes a test wants, in both roles.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use weida::Identity;

/// HELLO exactly as the published release sends it (wire G2).
pub(crate) const HELLO: &[u8] = &[
    0x57, 0x00, 0x10, 0xA5, 0x00, 0x81, 0x00, 0x01, 0x19, 0x40, 0x00, 0x02, 0x19, 0x08, 0x00, 0x03,
    0x80, 0x04, 0x80,
];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// An application code as quinn takes it.
pub(crate) fn code(code: u64) -> quinn::VarInt {
    quinn::VarInt::from_u64(code).unwrap()
}

/// Accepts any server: a raw test client has no trust to test.
#[derive(Debug)]
struct AnyServer(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyServer {
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
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A raw client connection, without HELLO sent yet.
pub(crate) struct RawClient {
    pub(crate) connection: Connection,
    _endpoint: Endpoint,
}

impl RawClient {
    pub(crate) async fn dial(addr: SocketAddr) -> Result<Self, ConnectionError> {
        Self::dial_with(addr, b"weida/0").await
    }

    pub(crate) async fn dial_with(addr: SocketAddr, alpn: &[u8]) -> Result<Self, ConnectionError> {
        let mut tls = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider())))
            .with_no_client_auth();
        tls.alpn_protocols = vec![alpn.to_vec()];
        let config = QuicClientConfig::try_from(tls).unwrap();
        let mut endpoint = Endpoint::client(super::loopback()).unwrap();
        endpoint.set_default_client_config(quinn::ClientConfig::new(Arc::new(config)));
        let connection = endpoint.connect(addr, "localhost").unwrap().await?;
        Ok(Self {
            connection,
            _endpoint: endpoint,
        })
    }

    /// Dialled, with HELLO sent and the server's HELLO read.
    pub(crate) async fn greeted(addr: SocketAddr) -> Self {
        let raw = super::soon(Self::dial(addr)).await.unwrap();
        greet(&raw.connection).await;
        raw
    }
}

/// Sends HELLO and reads the other side's.
pub(crate) async fn greet(connection: &Connection) {
    send_uni(connection, HELLO).await;
    let mut theirs = super::soon(connection.accept_uni()).await.unwrap();
    let hello = super::soon(theirs.read_to_end(1024)).await.unwrap();
    assert_eq!(&hello[..2], &[0x57, 0x00]);
}

/// One one-way stream with exactly these bytes and FIN.
pub(crate) async fn send_uni(connection: &Connection, bytes: &[u8]) -> SendStream {
    let mut stream = open_uni(connection, bytes).await;
    // The peer may have stopped it already, which some tests want.
    drop(stream.finish());
    stream
}

/// One one-way stream with these bytes, held open.
pub(crate) async fn open_uni(connection: &Connection, bytes: &[u8]) -> SendStream {
    let mut stream = super::soon(connection.open_uni()).await.unwrap();
    drop(stream.write_all(bytes).await);
    stream
}

/// One exchange whose request half has exactly these bytes and FIN.
pub(crate) async fn send_bi(connection: &Connection, bytes: &[u8]) -> (SendStream, RecvStream) {
    let (mut send, recv) = super::soon(connection.open_bi()).await.unwrap();
    drop(send.write_all(bytes).await);
    drop(send.finish());
    (send, recv)
}

/// The application code the connection is closed with.
pub(crate) async fn close_code(connection: &Connection) -> u64 {
    match super::soon(connection.closed()).await {
        ConnectionError::ApplicationClosed(close) => close.error_code.into_inner(),
        other => panic!("not an application close: {other}"),
    }
}

/// The code a send stream is stopped with; `None` when it was received whole.
pub(crate) async fn stop_code(stream: &SendStream) -> Option<u64> {
    super::soon(stream.stopped())
        .await
        .unwrap()
        .map(quinn::VarInt::into_inner)
}

/// Whether a request round trip still works: the connection lives.
pub(crate) async fn alive(connection: &Connection, echo_path: &str) -> bool {
    let mut request = vec![0x57, 1, 3 + echo_path.len() as u8, 0xA1, 0x00];
    request.push(0x60 | echo_path.len() as u8);
    request.extend_from_slice(echo_path.as_bytes());
    request.extend_from_slice(b"ping");
    let (_send, mut recv) = send_bi(connection, &request).await;
    super::soon(recv.read_to_end(1024)).await.is_ok()
}

/// A raw server endpoint with a fresh identity.
pub(crate) struct RawServer {
    pub(crate) endpoint: Endpoint,
    pub(crate) url: String,
}

impl RawServer {
    pub(crate) fn start(path: &str) -> Self {
        Self::start_with(path, quinn::EndpointConfig::default())
    }

    pub(crate) fn start_with(path: &str, quic: quinn::EndpointConfig) -> Self {
        let identity = Identity::generate().unwrap();
        let pem = identity.to_pem().unwrap();
        let chain: Vec<_> = CertificateDer::pem_slice_iter(pem.as_bytes())
            .map(Result::unwrap)
            .collect();
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).unwrap();
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        tls.alpn_protocols = vec![b"weida/0".to_vec()];
        let config = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(config));
        let socket = std::net::UdpSocket::bind(super::loopback()).unwrap();
        let runtime = quinn::default_runtime().unwrap();
        let endpoint = Endpoint::new(quic, Some(config), socket, runtime).unwrap();
        let addr = endpoint.local_addr().unwrap();
        let fingerprint = identity.fingerprint().unwrap();
        Self {
            endpoint,
            url: format!("weida://{fingerprint}@{addr}{path}"),
        }
    }

    /// The same address reached at `via`, for a relay in between.
    pub(crate) fn url_via(&self, via: SocketAddr) -> String {
        let here = self.endpoint.local_addr().unwrap().to_string();
        self.url.replace(&here, &via.to_string())
    }

    /// The next connection, HELLO not exchanged.
    pub(crate) async fn accept(&self) -> Connection {
        let incoming = super::soon(self.endpoint.accept()).await.unwrap();
        super::soon(incoming.accept().unwrap()).await.unwrap()
    }

    /// The next connection, HELLO exchanged.
    pub(crate) async fn greeted(&self) -> Connection {
        let connection = self.accept().await;
        greet(&connection).await;
        connection
    }
}
