//! A peer that writes its own bytes, as the dialler or as the server.
//!
//! It is quinn and rustls with nothing of weida in it: every frame is written
//! by hand, so that it can be wrong.

use std::future::{Future, IntoFuture as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ConnectionError, ReadError, RecvStream, SendStream, TransportConfig, VarInt};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};

/// Anything that takes longer is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(8);

/// HELLO of a default peer. [wire 26.1]
pub(crate) const HELLO: &[u8] = &[
    0x57, 0x00, 0x10, 0xA5, 0x00, 0x81, 0x00, 0x01, 0x19, 0x40, 0x00, 0x02, 0x19, 0x08, 0x00, 0x03,
    0x80, 0x04, 0x80,
];

/// Fails the test instead of hanging it.
pub(crate) async fn soon<F: Future>(what: F) -> F::Output {
    let what = tokio::time::timeout(PATIENCE, what).await;
    what.expect("took too long")
}

/// Waits until `condition` holds.
pub(crate) async fn eventually(mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition() {
        let left = tokio::time::Instant::now() < deadline;
        assert!(left, "the condition never held");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

pub(crate) fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// A frame head around `header`, with the shortest length.
pub(crate) fn frame(kind: u8, header: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x57, kind];
    match header.len() {
        short @ 0..0x40 => frame.push(u8::try_from(short).unwrap()),
        middle @ 0x40..0x4000 => {
            frame.extend((0x4000 | u16::try_from(middle).unwrap()).to_be_bytes());
        }
        long => frame.extend((0x8000_0000 | u32::try_from(long).unwrap()).to_be_bytes()),
    }
    frame.extend_from_slice(header);
    frame
}

/// A CBOR text string.
pub(crate) fn text(text: &str) -> Vec<u8> {
    let mut out = match text.len() {
        short @ 0..24 => vec![0x60 | u8::try_from(short).unwrap()],
        byte @ 24..256 => vec![0x78, u8::try_from(byte).unwrap()],
        long => {
            let [high, low] = u16::try_from(long).unwrap().to_be_bytes();
            vec![0x79, high, low]
        }
    };
    out.extend_from_slice(text.as_bytes());
    out
}

/// DATA to `path` with no other key.
pub(crate) fn data(path: &str) -> Vec<u8> {
    data_with(path, 0, &[])
}

/// DATA to `path`; `more` is `count` more keys with their values, ascending.
pub(crate) fn data_with(path: &str, count: u8, more: &[u8]) -> Vec<u8> {
    let mut header = vec![0xA1 + count, 0x00];
    header.extend(text(path));
    header.extend_from_slice(more);
    frame(1, &header)
}

/// SUBSCRIBE (3) or UNSUBSCRIBE (4) of `filter` at `path`. [wire 8.4]
pub(crate) fn subscription(kind: u8, path: &str, filter: &str) -> Vec<u8> {
    let mut header = vec![0xA2, 0x00];
    header.extend(text(path));
    header.push(0x01);
    header.extend(text(filter));
    frame(kind, &header)
}

/// ERROR with `code`. [wire 8.3]
pub(crate) fn error(code: u8) -> Vec<u8> {
    frame(2, &[0xA1, 0x00, code])
}

/// A key pair and a self-signed certificate.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) pem: (String, String),
    chain: Vec<CertificateDer<'static>>,
    key: Vec<u8>,
}

impl Key {
    pub(crate) fn generate() -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self {
            pem: (made.cert.pem(), made.signing_key.serialize_pem()),
            chain: vec![made.cert.der().clone()],
            key: made.signing_key.serialize_der(),
        }
    }

    /// The same key, presented with `more` certificates behind its own.
    pub(crate) fn behind(mut self, more: usize) -> Self {
        let leaf = self.chain[0].clone();
        self.chain.extend(std::iter::repeat_n(leaf, more));
        self
    }

    /// The same key, presented with `more` certificates of `bytes` and a bit
    /// each behind its own.
    pub(crate) fn behind_large(mut self, more: usize, bytes: usize) -> Self {
        let mut params = rcgen::CertificateParams::new(["large".to_owned()]).unwrap();
        // An extension nobody knows and nobody has to.
        let oid = [1, 3, 6, 1, 4, 1, 99_999, 1];
        let filler = rcgen::CustomExtension::from_oid_content(&oid, vec![0; bytes]);
        params.custom_extensions.push(filler);
        let signing = rcgen::KeyPair::generate().unwrap();
        let large = params.self_signed(&signing).unwrap();
        let large = large.der().clone();
        self.chain.extend(std::iter::repeat_n(large, more));
        self
    }

    /// The fingerprint as an address writes it.
    pub(crate) fn fingerprint(&self) -> weida::Fingerprint {
        let identity = weida::Identity::from_pem(self.pem.0.clone(), self.pem.1.clone());
        identity.fingerprint().unwrap()
    }

    fn der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }
}

