//! What a peer can make this side hold. [weida 16]

use std::time::Duration;

use weida::{Limits, RuntimeConfig, Trust};

use crate::common::raw::{RawClient, open_uni};
use crate::common::{Server, soon};

/// Payload nobody reads is bounded by the connection's window, however many
/// streams it is spread over; and the window is there to be used.
#[tokio::test]
async fn inv_2_unread_payload_is_bounded_by_the_windows() {
    const WINDOW_BYTES: usize = 256 << 10;
    let config = RuntimeConfig {
        limits: Limits {
            stream_receive_window: 64 << 10,
            connection_receive_window: WINDOW_BYTES as u64,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    };
    let server = Server::with(config).await;
    let _puller = server.listener.puller("/x").unwrap();
    let raw = RawClient::greeted(server.binding.local_addr()).await;
    let head = [0x57, 1, 5, 0xA1, 0, 0x62, b'/', b'x'];
    let mut streams = Vec::new();
    for _ in 0..16 {
        streams.push(open_uni(&raw.connection, &head).await);
    }
    let mut taken = 0;
    for stream in &mut streams {
        let moment = Duration::from_millis(50);
        // A write is accepted as far as the other side granted room.
        while let Ok(written) = tokio::time::timeout(moment, stream.write(&[7; 8192])).await {
            taken += written.unwrap();
            assert!(taken <= WINDOW_BYTES, "{taken}");
        }
    }
    assert!(taken > WINDOW_BYTES / 2, "{taken}");
    // The sender stalled itself and nobody else.
    let runtime = crate::common::client();
    let other = runtime.pusher(Trust::by_address());
    soon(other.connect(&server.url("/x"))).await.unwrap();
    soon(other.send(b"alive")).await.unwrap();
}
