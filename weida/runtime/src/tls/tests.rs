//! Who gets in and who is seen, over real handshakes on loopback.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use sha2::Digest;

use super::*;

// === a binding and a dial ===

struct Server {
    endpoint: quinn::Endpoint,
    addr: SocketAddr,
}

/// What one side learned of the other.
type Seen = (Option<Fingerprint>, Option<PeerChain>);

impl Server {
    fn bind(tls: &ServerTls) -> Result<Self> {
        let config = quinn::ServerConfig::with_crypto(server_crypto(tls)?);
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = quinn::Endpoint::server(config, local)?;
        let addr = endpoint.local_addr()?;
        Ok(Self { endpoint, addr })
    }

    /// Dials this server and returns what both sides saw: an error where the
    /// handshake failed for that side.
    async fn meet(&self, terms: DialTerms<'_>, host: &str) -> (Result<Seen>, Result<Seen>) {
        let live = self.connect(terms, host).await;
        (live.client.map(|it| it.1), live.server.map(|it| it.1))
    }

    async fn connect(&self, terms: DialTerms<'_>, host: &str) -> Live {
        let crypto = match client_crypto(terms) {
            Ok(crypto) => crypto,
            Err(error) => {
                return Live {
                    client: Err(error),
                    server: Err(Error::NotConnected),
                };
            }
        };
        let client = async {
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let endpoint = quinn::Endpoint::client(local)?;
            let config = quinn::ClientConfig::new(crypto.config.clone());
            let name = server_name(host)?;
            let failed = |error: quinn::ConnectionError| {
                crypto
                    .failure(&error)
                    .unwrap_or_else(|| Error::Runtime(error.to_string()))
            };
            let connecting = endpoint.connect_with(config, self.addr, name).unwrap();
            let connection = connecting.await.map_err(failed)?;
            // A server that refuses us says so after our handshake looks done.
            let mut greeting = connection.accept_uni().await.map_err(failed)?;
            greeting.read_to_end(8).await.unwrap();
            let seen = proved(&connection);
            Ok(((endpoint, connection), seen))
        };
        let server = async {
            let incoming = self.endpoint.accept().await.unwrap();
            let failed = |error| handshake_failure(&error).unwrap_or(Error::NotConnected);
            let connection = incoming.await.map_err(failed)?;
            let mut greeting = connection.open_uni().await.unwrap();
            greeting.write_all(b"hi").await.unwrap();
            greeting.finish().unwrap();
            let seen = proved(&connection);
            Ok((connection, seen))
        };
        let within = Duration::from_secs(20);
        let (client, server) = tokio::time::timeout(within, async { tokio::join!(client, server) })
            .await
            .expect("a handshake ends");
        Live { client, server }
    }
}

/// Both ends of a live connection and what they saw.
struct Live {
    client: Result<((quinn::Endpoint, quinn::Connection), Seen)>,
    server: Result<(quinn::Connection, Seen)>,
}

/// What the connection proved, as the key inside.
fn proved(connection: &quinn::Connection) -> Seen {
    let (peer, chain) = proved_peer(connection);
    (peer.map(|peer| peer.key().expect("TLS proves keys")), chain)
}

fn by(tls: &ClientTls) -> DialTerms<'_> {
    DialTerms {
        tls,
        named: None,
        proved_before: None,
    }
}

/// What `seen` must be for a peer that proved `fingerprint`.
fn key(fingerprint: Fingerprint) -> Option<Fingerprint> {
    Some(fingerprint)
}

// === certificate authorities ===

/// An authority that signs identities.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    /// An identity for `key` that names `names`.
    fn sign(&self, key: &KeyPair, names: &[&str]) -> Identity {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let params = CertificateParams::new(names).unwrap();
        let cert = params.signed_by(key, &self.issuer).unwrap();
        Identity::from_pem(cert.pem(), key.serialize_pem())
    }
}

// === rules ===

#[tokio::test]
async fn s8_1_id_10_each_side_sees_the_key_the_other_proved() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let tls = ServerTls::new(alice.clone()).require_client(Trust::pin(bob.fingerprint().unwrap()));
    let server = Server::bind(&tls).unwrap();
    let dial = ClientTls::new(Trust::pin(alice.fingerprint().unwrap())).with_identity(bob.clone());
    let (client, server) = server.meet(by(&dial), "localhost").await;
    assert_eq!(client.unwrap().0, key(alice.fingerprint().unwrap()));
    assert_eq!(server.unwrap().0, key(bob.fingerprint().unwrap()));
}

