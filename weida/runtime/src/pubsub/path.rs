//! One publisher path: who holds which filters, and what a publish does.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use weida_core::{Error, Filter, OrderingMode, Result, TraceContext};
use weida_protocol::{DataHeader, Extensions, FrameKind, encode_frame};

use super::admission::{Hook, SubscriptionRequest};
use super::budget::Budget;
use super::index::{FilterIndex, Holder};
use super::writer::{Copy, Writer};
use super::{DropCause, DropTable};
use crate::config::RuntimeConfig;
use crate::connection::{Connection, ConnectionId};

/// Payloads up to this size share one allocation with their frame head, so
/// that a copy is one chunk; larger ones stay the caller's own buffer.
const ONE_CHUNK_BYTES: usize = 4 << 10;
/// Head bytes beside path, topic and trace: preamble, keys, lengths, numbers.
const HEAD_ROOM_BYTES: usize = 48;

/// The subscriptions at one path, with or without a publisher.
pub(crate) struct Path {
    name: Arc<str>,
    max_payload_bytes: usize,
    state: Mutex<State>,
}

struct State {
    index: FilterIndex,
    members: Vec<Option<Member>>,
    free: Vec<u32>,
    by_connection: HashMap<ConnectionId, u32>,
    /// Writers of connections without a filter here that still have copies.
    leaving: HashMap<ConnectionId, Arc<Writer>>,
    /// Filters over all members.
    filters: usize,
    /// Publishers at this path now: one or none, but a successor may register
    /// before the predecessor's last clone is gone.
    publishers: usize,
    hook: Option<Arc<Hook>>,
    /// Which installation this is, so that an answer of an older hook is
    /// noticed; 0 without a hook.
    hook_epoch: u64,
    /// Counts publishes; tells a member's fresh mark from an old one.
    round: u64,
    /// Members the current publish goes to. Kept for its allocation.
    hits: Vec<u32>,
    numbers: Option<Numbers>,
}

/// One subscribed connection at this path.
struct Member {
    connection: ConnectionId,
    writer: Arc<Writer>,
    /// The largest frame header the subscriber reads.
    max_header_bytes: u64,
    /// Its filters, and whether each is declined.
    filters: HashMap<Filter, bool>,
    round: u64,
    declined: bool,
}

/// Sequence numbers per topic; exists only under negotiated ordering.
/// `[wire 13]`, `[weida S8-20]`
struct Numbers {
    next: HashMap<Box<str>, u64>,
    max_topics: usize,
}

/// What recording a filter came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    New,
    Repeated,
    /// The hook changed while it was asked; ask the new one.
    Stale,
}

/// One subscriber a streamed publish goes to.
pub(super) struct Target {
    pub(super) connection: Connection,
    pub(super) budget: Arc<Budget>,
}

/// What a publisher says of a message beside its topic.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Said<'a> {
    pub(crate) trace: Option<TraceContext>,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) extensions: Extensions<'a>,
}

/// What became of one message at its publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Copies queued, one for each connection that wanted it.
    pub copies: usize,
    /// Copies that a connection wanted and did not get; each counted by cause.
    pub dropped: usize,
}

