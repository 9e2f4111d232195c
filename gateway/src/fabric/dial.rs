//! Keeps a dialled weida address dialled, for ever, and tells the route whether it is there.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use weida::{PeerEvent, PeerEvents, Pusher, Requester, Subscriber};
use weida_bridge::Backoff;

use crate::policy::presence::Presence;

/// A destination that said goodbye and keeps its connection is tried again this often.
const GOODBYE_HOLDS: Duration = Duration::from_secs(30);

/// What dialling endpoints have in common.
pub(super) trait Dials: Send + Sync + 'static {
    fn connect(&self, url: &str) -> impl Future<Output = Result<(), weida::Error>> + Send;
    fn disconnect(&self, url: &str) -> bool;
    fn peer_count(&self) -> usize;
    fn events(&self) -> PeerEvents;
}

macro_rules! dials {
    ($($endpoint:ty),+) => {$(
        impl Dials for Arc<$endpoint> {
            async fn connect(&self, url: &str) -> Result<(), weida::Error> {
                self.as_ref().connect(url).await
            }

            fn disconnect(&self, url: &str) -> bool {
                self.as_ref().disconnect(url)
            }

            fn peer_count(&self) -> usize {
                self.as_ref().peer_count()
            }

            fn events(&self) -> PeerEvents {
                self.as_ref().events()
            }
        }
    )+};
}

dials!(Pusher, Requester, Subscriber);

/// Dials `url` until `stop`, following what the runtime reports.
///
/// The runtime redials a connection that it once had. What it gives up, and the first dial, are repeated here: no fault of a
/// destination may need an operator at the gateway (`gateway.md` rule 7).
pub(super) async fn keep_dialled(
    endpoint: impl Dials,
    url: Arc<str>,
    presences: Vec<Arc<Presence>>,
    stop: CancellationToken,
) {
    let set = |here: bool| {
        let now = Instant::now();
        presences
            .iter()
            .for_each(|presence| presence.set(here, now));
    };
    let dial = async {
        let mut backoff = Backoff::default();
        let mut told: Option<String> = None;
        loop {
            let mut events = endpoint.events();
            match endpoint.connect(&url).await {
                Ok(()) => {
                    info!(code = "DST001", %url, "destination reached");
                    told = None;
                    backoff.reset();
                    set(true);
                    follow(&endpoint, &url, &mut events, &set).await;
                    set(false);
                    endpoint.disconnect(&url);
                }
                Err(error) => {
                    // Once per change, not once per try.
                    let text = error.to_string();
                    if told.as_ref() != Some(&text) {
                        warn!(code = "DST002", %url, err = %text, "destination not reached, trying on");
                        told = Some(text);
                    }
                }
            }
            let wait = backoff.next(&mut rand::rng());
            tokio::time::sleep(wait).await;
        }
    };
    tokio::select! {
        biased;
        () = stop.cancelled() => {}
        () = dial => {}
    }
}

/// Follows one address until the runtime gives it up.
async fn follow(endpoint: &impl Dials, url: &str, events: &mut PeerEvents, set: &impl Fn(bool)) {
    loop {
        let event = match tokio::time::timeout(GOODBYE_HOLDS, events.recv()).await {
            Ok(Some(event)) => event,
            Ok(None) => return,
            // Nothing new. One that said goodbye (`Presence::leaves`) and stayed is given another try.
            Err(_quiet) => PeerEvent::Missed(0),
        };
        match event {
            PeerEvent::Connected { .. } => {
                info!(code = "DST001", url, "destination reached");
                set(true);
            }
            PeerEvent::Lost { cause, .. } => {
                warn!(code = "DST003", url, %cause, "destination lost, redialling");
                set(false);
            }
            PeerEvent::Retrying { attempt, delay, .. } => {
                debug!(url, attempt, ?delay, "redial scheduled");
            }
            PeerEvent::GaveUp { why, .. } => {
                warn!(code = "DST004", url, ?why, "redial given up, dialling anew");
                return;
            }
            // What was missed may have been the last transition; the count is the truth.
            PeerEvent::Missed(_) => set(endpoint.peer_count() > 0),
        }
    }
}