#[tokio::test]
async fn s8_3_a_client_that_proved_nothing_is_none() {
    let alice = Identity::generate().unwrap();
    let server = Server::bind(&alice.clone().into()).unwrap();
    // Even with an identity at hand: it was not asked for.
    let dial = ClientTls::new(Trust::pin(alice.fingerprint().unwrap()))
        .with_identity(Identity::generate().unwrap());
    let (client, server) = server.meet(by(&dial), "localhost").await;
    assert!(client.is_ok());
    assert_eq!(server.unwrap(), (None, None));
}

#[tokio::test]
async fn s8_6_the_same_key_is_the_same_peer_and_two_keys_are_two() {
    let alice = Identity::generate().unwrap();
    let server =
        Server::bind(&ServerTls::new(alice.clone()).require_client(ClientTrust::AnyKey)).unwrap();
    let trust = Trust::pin(alice.fingerprint().unwrap());
    let bob = ClientTls::new(trust.clone()).with_identity(Identity::generate().unwrap());
    let eve = ClientTls::new(trust).with_identity(Identity::generate().unwrap());
    let mut seen = Vec::new();
    for dial in [&bob, &bob, &eve] {
        let (_, server) = server.meet(by(dial), "localhost").await;
        seen.push(server.unwrap().0.unwrap());
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
}

/// A signer of one key beside the certificate of another. rustls would not
/// build this by itself, so the judges have to refuse it.
fn stolen_certificate(victim: &Identity, thief: &Identity) -> Arc<CertifiedKey> {
    let victim = victim.load().unwrap().certified;
    let thief = thief.load().unwrap().certified;
    Arc::new(CertifiedKey::new(victim.cert.clone(), thief.key.clone()))
}

#[tokio::test]
async fn s8_4_a_certificate_without_its_key_is_refused_by_every_binding() {
    let ca = Authority::new();
    let victim = ca.sign(&KeyPair::generate().unwrap(), &["localhost"]);
    let thief = Identity::generate().unwrap();
    let alice = Identity::generate().unwrap();
    let pinned = Trust::pin(alice.fingerprint().unwrap());
    for trust in [
        ClientTrust::from(Trust::pin(victim.fingerprint().unwrap())),
        Trust::anchor(ca.pem.clone()).into(),
        ClientTrust::AnyKey,
    ] {
        let tls = ServerTls::new(alice.clone()).require_client(trust);
        let server = Server::bind(&tls).unwrap();
        let honest = ClientTls::new(pinned.clone()).with_identity(victim.clone());
        let (_, met) = server.meet(by(&honest), "localhost").await;
        assert_eq!(met.unwrap().0, key(victim.fingerprint().unwrap()));

        let source = IdentitySource::external(victim.clone()).unwrap();
        source.present_for_test(stolen_certificate(&victim, &thief));
        let dial = ClientTls::new(pinned.clone()).with_identity(source);
        let (client, met) = server.meet(by(&dial), "localhost").await;
        assert!(matches!(met, Err(Error::Tls(_))), "{met:?}");
        assert!(matches!(client, Err(Error::Tls(_))), "{client:?}");
    }
}

#[tokio::test]
async fn s8_4_a_certificate_without_its_key_is_refused_by_every_dial() {
    let ca = Authority::new();
    let victim = ca.sign(&KeyPair::generate().unwrap(), &["localhost"]);
    let victim_key = victim.fingerprint().unwrap();
    let source = IdentitySource::external(victim.clone()).unwrap();
    let server = Server::bind(&source.clone().into()).unwrap();
    let by_address = ClientTls::from(Trust::by_address());
    let by_pin = ClientTls::from(Trust::pin(victim_key));
    let by_anchor = ClientTls::from(Trust::anchor(ca.pem.clone()));
    let named = DialTerms {
        named: Some(victim_key),
        ..by(&by_address)
    };
    for terms in [named, by(&by_pin), by(&by_anchor)] {
        let (client, _) = server.meet(terms, "localhost").await;
        assert_eq!(client.unwrap().0, key(victim_key));
    }
    source.present_for_test(stolen_certificate(&victim, &Identity::generate().unwrap()));
    for terms in [named, by(&by_pin), by(&by_anchor)] {
        let (client, server) = server.meet(terms, "localhost").await;
        // Not `Untrusted`: the key was acceptable, the proof was not.
        assert!(matches!(client, Err(Error::Tls(_))), "{client:?}");
        assert!(server.is_err());
    }
}

#[tokio::test]
async fn s8_5_a_rotation_changes_the_next_connection_and_not_this_one() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (alice_key, bob_key) = (alice.fingerprint().unwrap(), bob.fingerprint().unwrap());
    let source = IdentitySource::external(alice).unwrap();
    let server = Server::bind(&source.clone().into()).unwrap();
    let dial = ClientTls::from(Trust::pin(alice_key).and_pin(bob_key));
    let live = server.connect(by(&dial), "localhost").await;
    let ((_endpoint, connection), seen) = live.client.unwrap();
    assert_eq!(seen.0, key(alice_key));

    source.update(bob).unwrap();
    assert_eq!(proved(&connection).0, key(alice_key));
    // Served without a second bind. [weida 5.1]
    let (client, _) = server.meet(by(&dial), "localhost").await;
    assert_eq!(client.unwrap().0, key(bob_key));
}