impl Path {
    pub(super) fn new(name: &str, config: &RuntimeConfig) -> Arc<Self> {
        let limits = &config.limits;
        let numbered = matches!(
            config.guarantees.ordering,
            OrderingMode::PerProducerDetect | OrderingMode::PerProducerReassemble
        );
        Arc::new(Self {
            name: name.into(),
            max_payload_bytes: limits.subscriber_buffer_bytes,
            state: Mutex::new(State {
                index: FilterIndex::default(),
                members: Vec::new(),
                free: Vec::new(),
                by_connection: HashMap::new(),
                leaving: HashMap::new(),
                filters: 0,
                publishers: 0,
                hook: None,
                hook_epoch: 0,
                round: 0,
                hits: Vec::new(),
                numbers: numbered.then(|| Numbers {
                    next: HashMap::new(),
                    max_topics: limits.max_sequence_scopes,
                }),
            }),
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Largest payload, or chunk of a streamed one, that fits a subscriber.
    pub(super) fn max_payload_bytes(&self) -> usize {
        self.max_payload_bytes
    }

    pub(crate) fn subscriber_count(&self) -> usize {
        self.lock().by_connection.len()
    }

    pub(crate) fn filter_count(&self) -> usize {
        self.lock().filters
    }

    // === subscriptions ===

    pub(super) fn holds(&self, connection: ConnectionId, filter: &str) -> bool {
        let state = self.lock();
        let member = state.by_connection.get(&connection);
        member
            .and_then(|at| state.members[*at as usize].as_ref())
            .is_some_and(|member| member.filters.contains_key(filter))
    }

    /// The installed hook, and the installation it belongs to.
    pub(super) fn hook(&self) -> (Option<Arc<Hook>>, u64) {
        let state = self.lock();
        (state.hook.clone(), state.hook_epoch)
    }

    /// Records `filter`, with the answer that the hook of `epoch` gave.
    pub(super) fn record(
        &self,
        connection: &Connection,
        budget: &Arc<Budget>,
        filter: &Filter,
        declined: bool,
        epoch: u64,
    ) -> Kept {
        let mut state = self.lock();
        if state.hook_epoch != epoch {
            return Kept::Stale;
        }
        let at = state.member(connection, budget);
        let Some(member) = &mut state.members[at as usize] else {
            return Kept::Stale;
        };
        match member.filters.entry(filter.clone()) {
            Entry::Occupied(mut known) => {
                known.insert(declined);
                state.index.set_declined(filter, at, declined);
                Kept::Repeated
            }
            Entry::Vacant(free) => {
                free.insert(declined);
                let member = at;
                state.index.insert(filter, Holder { member, declined });
                state.filters += 1;
                Kept::New
            }
        }
    }

    /// Withdraws one filter; whether it was held.
    pub(super) fn withdraw(&self, connection: ConnectionId, filter: &str) -> bool {
        let mut state = self.lock();
        let Some(at) = state.by_connection.get(&connection).copied() else {
            return false;
        };
        let Some(member) = &mut state.members[at as usize] else {
            return false;
        };
        let Some((filter, _)) = member.filters.remove_entry(filter) else {
            return false;
        };
        let last = member.filters.is_empty();
        state.index.remove(&filter, at);
        state.filters -= 1;
        if last
            && let Some(member) = state.forget(at)
            && !member.writer.leave()
        {
            state.leaving.insert(connection, member.writer);
        }
        true
    }

    /// Whether `connection` has a filter or an unwritten copy here.
    pub(super) fn concerns(&self, connection: ConnectionId) -> bool {
        let mut state = self.lock();
        state.by_connection.contains_key(&connection) || {
            state.leaving.retain(|_, writer| !writer.is_over());
            state.leaving.contains_key(&connection)
        }
    }

    /// Forgets everything of a connection that is gone. `[weida S17-26]`
    pub(super) fn drop_connection(&self, connection: ConnectionId) {
        let mut state = self.lock();
        if let Some(writer) = state.leaving.remove(&connection) {
            writer.abandon();
        }
        let Some(at) = state.by_connection.get(&connection).copied() else {
            return;
        };
        let Some(member) = state.forget(at) else {
            return;
        };
        state.filters -= member.filters.len();
        for filter in member.filters.keys() {
            state.index.remove(filter, at);
        }
        drop(state);
        member.writer.abandon();
    }

    /// Whether nothing needs this path to be remembered.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.lock();
        state.by_connection.is_empty() && state.leaving.is_empty() && state.publishers == 0
    }

    // === publisher ===

    /// A publisher serves this path from now on.
    pub(super) fn attach(&self) {
        self.lock().publishers += 1;
    }

    /// It no longer does. Its decisions go with it.
    pub(super) fn detach(&self) {
        let mut state = self.lock();
        state.publishers = state.publishers.saturating_sub(1);
        if state.publishers == 0 {
            state.install(None, false);
        }
    }

    /// Installs `hook` and asks it about every filter already held. Until it
    /// answered for one, that one's copies are declined. `[weida PS-16]`
    pub(super) fn admit(&self, hook: Hook) {
        let hook = Arc::new(hook);
        let (epoch, held) = {
            let mut state = self.lock();
            state.install(Some(Arc::clone(&hook)), true);
            (state.hook_epoch, state.held())
        };
        for (connection, filter) in held {
            let declined = ask(&hook, &connection, &self.name, &filter);
            let mut state = self.lock();
            if state.hook_epoch != epoch {
                return; // a later hook replaced this one
            }
            let id = connection.id();
            let Some(at) = state.by_connection.get(&id).copied() else {
                continue;
            };
            let member = state.members[at as usize].as_mut();
            let Some(known) = member.and_then(|member| member.filters.get_mut(&filter)) else {
                continue;
            };
            *known = declined;
            state.index.set_declined(&filter, at, declined);
        }
    }

    /// Queues one copy per matching subscriber; returns how many, and how many
    /// were not.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`], before anything is queued.
    pub(crate) fn publish(
        &self,
        topic: &str,
        payload: Bytes,
        said: &Said<'_>,
        drops: &DropTable,
    ) -> Result<Published> {
        check_topic(topic)?;
        if payload.len() > self.max_payload_bytes {
            return Err(Error::LimitExceeded(None));
        }
        let mut state = self.lock();
        state.collect(topic);
        let sequence = state.take_number(topic);
        let mut published = Published::default();
        if state.hits.is_empty() {
            return Ok(published);
        }
        let payload_bytes = payload.len();
        let length = Some(payload_bytes as u64);
        let (header_bytes, chunks) = self.encode(topic, length, said, sequence, payload)?;
        let copy = Copy {
            chunks,
            payload_bytes,
        };
        for at in &state.hits {
            let Some(member) = &state.members[*at as usize] else {
                continue;
            };
            let sent = match member.refuses(header_bytes) {
                None => member.writer.push(&copy),
                Some(cause) => Err(cause),
            };
            match sent {
                Ok(()) => published.copies += 1,
                Err(cause) => {
                    published.dropped += 1;
                    drops.count(topic, cause);
                }
            }
        }
        Ok(published)
    }

    /// The frame head of a streamed publish and the subscribers it goes to,
    /// fixed now.
    ///
    /// # Errors
    ///
    /// [`Error::LimitExceeded`] for a topic above its cap.
    pub(super) fn open(
        &self,
        topic: &str,
        trace: Option<TraceContext>,
        drops: &DropTable,
    ) -> Result<(Bytes, Vec<Target>)> {
        check_topic(topic)?;
        let mut state = self.lock();
        state.collect(topic);
        let sequence = state.take_number(topic);
        let said = Said {
            trace,
            ..Said::default()
        };
        let (header_bytes, [head, _]) = self.encode(topic, None, &said, sequence, Bytes::new())?;
        let mut targets = Vec::with_capacity(state.hits.len());
        for at in &state.hits {
            let Some(member) = &state.members[*at as usize] else {
                continue;
            };
            match member.refuses(header_bytes) {
                None => targets.push(Target {
                    connection: member.writer.connection().clone(),
                    budget: Arc::clone(member.writer.budget()),
                }),
                Some(cause) => drops.count(topic, cause),
            }
        }
        Ok((head, targets))
    }

    /// The frame of one message, and its header's length. Encoded once, shared
    /// by all copies. `[weida PS-11]`
    fn encode(
        &self,
        topic: &str,
        content_len: Option<u64>,
        said: &Said<'_>,
        sequence: Option<u64>,
        payload: Bytes,
    ) -> Result<(u64, [Bytes; 2])> {
        let trace = said.trace.map(|trace| trace.to_traceparent());
        let header = DataHeader {
            content_len,
            content_type: said.content_type,
            topic: Some(topic),
            traceparent: trace.as_deref(),
            sequence,
            extensions: said.extensions,
            ..DataHeader::addressed(&self.name)
        };
        let joined = payload.len() <= ONE_CHUNK_BYTES;
        let head_room =
            HEAD_ROOM_BYTES + self.name.len() + topic.len() + trace.as_ref().map_or(0, String::len);
        let body_room = if joined { payload.len() } else { 0 };
        let mut frame = BytesMut::with_capacity(head_room + body_room);
        encode_frame(FrameKind::Data, &header, &mut frame)
            .map_err(|_| Error::LimitExceeded(None))?;
        // Magic, kind and a length of one byte, or two above 63.
        let preamble_bytes = if frame.len() <= 3 + 63 { 3 } else { 4 };
        let header_bytes = (frame.len() - preamble_bytes) as u64;
        if joined {
            frame.extend_from_slice(&payload);
            return Ok((header_bytes, [frame.freeze(), Bytes::new()]));
        }
        Ok((header_bytes, [frame.freeze(), payload]))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The connection's place, made if it has none.
    fn member(&mut self, connection: &Connection, budget: &Arc<Budget>) -> u32 {
        if let Some(at) = self.by_connection.get(&connection.id()) {
            return *at;
        }
        let member = Member {
            connection: connection.id(),
            writer: match self.leaving.remove(&connection.id()) {
                Some(writer) if writer.rejoin() => writer,
                Some(_) | None => Writer::start(connection, budget),
            },
            max_header_bytes: connection
                .agreed()
                .map_or(0, |agreed| agreed.send_max_header_bytes),
            filters: HashMap::new(),
            round: 0,
            declined: false,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.members[at as usize] = Some(member);
                at
            }
            None => {
                self.members.push(Some(member));
                u32::try_from(self.members.len() - 1).expect("fewer connections than u32")
            }
        };
        self.by_connection.insert(connection.id(), at);
        at
    }

    fn forget(&mut self, at: u32) -> Option<Member> {
        let member = self.members[at as usize].take()?;
        self.by_connection.remove(&member.connection);
        self.free.push(at);
        Some(member)
    }

    /// Every (connection, filter) held.
    fn held(&self) -> Vec<(Connection, Filter)> {
        let members = self.members.iter().flatten();
        members
            .flat_map(|member| {
                let connection = member.writer.connection();
                let filters = member.filters.keys();
                filters.map(move |filter| (connection.clone(), filter.clone()))
            })
            .collect()
    }

    /// Puts `hook` in place and every held filter at `declined`.
    fn install(&mut self, hook: Option<Arc<Hook>>, declined: bool) {
        // Never the same twice in a process: a path may go and come again.
        static EPOCH: AtomicU64 = AtomicU64::new(1);
        self.hook_epoch = match &hook {
            Some(_) => EPOCH.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        self.hook = hook;
        for (at, member) in (0..).zip(&mut self.members) {
            for (filter, known) in member.iter_mut().flat_map(|member| &mut member.filters) {
                *known = declined;
                self.index.set_declined(filter, at, declined);
            }
        }
    }

    /// Fills `hits` with the members that hold a matching filter, each once. A
    /// member is declined only if every matching filter of it is.
    /// `[weida PS-2, PS-16]`
    fn collect(&mut self, topic: &str) {
        self.round += 1;
        self.hits.clear();
        let (round, hits, members) = (self.round, &mut self.hits, &mut self.members);
        self.index.visit(topic, |holder| {
            let Some(member) = &mut members[holder.member as usize] else {
                return;
            };
            if member.round == round {
                member.declined &= holder.declined;
                return;
            }
            member.round = round;
            member.declined = holder.declined;
            hits.push(holder.member);
        });
    }

    /// The next number of `topic`, for every message from the path's first
    /// subscriber on, whether it matches anybody or not. `[wire 13]`
    fn take_number(&mut self, topic: &str) -> Option<u64> {
        let numbers = self.numbers.as_mut()?;
        if self.by_connection.is_empty() {
            return None;
        }
        if let Some(next) = numbers.next.get_mut(topic) {
            let number = *next;
            *next += 1;
            return Some(number);
        }
        if numbers.next.len() >= numbers.max_topics {
            return None;
        }
        numbers.next.insert(topic.into(), 1);
        Some(0)
    }
}

impl Member {
    /// Why this member gets no copy of a message with such a header.
    fn refuses(&self, header_bytes: u64) -> Option<DropCause> {
        if self.declined {
            Some(DropCause::Declined)
        } else if header_bytes > self.max_header_bytes {
            Some(DropCause::TooLarge)
        } else {
            None
        }
    }
}

impl std::fmt::Debug for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Path")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What a hook is asked about `filter` of `connection`: proved facts only.
pub(super) fn ask(hook: &Hook, connection: &Connection, path: &str, filter: &str) -> bool {
    let (peer, chain) = (connection.peer(), connection.chain());
    hook.declines(&SubscriptionRequest {
        peer: peer.as_ref(),
        peer_chain: chain.as_ref(),
        path,
        filter,
    })
}

fn check_topic(topic: &str) -> Result<()> {
    if topic.len() > weida_core::topic::MAX_TOPIC_BYTES {
        return Err(Error::LimitExceeded(None));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
