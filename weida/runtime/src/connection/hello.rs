//! HELLO both ways, and what it settles. `[wire 5, 8.1]`

use std::sync::atomic::Ordering;

use weida_protocol::{Agreed, FrameKind, Hello};

use super::{Connection, Phase, head};
use crate::config::RuntimeConfig;

/// What this side says in HELLO.
fn ours(config: &RuntimeConfig) -> Hello {
    let limits = &config.limits;
    Hello {
        offered: config.guarantees,
        required: config.guarantees,
        ..Hello::v0(
            limits.max_header_bytes,
            u64::from(limits.max_concurrent_uni_streams),
        )
    }
}

/// Sends our HELLO and gives the peer its time to send one.
pub(super) async fn greet(connection: Connection) {
    let config = &connection.shared().config;
    let hello = ours(config);
    let sent = async {
        let frame = head::Frame::encode(FrameKind::Hello, &hello)?;
        let mut stream = connection.open_uni().await?;
        let written = stream.write_chunks(&mut [frame.into_bytes()]).await;
        written.map_err(|fail| connection.send_error(fail))?;
        stream.finish().map_err(|fail| connection.send_error(fail))
    };
    let exchanged = async {
        // A loss while writing is explained by the close; what had arrived may
        // still be interpreted.
        let _: weida_core::Result<()> = sent.await;
        connection.0.greeted.store(true, Ordering::Release);
        connection
            .0
            .phase
            .send_if_modified(|phase| advance(&connection, phase));
        let mut phase = connection.phase();
        tokio::select! {
            _ = phase.wait_for(|phase| !matches!(phase, Phase::Greeting)) => {}
            _ = connection.quic().closed() => {}
        }
    };
    let limit = config.limits.hello_timeout();
    if connection
        .shared()
        .exec
        .timeout(limit, exchanged)
        .await
        .is_none()
    {
        connection.negotiation_failed("no HELLO in time");
    }
}

/// Takes the peer's HELLO.
pub(super) fn received(connection: &Connection, theirs: &Hello) {
    let config = &connection.shared().config;
    let ours = ours(config);
    match weida_protocol::negotiate(&ours, theirs) {
        Ok(agreed) => settle(connection, agreed),
        Err(error) => connection.negotiation_failed(&error.to_string()),
    }
}

fn settle(connection: &Connection, agreed: Agreed) {
    if connection.0.agreed.set(agreed).is_err() {
        return connection.violation("second HELLO");
    }
    connection
        .0
        .phase
        .send_if_modified(|phase| advance(connection, phase));
}

/// Greeting becomes ready once our HELLO is written and theirs negotiated.
fn advance(connection: &Connection, phase: &mut Phase) -> bool {
    let both = connection.agreed().is_some() && connection.0.greeted.load(Ordering::Acquire);
    // The connection is handed out only when both are through. [wire 5.1]
    if both && *phase == Phase::Greeting {
        *phase = Phase::Ready;
        return true;
    }
    false
}