#[tokio::test]
async fn s8_13_the_peer_is_what_was_proved_and_not_what_was_expected() {
    let ca = Authority::new();
    let alice = ca.sign(&KeyPair::generate().unwrap(), &["localhost"]);
    let server = Server::bind(&alice.clone().into()).unwrap();
    let dial = ClientTls::from(Trust::anchor(ca.pem));
    let (client, _) = server.meet(by(&dial), "localhost").await;
    assert_eq!(client.unwrap().0, key(alice.fingerprint().unwrap()));
}

#[tokio::test]
async fn s8_25_no_ticket_is_issued_and_a_withdrawn_trust_refuses_the_next_handshake() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let trust = TrustSource::external(Trust::pin(bob.fingerprint().unwrap()));
    let tls = ServerTls::new(alice.clone()).require_client(trust.clone());
    let server = Server::bind(&tls).unwrap();
    let dial = ClientTls::new(Trust::pin(alice.fingerprint().unwrap())).with_identity(bob);

    // One client configuration for both handshakes, so that a ticket would be
    // offered if there was one.
    let crypto = client_crypto(by(&dial)).unwrap();
    let endpoint = quinn::Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let connecting = || {
        let config = quinn::ClientConfig::new(crypto.config.clone());
        endpoint.connect_with(config, server.addr, "localhost")
    };
    let accept = async || server.endpoint.accept().await.unwrap().await;
    let (client, accepted) = tokio::join!(connecting().unwrap(), accept());
    let (client, _accepted) = (client.unwrap(), accepted.unwrap());
    assert!(client.peer_identity().is_some());

    trust.update(Trust::pin(Fingerprint::from_bytes([0; 32])));
    let again = connecting().unwrap();
    let again = again
        .into_0rtt()
        .err()
        .expect("no early data without a ticket");
    let (_, accepted) = tokio::join!(again, accept());
    assert!(matches!(
        handshake_failure(&accepted.err().unwrap()),
        Some(Error::Tls(_))
    ));
}

#[tokio::test]
async fn s8_28_rd_2_another_key_is_refused_on_redial_even_if_trusted() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let (alice_key, bob_key) = (alice.fingerprint().unwrap(), bob.fingerprint().unwrap());
    let source = IdentitySource::external(alice).unwrap();
    let server = Server::bind(&source.clone().into()).unwrap();
    let dial = ClientTls::from(Trust::pin(alice_key).and_pin(bob_key));
    let redial = DialTerms {
        proved_before: Some(alice_key),
        ..by(&dial)
    };
    assert!(server.meet(redial, "localhost").await.0.is_ok());

    let mut events = source.events();
    source.update(bob).unwrap();
    let (from, to) = (alice_key, bob_key);
    assert_eq!(
        events.recv().await,
        Some(crate::IdentityEvent::KeyChanged { from, to })
    );
    let (client, _) = server.meet(redial, "localhost").await;
    assert!(
        matches!(client, Err(Error::Untrusted(fp)) if fp == bob_key),
        "{client:?}"
    );
}

