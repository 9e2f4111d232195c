//! The limit: the QUIC stack alone doing the same, without heads, dispatch or endpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::task::JoinSet;
use weida_testkit::load::{Length, Load, Run, Schedule, Target};

/// Write size of the stream case.
const STREAM_CHUNK_BYTES: usize = 256 * 1024;
/// Messages on their way at most.
const ON_THE_WAY: u64 = 2048;
/// Largest UDP payload, as in `weida`.
const MAX_DATAGRAM_BYTES: u16 = 6000;
/// Stream credit, so that opening never waits for it.
const STREAMS: u32 = 4096;

struct Pair {
    client: quinn::Connection,
    server: quinn::Connection,
    endpoints: [quinn::Endpoint; 2],
}

impl Pair {
    async fn new() -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = CertificateDer::from(made.cert.der().to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let server_tls = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate).unwrap();
        let client_tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();

        let mut transport = quinn::TransportConfig::default();
        transport
            .max_concurrent_uni_streams(STREAMS.into())
            .max_concurrent_bidi_streams(STREAMS.into());
        // The datagram size that two of ours find on loopback, so that the limit is of the same packets.
        let mut mtu = quinn::MtuDiscoveryConfig::default();
        mtu.upper_bound(MAX_DATAGRAM_BYTES);
        transport.mtu_discovery_config(Some(mtu));
        let transport = Arc::new(transport);
        let mut server_config = quinn::ServerConfig::with_crypto(Arc::new(
            QuicServerConfig::try_from(server_tls).unwrap(),
        ));
        server_config.transport_config(transport.clone());
        let mut client_config =
            quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(client_tls).unwrap()));
        client_config.transport_config(transport);

        let listening = endpoint(Some(server_config));
        let dialling = endpoint(None);
        let connecting = dialling
            .connect_with(client_config, listening.local_addr().unwrap(), "localhost")
            .unwrap();
        let (client, server) = tokio::join!(connecting, async {
            listening.accept().await.unwrap().await
        });
        Self {
            client: client.unwrap(),
            server: server.unwrap(),
            endpoints: [listening, dialling],
        }
    }

    async fn close(self) {
        self.client.close(0u32.into(), b"");
        for endpoint in self.endpoints {
            endpoint.wait_idle().await;
        }
    }
}

fn endpoint(server: Option<quinn::ServerConfig>) -> quinn::Endpoint {
    let mut config = quinn::EndpointConfig::default();
    config.max_udp_payload_size(MAX_DATAGRAM_BYTES).unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    quinn::Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime)).unwrap()
}

fn load(window: Duration, payload_bytes: usize, workers: usize) -> Load {
    Load {
        schedule: Schedule::Closed,
        workers,
        payload_bytes,
        warm_up: 200,
        length: Length::Time(window),
        at_most: window + Duration::from_secs(30),
    }
}

struct Asking(quinn::Connection);

impl Target for Asking {
    type Error = String;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), String> {
        let (mut send, mut recv) = self.0.open_bi().await.map_err(|error| error.to_string())?;
        send.write_all(payload)
            .await
            .map_err(|error| error.to_string())?;
        send.finish().map_err(|error| error.to_string())?;
        recv.read_to_end(1 << 20)
            .await
            .map(drop)
            .map_err(|error| error.to_string())
    }
}

/// One bidirectional stream per request, echoed.
pub(crate) async fn request_reply(window: Duration, body_bytes: usize, in_flight: usize) -> Run {
    let pair = Pair::new().await;
    let server = pair.server.clone();
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut answering = JoinSet::new();
        while let Ok((mut send, mut recv)) = server.accept_bi().await {
            while answering.try_join_next().is_some() {}
            answering.spawn(async move {
                let body = recv.read_to_end(1 << 20).await.unwrap();
                send.write_all(&body).await.unwrap();
                send.finish().unwrap();
            });
        }
    });
    let run = load(window, body_bytes, in_flight)
        .run(|_| Asking(pair.client.clone()))
        .await;
    serving.shutdown().await;
    pair.close().await;
    run
}

struct Pushing {
    connection: quinn::Connection,
    sent: u64,
    received: Arc<AtomicU64>,
}

impl Target for Pushing {
    type Error = String;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), String> {
        while self.sent - self.received.load(Ordering::Relaxed) >= ON_THE_WAY {
            tokio::task::yield_now().await;
        }
        self.sent += 1;
        let mut send = self
            .connection
            .open_uni()
            .await
            .map_err(|error| error.to_string())?;
        send.write_all(payload)
            .await
            .map_err(|error| error.to_string())?;
        send.finish().map_err(|error| error.to_string())
    }
}

/// One unidirectional stream per message, read to its end.
pub(crate) async fn push(window: Duration, body_bytes: usize) -> Run {
    let pair = Pair::new().await;
    let received = Arc::new(AtomicU64::new(0));
    let (server, counted) = (pair.server.clone(), received.clone());
    let mut receiving = JoinSet::new();
    receiving.spawn(async move {
        while let Ok(mut recv) = server.accept_uni().await {
            recv.read_to_end(1 << 20).await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
        }
    });
    let mut pushing = Some(Pushing {
        connection: pair.client.clone(),
        sent: 0,
        received,
    });
    let run = load(window, body_bytes, 1)
        .run(|_| pushing.take().unwrap())
        .await;
    receiving.shutdown().await;
    pair.close().await;
    run
}

struct Streaming(quinn::SendStream);

impl Target for Streaming {
    type Error = String;

    async fn op(&mut self, payload: &Bytes, _: u64) -> Result<(), String> {
        self.0
            .write_all(payload)
            .await
            .map_err(|error| error.to_string())
    }
}

/// Writes into one stream whose reader keeps up.
pub(crate) async fn stream(window: Duration) -> Run {
    let pair = Pair::new().await;
    let server = pair.server.clone();
    let mut receiving = JoinSet::new();
    receiving.spawn(async move {
        let mut recv = server.accept_uni().await.unwrap();
        let mut buffer = vec![0; STREAM_CHUNK_BYTES];
        while let Ok(Some(_)) = recv.read(&mut buffer).await {}
    });
    let mut streaming = Some(Streaming(pair.client.open_uni().await.unwrap()));
    let run = load(window, STREAM_CHUNK_BYTES, 1)
        .run(|_| streaming.take().unwrap())
        .await;
    receiving.shutdown().await;
    pair.close().await;
    run
}
