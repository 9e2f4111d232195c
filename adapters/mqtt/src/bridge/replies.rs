//! Requests of weida peers that wait for an answer on `$reply/<gateway>/<token>`. [mqtt 11.4]
//!
//! Only a session that received the request may answer, once, with the right Correlation Data.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::oneshot;
use weida_bridge::{GatewayId, Reply};

use super::headers::to_reply;
use super::settle::refused;
use crate::codec::{Publish, ReasonCode, TopicName};
use crate::io::Verdict;
use crate::metrics::{Cause, ListenerMetrics};

/// Open requests of one listener group; each egress route bounds its own.
#[derive(Debug)]
pub(crate) struct Replies {
    prefix: String,
    open: Mutex<HashMap<Box<str>, OpenRequest>>,
}

#[derive(Debug)]
struct OpenRequest {
    correlation: [u8; 16],
    /// Sessions that received the request.
    receivers: Vec<u64>,
    answer: oneshot::Sender<Reply>,
}

/// What a request carries so that its answer is found.
#[derive(Debug)]
pub(super) struct Address {
    pub(super) topic: TopicName,
    pub(super) correlation: Bytes,
    token: Box<str>,
}

impl Replies {
    pub(crate) fn new(gateway: GatewayId) -> Self {
        Self {
            prefix: format!("$reply/{gateway}/"),
            open: Mutex::default(),
        }
    }

    /// Publishes a request and opens its answer. `publish` is given the address and returns the
    /// numbers of the sessions it reached; `None` when it reached nobody.
    pub(super) fn open(
        &self,
        publish: impl FnOnce(&Address) -> Vec<u64>,
    ) -> Option<(Address, oneshot::Receiver<Reply>)> {
        let correlation: [u8; 16] = rand::random();
        let token: Box<str> = hex(rand::random()).into();
        let topic = TopicName::parse(&format!("{}{token}", self.prefix)).ok()?;
        let address = Address {
            topic,
            correlation: Bytes::copy_from_slice(&correlation),
            token,
        };
        let (answer, answered) = oneshot::channel();
        // Held over the fan-out: an answer may come before the last session was reached.
        let mut open = self.lock();
        let receivers = publish(&address);
        if receivers.is_empty() {
            return None;
        }
        open.insert(
            address.token.clone(),
            OpenRequest {
                correlation,
                receivers,
                answer,
            },
        );
        drop(open);
        Some((address, answered))
    }

    /// Nobody waits any more.
    pub(super) fn close(&self, address: &Address) {
        self.lock().remove(&address.token);
    }

    /// A publish below `$` from session `number`.
    pub(super) fn answer(
        &self,
        publish: &Publish,
        number: u64,
        metrics: &ListenerMetrics,
    ) -> Verdict {
        let denied = refused(ReasonCode::NotAuthorized, Cause::NotAuthorized);
        let topic = publish.topic.as_str();
        let Some(token) = topic.strip_prefix(&*self.prefix) else {
            return denied;
        };
        let mut open = self.lock();
        let Some(request) = open.get(token) else {
            metrics.late_reply.add(1);
            return Verdict::Nobody;
        };
        let message = &publish.properties.message;
        let right = message.correlation_data.as_deref() == Some(&request.correlation[..]);
        if !request.receivers.contains(&number) || !right {
            return denied;
        }
        let Some(request) = open.remove(token) else {
            return denied;
        };
        drop(open);
        let payload = Bytes::copy_from_slice(&publish.payload);
        match request.answer.send(to_reply(message, payload)) {
            Ok(()) => Verdict::Done,
            Err(_) => {
                metrics.late_reply.add(1);
                Verdict::Nobody
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, OpenRequest>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hex(bytes: [u8; 16]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(32), |mut out, byte| {
            let _: std::fmt::Result = write!(out, "{byte:02x}"); // a String takes everything
            out
        })
}
