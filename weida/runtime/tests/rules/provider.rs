//! The crypto provider is named, and nothing of the process is touched.
//! [weida 4.1]

use rustls::crypto::{CryptoProvider, ring};
use weida::{Runtime, RuntimeConfig, TransferMeta, Trust};

use crate::common::{Server, soon};

/// One exchange between two runtimes.
async fn exchange() {
    let server = Server::start().await;
    let replier = server.listener.replier("/x").unwrap();
    let client = Runtime::new(RuntimeConfig::default()).unwrap();
    let requester = client.requester(Trust::by_address());
    soon(requester.connect(&server.url("/x"))).await.unwrap();
    let answer = async {
        let request = soon(replier.accept()).await.unwrap();
        let reply = soon(request.reply(TransferMeta::default())).await.unwrap();
        reply.finish().unwrap();
    };
    let (reply, ()) = tokio::join!(soon(requester.request(b"hello")), answer);
    assert_eq!(reply.unwrap().collect(16).await.unwrap(), b"");
}

/// A host whose default provider could not shake a single hand: it is never
/// asked, and none is installed where the host has none.
#[tokio::test]
async fn rt_5_the_provider_is_explicit_and_nothing_global_is_set() {
    exchange().await;
    assert!(
        CryptoProvider::get_default().is_none(),
        "the library installed one"
    );
    let useless = CryptoProvider {
        cipher_suites: Vec::new(),
        kx_groups: Vec::new(),
        ..ring::default_provider()
    };
    useless.install_default().unwrap();
    let default =
        rustls::ClientConfig::builder_with_provider(CryptoProvider::get_default().unwrap().clone());
    assert!(
        default.with_safe_default_protocol_versions().is_err(),
        "whoever used the host's default would fail"
    );
    exchange().await;
}