#[tokio::test]
async fn id_1_a_renewed_certificate_keeps_the_fingerprint() {
    let ca = Authority::new();
    let key_pair = KeyPair::generate().unwrap();
    let (old, new) = (
        ca.sign(&key_pair, &["a.example"]),
        ca.sign(&key_pair, &["b.example"]),
    );
    assert_ne!(
        old.certificate_pem().unwrap(),
        new.certificate_pem().unwrap()
    );
    let fingerprint = old.fingerprint().unwrap();
    assert_eq!(fingerprint, new.fingerprint().unwrap());
    // The digest of the whole SubjectPublicKeyInfo, nothing else. [wire 3.1]
    let material = old.load().unwrap();
    let spki = material.certified.key.public_key().unwrap();
    assert_eq!(
        fingerprint.as_bytes(),
        &<[u8; 32]>::from(sha2::Sha256::digest(spki.as_ref()))
    );

    let source = IdentitySource::external(old).unwrap();
    let mut events = source.events();
    source.update(new.clone()).unwrap();
    assert_eq!(
        events.recv().await,
        Some(crate::IdentityEvent::Renewed { fingerprint })
    );
    source.update(new).unwrap();
    assert_eq!(
        events.recv().await,
        Some(crate::IdentityEvent::Loaded { fingerprint })
    );
}

/// Trust of the dial × what the server is: pinned, certified for the host,
/// certified for another host, certified by nobody we know.
#[tokio::test]
async fn id_2_a_server_needs_a_pin_or_a_chain_that_names_the_host() {
    let ca = Authority::new();
    let sign = |name| ca.sign(&KeyPair::generate().unwrap(), &[name]);
    let (right, wrong, ip) = (sign("localhost"), sign("elsewhere"), sign("127.0.0.1"));
    let stranger = Identity::generate_for(["localhost"]).unwrap();
    let itself = Trust::anchor(stranger.certificate_pem().unwrap());
    let pin = |identity: &Identity| Trust::pin(identity.fingerprint().unwrap());
    let anchor = || Trust::anchor(ca.pem.clone());
    for (server, host, trust, accepted) in [
        (&right, "localhost", anchor(), true),
        (&right, "127.0.0.1", anchor(), false),
        (&ip, "127.0.0.1", anchor(), true),
        (&wrong, "localhost", anchor(), false),
        // A pin consults no name, and either one suffices.
        (&wrong, "localhost", pin(&wrong), true),
        (
            &wrong,
            "localhost",
            anchor().and_pin(wrong.fingerprint().unwrap()),
            true,
        ),
        (
            &right,
            "localhost",
            anchor().and_pin(wrong.fingerprint().unwrap()),
            true,
        ),
        (&right, "localhost", pin(&wrong), false),
        (&stranger, "localhost", anchor(), false),
        // A generated certificate can be its own anchor.
        (&stranger, "localhost", itself, true),
    ] {
        let dial = ClientTls::from(trust);
        let bound = Server::bind(&server.clone().into()).unwrap();
        let (client, _) = bound.meet(by(&dial), host).await;
        let presented = server.fingerprint().unwrap();
        match client {
            Ok((peer, _)) => assert!(accepted && peer == key(presented), "{host} {dial:?}"),
            Err(Error::Untrusted(fp)) => assert!(!accepted && fp == presented, "{host} {dial:?}"),
            Err(other) => panic!("{other} for {host} {dial:?}"),
        }
    }
}

#[tokio::test]
async fn ad_5_a_fingerprint_in_the_address_overrides_pins_and_anchors() {
    let ca = Authority::new();
    let alice = ca.sign(&KeyPair::generate().unwrap(), &["localhost"]);
    let alice_key = alice.fingerprint().unwrap();
    let server = Server::bind(&alice.into()).unwrap();
    let dial = ClientTls::from(Trust::anchor(ca.pem).and_pin(alice_key));
    assert!(server.meet(by(&dial), "localhost").await.0.is_ok());
    let named = |fp| DialTerms {
        named: Some(fp),
        ..by(&dial)
    };
    assert!(server.meet(named(alice_key), "localhost").await.0.is_ok());
    let other = Fingerprint::from_bytes([1; 32]);
    let (client, _) = server.meet(named(other), "localhost").await;
    assert!(
        matches!(client, Err(Error::Untrusted(fp)) if fp == alice_key),
        "{client:?}"
    );
}

