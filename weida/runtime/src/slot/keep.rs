//! The life of one slot: follow its connection, redial it, give it up.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use weida_core::{Error, Fingerprint, LossCause, codes};

use super::{End, Set, Slot, State, proved};
use crate::pool::Pool;
use crate::reconnect::{GiveUp, PeerEvent, ReconnectPolicy};

/// Keeps one slot: follows its connection, redials it, gives it up.
pub(super) async fn keep(set: Arc<Set>, slot: Arc<Slot>, pinned: Option<Fingerprint>) {
    let mut attempt = 0;
    loop {
        let Some(connection) = slot.live() else {
            return;
        };
        let cause = tokio::select! {
            biased;
            () = slot.stop.cancelled() => return,
            cause = connection.closed() => cause,
        };
        let lease = std::mem::replace(&mut *slot.lock(), State::Down(cause.clone()));
        if slot.stop.is_cancelled() {
            return;
        }
        set.removed(&connection, slot.path(), false);
        drop(lease);
        set.changed();
        let lived = set.shared.exec.now() - connection.established();
        let policy = &set.shared.config.reconnect;
        if lived >= policy.max {
            // Only a connection that stayed up earns a fresh schedule, so a
            // crash loop is redialled ever more slowly.
            attempt = 0;
        }
        set.events.emit(PeerEvent::Lost {
            url: Arc::clone(&slot.url),
            cause: cause.clone(),
        });
        if let Some(end) = set.refuses_redial(policy, &cause) {
            set.gave_up(&slot, end.0, end.1);
            return;
        }
        if !redial(&set, &slot, pinned, &cause, &mut attempt).await {
            return;
        }
    }
}

impl Set {
    /// Why a loss is not redialled at all.
    fn refuses_redial(&self, policy: &ReconnectPolicy, cause: &LossCause) -> Option<(End, GiveUp)> {
        let policy_end = || Some((End::Lost(cause.clone()), GiveUp::Policy { attempts: 0 }));
        match cause {
            LossCause::LocallyClosed => policy_end(),
            LossCause::PeerClosed(Some(reason))
                if reason.code() == codes::LIMIT_EXCEEDED
                    && self
                        .registration
                        .as_ref()
                        .is_some_and(|registration| registration.carries_filters()) =>
            {
                // The same filters would be refused again, for ever. [weida RD-8]
                Some((
                    End::Limit(reason.clone()),
                    GiveUp::Failed(reason.to_string()),
                ))
            }
            LossCause::PeerClosed(_) if policy.stop_on_peer_closed => policy_end(),
            _ if !policy.redials() => policy_end(),
            _ => None,
        }
    }
}

/// Redials until the slot is live again; `false` when it is over.
async fn redial(
    set: &Arc<Set>,
    slot: &Slot,
    pinned: Option<Fingerprint>,
    cause: &LossCause,
    attempt: &mut u32,
) -> bool {
    let policy = set.shared.config.reconnect.clone();
    let mut tried = 0;
    // The peer said that a successor serves, or is about to. [wire 23]
    let mut at_once = *cause == LossCause::PeerRestarting;
    loop {
        if policy.max_attempts.is_some_and(|max| *attempt >= max) {
            let why = GiveUp::Policy { attempts: tried };
            set.gave_up(slot, End::Lost(cause.clone()), why);
            return false;
        }
        *attempt = attempt.saturating_add(1);
        tried += 1;
        let delay = if std::mem::take(&mut at_once) {
            Duration::ZERO
        } else {
            policy.delay(*attempt)
        };
        set.events.emit(PeerEvent::Retrying {
            url: Arc::clone(&slot.url),
            attempt: *attempt,
            delay,
        });
        let dial = async {
            set.shared.exec.sleep(delay).await;
            let lease = Pool::lease(&set.shared, &slot.target, pinned).await?;
            if proved(&lease) != pinned {
                return Err(Redial::Changed(proved(&lease)));
            }
            set.install(&lease).await.map_err(Redial::Install)?;
            Ok::<_, Redial>(lease)
        };
        let result = tokio::select! {
            biased;
            () = slot.stop.cancelled() => return false,
            () = set.shared.stop.cancelled() => {
                let why = GiveUp::Policy { attempts: tried - 1 };
                set.gave_up(slot, End::Lost(LossCause::LocallyClosed), why);
                return false;
            }
            result = dial => result,
        };
        let (end, why) = match result {
            Ok(lease) => {
                slot.redials.fetch_add(1, Ordering::Relaxed);
                set.went_live(slot, lease);
                return true;
            }
            Err(Redial::Changed(presented) | Redial::Dial(DialError::Untrusted(presented))) => (
                End::PeerChanged(presented),
                GiveUp::PeerChanged { presented },
            ),
            Err(Redial::Dial(DialError::Final(error))) => {
                (End::Lost(cause.clone()), GiveUp::Failed(error.to_string()))
            }
            Err(Redial::Install(error)) => match error {
                // The connection went away under the registration: a loss like
                // any other.
                Error::ConnectionLost(_) | Error::Indeterminate | Error::Transport(_) => continue,
                Error::LimitExceeded(Some(reason)) => {
                    let text = reason.to_string();
                    (End::Limit(reason), GiveUp::Failed(text))
                }
                error => (End::Lost(cause.clone()), GiveUp::Failed(error.to_string())),
            },
            Err(Redial::Dial(DialError::Again(error))) => {
                tracing::debug!(url = %slot.url, %error, "redial failed");
                continue;
            }
        };
        set.gave_up(slot, end, why);
        return false;
    }
}

/// Why a redial did not bring the slot back.
enum Redial {
    Changed(Option<Fingerprint>),
    Install(Error),
    Dial(DialError),
}

enum DialError {
    Untrusted(Option<Fingerprint>),
    /// Trying again would not change it.
    Final(Error),
    Again(Error),
}

impl From<Error> for Redial {
    fn from(error: Error) -> Self {
        Self::Dial(match error {
            Error::Untrusted(presented) => DialError::Untrusted(Some(presented)),
            Error::Tls(_) | Error::Negotiation(_) | Error::Unsupported | Error::Protocol(_) => {
                DialError::Final(error)
            }
            error => DialError::Again(error),
        })
    }
}