/// How a raw peer dials.
pub(crate) struct Dial {
    pub(crate) alpn: &'static [u8],
    pub(crate) key: Option<Key>,
    pub(crate) transport: TransportConfig,
    /// The socket to dial from; one of its own if there is none.
    pub(crate) from: Option<quinn::Endpoint>,
}

impl Default for Dial {
    fn default() -> Self {
        let mut transport = TransportConfig::default();
        transport.max_concurrent_uni_streams(VarInt::from_u32(4096));
        Self {
            alpn: b"weida/0",
            key: None,
            transport,
            from: None,
        }
    }
}

impl Dial {
    pub(crate) fn tls(&self) -> rustls::ClientConfig {
        let builder = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyServer(provider())));
        let mut tls = match &self.key {
            None => builder.with_no_client_auth(),
            Some(key) => builder
                .with_client_auth_cert(key.chain.clone(), key.der())
                .unwrap(),
        };
        tls.alpn_protocols = vec![self.alpn.to_vec()];
        tls
    }

    /// The QUIC handshake with `server`, and nothing after it.
    pub(crate) async fn dial(self, server: SocketAddr) -> Result<Raw, ConnectionError> {
        let tls = self.tls();
        self.dial_tls(tls, server).await
    }

    pub(crate) async fn dial_tls(
        self,
        tls: rustls::ClientConfig,
        server: SocketAddr,
    ) -> Result<Raw, ConnectionError> {
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(self.transport));
        let endpoint = self.from.unwrap_or_else(socket);
        let dialling = endpoint.connect_with(config, server, "localhost").unwrap();
        Ok(Raw {
            connection: soon(dialling).await?,
            _endpoint: endpoint,
        })
    }
}

/// A socket to dial from.
pub(crate) fn socket() -> quinn::Endpoint {
    quinn::Endpoint::client(loopback()).unwrap()
}

/// A raw server that dialling endpoints of weida are pointed at.
pub(crate) struct RawServer {
    endpoint: quinn::Endpoint,
    key: Key,
}

impl RawServer {
    pub(crate) fn bind() -> Self {
        Self::bind_with(b"weida/0", |_| {})
    }

    pub(crate) fn bind_with(alpn: &[u8], adjust: impl FnOnce(&mut rustls::ServerConfig)) -> Self {
        let key = Key::generate();
        let mut tls = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(key.chain.clone(), key.der())
            .unwrap();
        tls.alpn_protocols = vec![alpn.to_vec()];
        adjust(&mut tls);
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = quinn::Endpoint::server(config, loopback()).unwrap();
        Self { endpoint, key }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("weida://{}@{}{path}", self.key.fingerprint(), self.addr())
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.endpoint.local_addr().unwrap()
    }

    /// The next connection; nothing is said on it.
    pub(crate) async fn accept(&self) -> Result<Raw, ConnectionError> {
        let incoming = soon(self.endpoint.accept()).await.unwrap();
        Ok(Raw {
            connection: soon(incoming.into_future()).await?,
            _endpoint: self.endpoint.clone(),
        })
    }
}

/// One live connection of a raw peer.
pub(crate) struct Raw {
    pub(crate) connection: quinn::Connection,
    _endpoint: quinn::Endpoint,
}

impl Raw {
    /// Dials `server` and exchanges HELLO.
    pub(crate) async fn dial(server: SocketAddr) -> Self {
        let raw = Dial::default().dial(server).await.unwrap();
        raw.greet().await;
        raw
    }