#[test]
fn id_3_nothing_trusted_and_nothing_named_fails_before_any_packet() {
    let dial = ClientTls::from(Trust::by_address());
    let named = DialTerms {
        named: Some(Fingerprint::from_bytes([1; 32])),
        ..by(&dial)
    };
    assert!(client_crypto(named).is_ok());
    // No endpoint exists here, so no packet can.
    assert!(matches!(client_crypto(by(&dial)), Err(Error::Tls(_))));
}

#[tokio::test]
async fn id_5_a_refused_key_is_reported_as_it_was_presented() {
    let alice = Identity::generate().unwrap();
    let server = Server::bind(&alice.clone().into()).unwrap();
    let right = ClientTls::from(Trust::pin(alice.fingerprint().unwrap()));
    assert!(server.meet(by(&right), "localhost").await.0.is_ok());
    let wrong = ClientTls::from(Trust::pin(Fingerprint::from_bytes([9; 32])));
    let (client, _) = server.meet(by(&wrong), "localhost").await;
    let Err(Error::Untrusted(presented)) = client else {
        panic!("{client:?}")
    };
    assert_eq!(presented, alice.fingerprint().unwrap());
}

#[test]
fn id_6_requiring_clients_under_an_empty_trust_is_refused_at_bind() {
    let alice = IdentitySource::ephemeral(Vec::<String>::new()).unwrap();
    let pinned = Trust::pin(alice.fingerprint().unwrap());
    assert!(server_crypto(&ServerTls::new(alice.clone()).require_client(pinned)).is_ok());
    let nobody = ServerTls::new(alice).require_client(Trust::by_address());
    assert!(matches!(server_crypto(&nobody), Err(Error::Tls(_))));
}

#[tokio::test]
async fn id_7_any_key_lets_strangers_in_and_nobody_anonymous() {
    let alice = Identity::generate().unwrap();
    let trust = Trust::pin(alice.fingerprint().unwrap());
    let server = Server::bind(&ServerTls::new(alice).require_client(ClientTrust::AnyKey)).unwrap();
    let bob = Identity::generate().unwrap();
    let known = ClientTls::new(trust.clone()).with_identity(bob.clone());
    let (_, seen) = server.meet(by(&known), "localhost").await;
    assert_eq!(seen.unwrap().0, key(bob.fingerprint().unwrap()));

    let anonymous = ClientTls::from(trust);
    let (client, seen) = server.meet(by(&anonymous), "localhost").await;
    assert!(matches!(seen, Err(Error::Tls(_))), "{seen:?}");
    let Err(Error::Tls(text)) = client else {
        panic!("{client:?}")
    };
    assert!(text.contains("alert 116"), "{text}");
}

/// A chain of `certs` certificates whose DER is about `bytes` long in total.
fn chain_of(certs: usize, bytes: usize) -> Identity {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    let leaf = params.self_signed(&key).unwrap();
    let mut pem = leaf.pem();
    let each = bytes.saturating_sub(leaf.der().len()) / certs.saturating_sub(1).max(1);
    let mut filler = rcgen::CustomExtension::from_oid_content(
        &[1, 3, 6, 1, 4, 1, 99999],
        vec![0; each.saturating_sub(leaf.der().len() + 40)],
    );
    filler.set_criticality(false);
    params.custom_extensions.push(filler);
    for _ in 1..certs {
        pem.push_str(&params.self_signed(&key).unwrap().pem());
    }
    Identity::from_pem(pem, key.serialize_pem())
}

