//! What a sender can tell of a refusal. [weida 4.2, 7.2]

use weida::{Error, StopReason, TransferMeta, Trust, codes};

use crate::common::raw::{self, RawServer};
use crate::common::{client, soon};

/// One outcome, two reasons: a peer that declines and one that drains are both
/// `Rejected`, and only the reason says which may be tried again.
const REASONS: [(u64, StopReason); 2] = [
    (codes::REJECTED, StopReason::Rejected),
    (codes::SHUTDOWN, StopReason::ShuttingDown),
];

#[tokio::test]
async fn dr_4_a_drain_can_be_told_from_a_refusal_of_a_write_and_of_a_receipt() {
    let server = RawServer::start("/x");
    let runtime = client();
    let pusher = runtime.pusher(Trust::by_address());
    let (connected, connection) = tokio::join!(soon(pusher.connect(&server.url)), server.greeted());
    connected.unwrap();
    for (code, reason) in REASONS {
        let mut written = soon(pusher.open(TransferMeta::default())).await.unwrap();
        let mut theirs = soon(connection.accept_uni()).await.unwrap();
        theirs.stop(raw::code(code)).unwrap();
        assert_eq!(written.stop_reason(), None, "nothing failed yet");
        let error = soon(async {
            loop {
                match written.write_all(b"more").await {
                    Ok(()) => tokio::task::yield_now().await,
                    Err(error) => break error,
                }
            }
        })
        .await;
        assert!(matches!(error, Error::Rejected), "{error}");
        assert_eq!(written.stop_reason(), Some(reason));

        let finished = soon(pusher.open(TransferMeta::default())).await.unwrap();
        let mut theirs = soon(connection.accept_uni()).await.unwrap();
        theirs.stop(raw::code(code)).unwrap();
        let failure = soon(finished.finish().unwrap().settled())
            .await
            .unwrap_err();
        assert_eq!(failure.stop_reason(), Some(reason));
        assert_eq!(failure.is_shutdown(), code == codes::SHUTDOWN);
        assert!(matches!(Error::from(failure), Error::Rejected));
    }
}

#[tokio::test]
async fn dr_4_a_drain_can_be_told_from_a_refusal_of_a_request() {
    let server = RawServer::start("/x");
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    let (connected, connection) =
        tokio::join!(soon(requester.connect(&server.url)), server.greeted());
    connected.unwrap();

    let (_request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    let (mut answer, mut theirs) = soon(connection.accept_bi()).await.unwrap();
    theirs.stop(raw::code(codes::SHUTDOWN)).unwrap();
    answer.reset(raw::code(codes::SHUTDOWN)).unwrap();
    let failure = soon(reply.answer()).await.unwrap_err();
    assert!(failure.is_shutdown() && failure.error().is_definite_failure());
    assert!(failure.to_string().contains("shutting down"));
    assert!(matches!(failure.into_error(), Error::Rejected));

    // The published method says what it always said.
    let (_request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    let (mut answer, _theirs) = soon(connection.accept_bi()).await.unwrap();
    answer.reset(raw::code(codes::SHUTDOWN)).unwrap();
    assert!(matches!(soon(reply.recv()).await, Err(Error::Rejected)));

    // A typed refusal carries no stop, and a reset of another kind is a cancellation.
    let (_request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    let (mut answer, _theirs) = soon(connection.accept_bi()).await.unwrap();
    answer.write_all(b"\x57\x02\x03\xA1\x00\x02").await.unwrap();
    answer.finish().unwrap();
    let failure = soon(reply.answer()).await.unwrap_err();
    assert!(!failure.is_shutdown() && failure.stop_reason().is_none());
    assert!(matches!(failure.into_error(), Error::Rejected));
    let (_request, reply) = soon(requester.open(TransferMeta::default())).await.unwrap();
    let (mut answer, _theirs) = soon(connection.accept_bi()).await.unwrap();
    answer.reset(raw::code(codes::CANCELED)).unwrap();
    let failure = soon(reply.answer()).await.unwrap_err();
    assert_eq!(failure.stop_reason(), Some(StopReason::Canceled));
    assert!(matches!(failure.into_error(), Error::Canceled));
}