    pub(crate) async fn greeted(self) -> Self {
        self.greet().await;
        self
    }

    /// HELLO both ways.
    pub(crate) async fn greet(&self) {
        self.say(HELLO).await;
        self.hears_hello().await;
    }

    pub(crate) async fn hears_hello(&self) {
        assert_eq!(self.hears().await, HELLO);
    }

    /// Everything on the next one-way stream.
    pub(crate) async fn hears(&self) -> Vec<u8> {
        let mut stream = soon(self.connection.accept_uni()).await.unwrap();
        soon(stream.read_to_end(64 << 20)).await.unwrap()
    }

    /// Fails if the other side opens anything within a moment, or closes.
    pub(crate) async fn hears_nothing(&self) {
        let moment = Duration::from_millis(100);
        tokio::select! {
            stream = self.connection.accept_uni() => panic!("{stream:?}"),
            stream = self.connection.accept_bi() => panic!("{stream:?}"),
            () = tokio::time::sleep(moment) => {}
        }
    }

    /// Writes `bytes` on a one-way stream and leaves it open.
    ///
    /// The other side may close while they are written, so a failure is the
    /// business of whoever looks at the close.
    pub(crate) async fn uni(&self, bytes: &[u8]) -> SendStream {
        let mut stream = soon(self.connection.open_uni()).await.unwrap();
        drop(soon(stream.write_all(bytes)).await);
        stream
    }

    /// Writes `bytes` on a one-way stream and finishes it.
    pub(crate) async fn say(&self, bytes: &[u8]) {
        // Closed under our hands: whoever looks at the close decides.
        if let Ok(mut stream) = soon(self.connection.open_uni()).await {
            drop(soon(stream.write_all(bytes)).await);
            drop(stream.finish());
        }
    }

    /// Opens an exchange with `bytes` and leaves the request half open.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> (SendStream, RecvStream) {
        let (mut send, recv) = soon(self.connection.open_bi()).await.unwrap();
        drop(soon(send.write_all(bytes)).await);
        (send, recv)
    }

    /// A whole request; the bytes of the reply half.
    pub(crate) async fn request(&self, bytes: &[u8]) -> Vec<u8> {
        let (mut send, mut recv) = self.exchange(bytes).await;
        drop(send.finish());
        soon(recv.read_to_end(1 << 20)).await.unwrap()
    }

    /// The next exchange the other side opens.
    pub(crate) async fn accepts_exchange(&self) -> (SendStream, RecvStream) {
        soon(self.connection.accept_bi()).await.unwrap()
    }

    pub(crate) fn is_open(&self) {
        let closed = self.connection.close_reason();
        assert!(closed.is_none(), "{closed:?}");
    }

    /// The code and sentence the other side closes with.
    pub(crate) async fn closed(&self) -> (u64, String) {
        match soon(self.connection.closed()).await {
            ConnectionError::ApplicationClosed(close) => (
                close.error_code.into_inner(),
                String::from_utf8(close.reason.to_vec()).unwrap(),
            ),
            other => panic!("{other}"),
        }
    }

    /// Asserts CLOSE(`code`).
    pub(crate) async fn closed_with(&self, code: u64) {
        let (found, reason) = self.closed().await;
        assert_eq!(found, code, "closed with {reason:?}");
    }
}

/// Asserts STOP(`code`).
pub(crate) async fn stopped(stream: &SendStream, code: u32) {
    let found = soon(stream.stopped()).await.unwrap();
    assert_eq!(found, Some(VarInt::from_u32(code)));
}

/// Asserts RESET(`code`) before any FIN.
pub(crate) async fn was_reset(stream: &mut RecvStream, code: u32) {
    let mut buffer = [0; 64];
    loop {
        match soon(stream.read(&mut buffer)).await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a FIN instead of RESET({code})"),
            Err(ReadError::Reset(found)) => {
                assert_eq!(found, VarInt::from_u32(code));
                return;
            }
            Err(other) => panic!("{other}"),
        }
    }
}

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Believes any certificate. A test's, and nobody else's.
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
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.3 only".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            signed,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
