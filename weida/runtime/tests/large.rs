//! Payloads larger than memory should be. `[weida 7.4]`
#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod common;

use common::{Server, client, soon};
use weida::{TransferMeta, Trust};

/// Peak resident memory of this process, in bytes.
fn peak_resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// LG-1 in its short form: both ends, both directions at once, in one process
/// whose peak stays far below the payload.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lg_1_an_echo_of_a_large_payload_keeps_memory_constant() {
    const TOTAL_BYTES: usize = 256 << 20;
    let server = Server::start().await;
    let replier = server.listener.replier("/echo").unwrap();
    let runtime = client();
    let requester = runtime.requester(Trust::by_address());
    soon(requester.connect(&server.url("/echo"))).await.unwrap();
    let echo = async {
        let mut request = replier.accept().await.unwrap();
        let mut body = request.take_body();
        let mut reply = request.reply(TransferMeta::default()).await.unwrap();
        while let Some(chunk) = body.read_chunk(64 << 10).await.unwrap() {
            reply.write_chunk(chunk).await.unwrap();
        }
        reply.finish().unwrap();
    };
    let (mut request, reply) = requester.open(TransferMeta::default()).await.unwrap();
    let send = async {
        let chunk = bytes::Bytes::from(vec![0xA5; 256 << 10]);
        for _ in 0..TOTAL_BYTES / chunk.len() {
            request.write_chunk(chunk.clone()).await.unwrap();
        }
        request.finish().unwrap().delivered().await.unwrap();
    };
    let receive = async {
        let mut reply = reply.recv().await.unwrap();
        let mut received = 0;
        while let Some(chunk) = reply.read_chunk(usize::MAX).await.unwrap() {
            assert!(chunk.iter().all(|byte| *byte == 0xA5));
            received += chunk.len();
        }
        received
    };
    let ((), (), received) = tokio::join!(echo, send, receive);
    assert_eq!(received, TOTAL_BYTES);
    let peak = peak_resident_bytes();
    assert!(peak < 64 << 20, "peak resident {} MiB", peak >> 20);
}
