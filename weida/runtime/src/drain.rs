//! Ending a runtime: abortively, or after what was finished has arrived.

use std::sync::Arc;
use std::time::Duration;

use weida_core::codes;

use crate::connection::{Connection, SendHalf};
use crate::shared::Shared;

/// What a drain achieved, counted locally.
///
/// Both numbers are about transfers that were finished and unacknowledged when
/// the drain began. Neither says anything about the peer's application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Transfers the peer's transport acknowledged in full before the deadline.
    pub delivered: u64,
    /// Transfers still unacknowledged at the deadline, refused by the peer, or
    /// lost with their connection.
    pub outstanding: u64,
}

/// Stops admission, waits for parked receipts, closes. `[weida DR-2]`
pub(crate) async fn drain(shared: &Arc<Shared>, limit: Duration) -> Drained {
    let began = shared.exec.now();
    shared.stop_admission();
    let mut drained = Drained::default();
    // A copy is finished the moment it is published; only when it is written
    // is there a receipt to wait for.
    shared.exec.timeout(limit, shared.copies.written()).await;
    drained.outstanding += shared.copies.count() as u64;
    let mut waiting: Vec<SendHalf> = Vec::new();
    for connection in shared.connections() {
        let (receipts, evicted) = connection.take_receipts();
        drained.outstanding += evicted;
        waiting.extend(receipts);
    }
    let total = waiting.len() as u64;
    let wait = async {
        for stream in &waiting {
            if stream.settled().await.is_ok() {
                drained.delivered += 1;
            }
        }
    };
    let left = limit.saturating_sub(shared.exec.now() - began);
    shared.exec.timeout(left, wait).await;
    drained.outstanding += total - drained.delivered;
    drop(waiting);
    let left = limit.saturating_sub(shared.exec.now() - began);
    close(shared, left.max(GOODBYE)).await;
    drained
}

/// What an expired drain still gives its close frames to leave the socket. Without it a peer hears nothing and holds a dead
/// connection until its next keep-alive. `[weida DR-2]`
const GOODBYE: Duration = Duration::from_millis(100);

/// Closes everything with SHUTDOWN and frees the ports. `[weida DR-1, DR-7]`
pub(crate) async fn close(shared: &Arc<Shared>, limit: Duration) {
    let connections: Vec<Connection> = shared.connections();
    shared.stop_admission();
    shared.stop.cancel();
    for connection in &connections {
        connection.close(codes::SHUTDOWN, "runtime shut down");
    }
    let bindings = shared.bindings();
    let idle = async {
        for binding in &bindings {
            binding.close_now();
            binding.wait_idle().await;
        }
        shared.sockets.close_and_wait().await;
    };
    shared.exec.timeout(limit, idle).await;
    for binding in &bindings {
        binding.close_now();
        binding.free_port();
    }
    shared.sockets.free_ports();
}
