//! TLS with and without client certificates. [mqtt 3.1] [mqtt 9.1]

use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use weida_bridge::MemoryFabric;
use weida_mqtt::codec::{
    ClientId, Connect, Decoded, Decoder, Encoder, Limits, Packet, ReasonCode, UserName, Version,
};
use weida_mqtt::config::{AuthMethod, ClientAuth, TlsConfig};
use weida_mqtt::metrics::Op;

use crate::common::{World, allow, config, eventually};

struct Pki {
    ca: CertifiedIssuer<'static, KeyPair>,
}

struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pem: (String, String),
}

impl Pki {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test anchor");
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { ca }
    }

    fn issue(&self, common_name: &str, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params
            .distinguished_name
            .push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.ca).unwrap();
        Identity {
            chain: vec![certificate.der().clone()],
            pem: (certificate.pem(), key.serialize_pem()),
            key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        }
    }
}

async fn start(pki: &Pki, dir: &Path, client_auth: ClientAuth, auth: AuthMethod) -> World {
    let server = pki.issue("server", &["localhost"]);
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let mut config = config();
    config.listeners[0].auth = vec![auth];
    config.listeners[0].tls = Some(TlsConfig {
        cert_file: write("server.crt", &server.pem.0),
        key_file: write("server.key", &server.pem.1),
        client_ca_file: Some(write("ca.pem", &pki.ca.pem())),
        client_crl_file: None,
        client_auth,
    });
    config.grants = vec![
        allow("anonymous", &["#"], &["#"]),
        allow(
            "cert-subject:CN=press-*",
            &["sensors/{user}/#"],
            &["sensors/{user}/#"],
        ),
    ];
    World::start(config, MemoryFabric::new()).await
}

async fn dial(
    world: &World,
    pki: &Pki,
    identity: Option<&Identity>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(pki.ca.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .unwrap(),
    };
    config.alpn_protocols = vec![b"mqtt".to_vec()];
    let tcp = TcpStream::connect(world.addr).await?;
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
}

/// CONNECT and one publish; the codes of CONNACK and PUBACK.
async fn greet(
    mut tls: TlsStream<TcpStream>,
    user: Option<&str>,
    topic: &str,
) -> (Option<ReasonCode>, Option<ReasonCode>) {
    let mut connect = Connect::new(Version::V5, ClientId::parse("dev").unwrap());
    connect.user_name = user.map(|user| UserName::parse(user).unwrap());
    let mut publish =
        crate::common::client::message(topic, b"", weida_mqtt::codec::QoS::AtLeastOnce);
    publish.packet_id = weida_mqtt::codec::PacketId::new(1);
    let encoder = Encoder::new(Version::V5);
    let mut out = BytesMut::new();
    encoder
        .encode(&Packet::Connect(Box::new(connect)), &mut out)
        .unwrap();
    encoder.encode(&Packet::Publish(publish), &mut out).unwrap();
    let _: std::io::Result<()> = tls.write_all(&out).await;
    let _: std::io::Result<()> = tls.flush().await;
    let mut decoder = Decoder::client(Version::V5, Limits::default());
    let mut input = BytesMut::new();
    let (mut connack, mut puback) = (None, None);
    loop {
        while let Decoded::Packet(packet) = decoder.decode(&mut input).unwrap() {
            match packet {
                Packet::Connack(answer) => connack = Some(answer.reason),
                Packet::PubAck(ack) => puback = Some(ack.reason),
                other => panic!("unexpected {other:?}"),
            }
        }
        if puback.is_some() {
            return (connack, puback);
        }
        match tls.read_buf(&mut input).await {
            Ok(0) | Err(_) => return (connack, puback),
            Ok(_) => {}
        }
    }
}

#[tokio::test]
async fn tls_without_client_certificates() {
    let (pki, dir) = (Pki::new(), tempfile::tempdir().unwrap());
    let world = start(&pki, dir.path(), ClientAuth::None, AuthMethod::Anonymous).await;
    let answers = greet(dial(&world, &pki, None).await.unwrap(), None, "x").await;
    assert_eq!(
        answers,
        (
            Some(ReasonCode::Success),
            Some(ReasonCode::NoMatchingSubscribers)
        )
    );
    let mut plain = crate::common::Client::open(world.addr, Version::V5).await;
    plain
        .send_hex("10 0e 0004 4d515454 05 02 003c 00 0001 61")
        .await;
    let mut rest = Vec::new();
    let _: std::io::Result<usize> = plain.stream.read_to_end(&mut rest).await;
    eventually("plain MQTT on a TLS port is refused", || {
        world
            .metrics
            .refused(Op::Connect, weida_mqtt::metrics::Cause::NotAuthenticated)
            .get()
            == 1
    })
    .await;
}

/// The certificate's key is the principal, its subject what grants name; a user name beside it
/// must be the subject.
#[tokio::test]
async fn mqtt_9_1_a_client_certificate_is_a_login() {
    let (pki, dir) = (Pki::new(), tempfile::tempdir().unwrap());
    let world = start(
        &pki,
        dir.path(),
        ClientAuth::Required,
        AuthMethod::ClientCert,
    )
    .await;
    let press = pki.issue("press-7", &["press-7.example"]);
    let dial = |identity| dial(&world, &pki, Some(identity));
    let answers = greet(dial(&press).await.unwrap(), None, "sensors/press-7/x").await;
    assert_eq!(
        answers,
        (
            Some(ReasonCode::Success),
            Some(ReasonCode::NoMatchingSubscribers)
        )
    );
    let answers = greet(
        dial(&press).await.unwrap(),
        Some("press-7"),
        "sensors/press-8/x",
    )
    .await;
    assert_eq!(
        answers,
        (Some(ReasonCode::Success), Some(ReasonCode::NotAuthorized))
    );
    let answers = greet(dial(&press).await.unwrap(), Some("press-8"), "x").await;
    assert_eq!(answers.0, Some(ReasonCode::BadUserNameOrPassword));
    let visitor = pki.issue("visitor", &[]);
    let answers = greet(dial(&visitor).await.unwrap(), None, "x").await;
    assert_eq!(
        answers.0,
        Some(ReasonCode::NotAuthorized),
        "verified, but no grant"
    );
    let stranger = Pki::new().issue("press-9", &[]);
    let refused = match dial(&stranger).await {
        Err(_) => true,
        Ok(tls) => greet(tls, None, "x").await == (None, None),
    };
    assert!(refused, "a certificate of another anchor");
}
