//! Programs for the published crate compile with only their `use` lines
//! changed: the calls of its documentation, in its shapes. What does not is in
//! `docs/migration.md`.

use std::time::Duration;

use weida::{
    Alpn, ClientTls, ClientTrust, Discovery, FilesOptions, Identity, IdentitySource, Listener, Pem,
    Publisher, Result, Runtime, RuntimeConfig, ServerTls, SharedResolver, Subscriber,
    SystemResolver, TransferMeta, Trust, TrustSource,
};

/// The first example of the published documentation.
async fn ask(url: &str) -> Result<()> {
    let runtime = Runtime::new(RuntimeConfig::default())?;
    let requester = runtime.requester(Trust::by_address());
    requester.connect(url).await?;
    let (mut transfer, reply) = requester.open(TransferMeta::default()).await?;
    transfer.write_all(b"hello weida").await?;
    transfer.finish()?;
    let body = reply.recv().await?.collect(64 * 1024).await?;
    assert_eq!(String::from_utf8_lossy(&body), "hello weida");
    Ok(())
}

#[tokio::test]
async fn the_documented_request_works() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let identity = Identity::generate().unwrap();
    let listener: Listener = runtime.listener();
    let replier = listener.replier("/transform").unwrap();
    let addr = "127.0.0.1:0".parse().unwrap();
    let binding = listener.bind_quic(addr, identity.clone()).await.unwrap();
    let url = format!(
        "weida://{}@{}/transform",
        identity.fingerprint().unwrap(),
        binding.local_addr()
    );
    let answer = async {
        let mut request = replier.accept().await?;
        let body = request.body().read_capped(64 * 1024).await?;
        let mut reply = request.reply(TransferMeta::default()).await?;
        reply.write_all(&body).await?;
        reply.finish()?;
        Result::<()>::Ok(())
    };
    let both = async { tokio::join!(ask(&url), answer) };
    let (asked, answered) = tokio::time::timeout(Duration::from_secs(20), both)
        .await
        .unwrap();
    asked.unwrap();
    answered.unwrap();
}

/// Identity and trust in every documented shape.
#[test]
fn identity_and_trust_take_what_they_took() {
    let identity = Identity::generate_for(["localhost", "127.0.0.1"]).unwrap();
    let pem = identity.to_pem().unwrap();
    let _: Identity = Identity::from_pem(pem.as_str(), pem.as_bytes());
    let _: Identity = Identity::from_pem_files("cert.pem", "key.pem");
    let _: Identity = Identity::from_pem_file("identity.pem");
    let _: Pem = std::path::PathBuf::from("cert.pem").into();
    let fingerprint = identity.fingerprint().unwrap();
    let trust = Trust::pin(fingerprint)
        .and_pin(fingerprint)
        .and_anchor(identity.certificate_pem().unwrap())
        .and_anchor_file("ca.pem");
    assert!(!trust.is_empty() && Trust::by_address().is_empty());
    let source = IdentitySource::external(identity.clone()).unwrap();
    let _: ClientTls = trust.clone().into();
    let _: ClientTls = TrustSource::external(trust.clone()).into();
    let client = ClientTls::new(trust.clone())
        .with_identity(identity.clone())
        .with_alpn(Alpn::Weida);
    assert_eq!(client.alpn.token(), weida::ALPN);
    let _: ServerTls = identity.into();
    let server = ServerTls::new(source).require_client(trust);
    assert!(matches!(server.client_trust, Some(ClientTrust::Trusted(_))));
    let options = FilesOptions {
        names: vec!["localhost".into()],
        ..FilesOptions::default()
    };
    assert_eq!(options.poll, Duration::from_secs(10));
    let config = RuntimeConfig {
        discovery: Discovery::Single,
        resolver: SharedResolver::new(SystemResolver),
        ..RuntimeConfig::default()
    };
    assert_ne!(config.resolver, SharedResolver::default());
}

/// Publish and subscribe in every documented shape.
#[tokio::test]
async fn publish_and_subscribe_take_what_they_took() {
    let runtime = Runtime::new(RuntimeConfig::default()).unwrap();
    let publisher: Publisher = runtime.listener().publisher("/p").unwrap();
    assert_eq!(publisher.path(), "/p");
    for queued in [
        publisher.publish("t", "text"),
        publisher.publish("t", vec![1, 2]),
        publisher.publish("t", bytes::Bytes::from_static(b"x")),
        publisher.publish_with_trace("t", "x", weida::new_trace()),
    ] {
        assert_eq!(queued.unwrap(), 0);
    }
    let mut fan_out = publisher.open("t");
    assert_eq!(fan_out.write_now("x").unwrap(), 0);
    let limit = Duration::from_millis(1);
    assert_eq!(fan_out.write_within("x", limit).await.unwrap(), 0);
    assert_eq!(fan_out.finish(), 0);
    assert_eq!(publisher.subscriber_count() + publisher.filter_count(), 0);
    assert_eq!(publisher.dropped(), 0);
    assert!(publisher.dropped_on("t").is_none() && publisher.drops().is_empty());

    let subscriber: Subscriber = runtime.subscriber(Trust::by_address());
    subscriber.subscribe("sensors.*.temp").await.unwrap();
    subscriber.grant("sensors.*.temp", 10).await.unwrap();
    subscriber.unsubscribe("sensors.#").await.unwrap();
    assert_eq!(subscriber.filter_count(), 1);
    assert_eq!(subscriber.peer_count(), 0);
    assert!(!subscriber.disconnect("weida://127.0.0.1:1/p"));
    assert!(subscriber.connection_stats().is_empty());
    let _events = subscriber.events();
}
