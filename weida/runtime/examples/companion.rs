//! A subscriber that needs a yes or no asks for it.
//!
//! SUBSCRIBE is never answered, so silence says nothing: not that somebody
//! publishes, not that the subscriber is allowed. Who must know asks on a
//! companion path, an ordinary request. Both paths decide by the same function
//! of the same fact, the key that the transport proved; no credential and no
//! verdict is part of any header. `[weida S17-10, AZ-6]`

use std::sync::Arc;

use weida::{
    Admission, ClientTls, ClientTrust, Fingerprint, Identity, PeerIdentity, Replier, Result,
    Runtime, RuntimeConfig, ServerTls, TransferMeta, Trust,
};

/// Who may have the copies.
type Allowed = Arc<dyn Fn(Option<Fingerprint>) -> bool + Send + Sync>;

/// Answers `yes` or `no` to whoever asks, by the key it proved.
async fn answer(replier: &Replier, allowed: &Allowed) -> Result<()> {
    loop {
        let request = replier.accept().await?;
        let peer = request.meta().peer.as_ref().and_then(PeerIdentity::key);
        let verdict: &[u8] = if allowed(peer) { b"yes" } else { b"no" };
        let mut reply = request.reply(TransferMeta::default()).await?;
        reply.write_all(verdict).await?;
        drop(reply.finish()?);
    }
}

/// What two subscribers, one welcome and one not, hear on each path.
pub(crate) async fn run() -> Result<Vec<(String, usize)>> {
    let (server, welcome, stranger) = (
        Identity::generate()?,
        Identity::generate()?,
        Identity::generate()?,
    );
    let only = welcome.fingerprint()?;
    let allowed: Allowed = Arc::new(move |peer| peer == Some(only));

    let runtime = Runtime::new(RuntimeConfig::default())?;
    let listener = runtime.listener();
    let key = server.fingerprint()?;
    let tls = ServerTls::new(server).require_client(ClientTrust::AnyKey);
    let binding = listener.bind_quic(([127, 0, 0, 1], 0).into(), tls).await?;
    let screen = Arc::clone(&allowed);
    let publisher = listener
        .publisher("/prices")?
        .with_admission(
            move |request| match screen(request.peer.and_then(PeerIdentity::key)) {
                true => Admission::Record,
                false => Admission::DeclineCopies,
            },
        );
    let replier = listener.replier("/prices/may-i")?;

    let ask_and_listen = async {
        let mut heard = Vec::new();
        for identity in [welcome, stranger] {
            let client = Runtime::new(RuntimeConfig::default())?;
            let tls = ClientTls::new(Trust::by_address()).with_identity(identity);
            let address = format!("weida://{key}@{}", binding.local_addr());
            let requester = client.requester(tls.clone());
            requester
                .connect(&format!("{address}/prices/may-i"))
                .await?;
            let verdict = requester.request(b"#").await?.collect(16).await?;
            let verdict = String::from_utf8_lossy(&verdict).into_owned();

            let before = publisher.filter_count();
            let subscriber = client.subscriber(tls);
            subscriber.subscribe("#").await?;
            subscriber.connect(&format!("{address}/prices")).await?;
            while publisher.filter_count() == before {
                client
                    .exec()
                    .sleep(std::time::Duration::from_millis(5))
                    .await;
            }
            // Recorded either way; the copies tell them apart, and only to who counts them.
            heard.push((verdict, publisher.publish("px.eur", "1.08")?));
            client.shutdown().await;
            while publisher.filter_count() != 0 {
                runtime
                    .exec()
                    .sleep(std::time::Duration::from_millis(5))
                    .await;
            }
        }
        Ok::<_, weida::Error>(heard)
    };
    let heard = tokio::select! {
        heard = ask_and_listen => heard?,
        stopped = answer(&replier, &allowed) => return stopped.map(|()| Vec::new()),
    };
    runtime.shutdown().await;
    Ok(heard)
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls run itself"))]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    for (verdict, copies) in run().await? {
        #[expect(clippy::print_stdout, reason = "an example shows what it does")]
        {
            println!("asked: {verdict}, copies sent: {copies}");
        }
    }
    Ok(())
}