#[tokio::test]
async fn id_7_id_9_a_chain_past_the_bound_fails_under_any_key_and_is_not_kept_elsewhere() {
    let alice = Identity::generate().unwrap();
    let trust = Trust::pin(alice.fingerprint().unwrap());
    let any = ServerTls::new(alice.clone()).require_client(ClientTrust::AnyKey);
    let any = Server::bind(&any).unwrap();
    for (certs, bytes, fits) in [
        (1, 400, true),
        (8, 8_000, true),
        (9, 8_000, false),
        (2, 31_000, true),
        (2, 34_000, false),
    ] {
        let bob = chain_of(certs, bytes);
        let bob_key = bob.fingerprint().unwrap();
        let dial = ClientTls::new(trust.clone()).with_identity(bob);
        let (_, seen) = any.meet(by(&dial), "localhost").await;
        assert_eq!(seen.is_ok(), fits, "{certs} certificates, {bytes} bytes");

        let pinned = ServerTls::new(alice.clone()).require_client(Trust::pin(bob_key));
        let pinned = Server::bind(&pinned).unwrap();
        let (_, seen) = pinned.meet(by(&dial), "localhost").await;
        let (peer, chain) = seen.unwrap();
        assert_eq!(peer, key(bob_key));
        let kept = chain.map(|chain| chain.certs().len());
        assert_eq!(
            kept,
            fits.then_some(certs),
            "{certs} certificates, {bytes} bytes"
        );
    }
}

#[tokio::test]
async fn id_9_the_chain_arrives_leaf_first() {
    let ca = Authority::new();
    let alice = ca.sign(&KeyPair::generate().unwrap(), &["localhost"]);
    let chain = alice.certificate_pem().unwrap() + &ca.pem;
    let with_issuer = Identity::from_pem(chain, alice.to_pem().unwrap());
    let server = Server::bind(&with_issuer.clone().into()).unwrap();
    let dial = ClientTls::from(Trust::anchor(ca.pem));
    let (client, _) = server.meet(by(&dial), "localhost").await;
    let chain = client.unwrap().1.unwrap();
    assert_eq!(chain.certs().len(), 2);
    let leaf = CertificateDer::from(chain.leaf().to_vec());
    assert_eq!(
        leaf_fingerprint(&leaf).unwrap(),
        with_issuer.fingerprint().unwrap()
    );
    assert_eq!(chain.certs().next(), Some(chain.leaf()));
}

#[tokio::test]
async fn alpn_mismatch_fails_both_ways() {
    let alice = Identity::generate().unwrap();
    let trust = Trust::pin(alice.fingerprint().unwrap());
    for (served, asked, works) in [
        (Alpn::Weida, Alpn::Weida, true),
        (Alpn::Raft, Alpn::Raft, true),
        (Alpn::Weida, Alpn::Raft, false),
        (Alpn::Raft, Alpn::Weida, false),
    ] {
        let server = Server::bind(&ServerTls::new(alice.clone()).with_alpn(served)).unwrap();
        let dial = ClientTls::new(trust.clone()).with_alpn(asked);
        let (client, _) = server.meet(by(&dial), "localhost").await;
        match client {
            Ok(_) => assert!(works),
            Err(Error::Tls(text)) => assert!(!works && text.contains("alert 120"), "{text}"),
            Err(other) => panic!("{other}"),
        }
    }
}

#[tokio::test]
async fn wire_2_a_dns_name_is_sent_as_sni_and_an_ip_is_not() {
    let alice = Identity::generate().unwrap();
    let server = Server::bind(&alice.clone().into()).unwrap();
    let dial = ClientTls::from(Trust::pin(alice.fingerprint().unwrap()));
    for (host, sni) in [
        ("localhost", Some("localhost")),
        ("127.0.0.1", None),
        ("[::1]", None),
    ] {
        let live = server.connect(by(&dial), host).await;
        let (accepted, _) = live.server.unwrap();
        let data = accepted.handshake_data().unwrap();
        let data = data
            .downcast::<quinn::crypto::rustls::HandshakeData>()
            .unwrap();
        assert_eq!(data.server_name.as_deref(), sni);
        assert_eq!(data.protocol.as_deref(), Some(ALPN));
    }
    assert!(matches!(
        server_name("not a host"),
        Err(Error::InvalidAddress(_))
    ));
}

#[tokio::test]
async fn a_broken_trust_refresh_lets_nobody_in() {
    let (alice, bob) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let trust = TrustSource::external(Trust::pin(bob.fingerprint().unwrap()));
    let tls = ServerTls::new(alice.clone()).require_client(trust.clone());
    let server = Server::bind(&tls).unwrap();
    let dial = ClientTls::new(Trust::pin(alice.fingerprint().unwrap())).with_identity(bob);
    assert!(server.meet(by(&dial), "localhost").await.1.is_ok());
    trust.update(trust.current().and_anchor("not PEM"));
    assert!(server.meet(by(&dial), "localhost").await.1.is_err());
}
