//! Acknowledgements we owe, in the order their publishes came. [MQTT5 4.6]

use std::collections::VecDeque;

use crate::codec::{PacketId, ReasonCode};

/// What a QoS 1 publisher is told. Later ones win over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// Nobody wanted it: 0x10.
    Nobody,
    /// Taken by everybody who was asked: 0x00.
    Done,
    /// Refused with this code.
    Refused(Refused),
    /// The end is unknown, or the destination will still be asked: no PUBACK at all.
    Withheld,
}

/// A definite no for one publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) code: ReasonCode,
    pub(crate) cause: crate::metrics::Cause,
}

impl PartialOrd for Refused {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Refused {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.code.code().cmp(&other.code.code())
    }
}

/// The line of unacknowledged publishes.
#[derive(Debug, Default)]
pub(crate) struct AckLine {
    entries: VecDeque<Entry>,
    /// Serial of the front entry.
    first: u64,
}

#[derive(Debug)]
struct Entry {
    packet_id: PacketId,
    pending: u32,
    verdict: Verdict,
}

impl AckLine {
    /// Takes a publish into the line; it waits for one [`settle`](Self::settle) at least.
    pub(crate) fn open(&mut self, packet_id: PacketId) -> u64 {
        self.entries.push_back(Entry {
            packet_id,
            pending: 1,
            verdict: Verdict::Nobody,
        });
        self.first + self.entries.len() as u64 - 1
    }

    /// The publish waits for so many answers more.
    pub(crate) fn expect(&mut self, serial: u64, answers: u32) {
        if let Some(entry) = self.entry(serial) {
            entry.pending += answers;
        }
    }

    pub(crate) fn settle(&mut self, serial: u64, verdict: Verdict) {
        if let Some(entry) = self.entry(serial) {
            entry.verdict = entry.verdict.max(verdict);
            entry.pending = entry.pending.saturating_sub(1);
        }
    }

    /// The oldest publish, once all its answers are there.
    pub(crate) fn pop(&mut self) -> Option<(PacketId, Verdict)> {
        let settled = self.entries.front().is_some_and(|entry| entry.pending == 0);
        let entry = settled.then(|| self.entries.pop_front()).flatten()?;
        self.first += 1;
        Some((entry.packet_id, entry.verdict))
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&mut self, serial: u64) -> Option<&mut Entry> {
        let at = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        self.entries.get_mut(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Cause;

    fn id(value: u16) -> PacketId {
        PacketId::new(value).unwrap()
    }

    #[test]
    fn mqtt_4_6_acks_leave_in_receipt_order() {
        let mut line = AckLine::default();
        let (a, b, c) = (line.open(id(1)), line.open(id(2)), line.open(id(3)));
        line.settle(b, Verdict::Done);
        line.settle(c, Verdict::Nobody);
        assert_eq!(line.pop(), None, "the first one is not settled");
        line.settle(a, Verdict::Done);
        assert_eq!(line.pop(), Some((id(1), Verdict::Done)));
        assert_eq!(line.pop(), Some((id(2), Verdict::Done)));
        assert_eq!(line.pop(), Some((id(3), Verdict::Nobody)));
        assert_eq!((line.pop(), line.len()), (None, 0));
    }

    /// The most serious answer of several decides.
    #[test]
    fn answers_fold_to_the_most_serious() {
        let quota = Refused {
            code: ReasonCode::QuotaExceeded,
            cause: Cause::Limit,
        };
        let mut line = AckLine::default();
        let a = line.open(id(1));
        line.expect(a, 2);
        line.settle(a, Verdict::Nobody);
        line.settle(a, Verdict::Refused(quota));
        line.settle(a, Verdict::Done);
        assert_eq!(line.pop(), Some((id(1), Verdict::Refused(quota))));
        let b = line.open(id(2));
        line.expect(b, 1);
        line.settle(b, Verdict::Withheld);
        line.settle(b, Verdict::Refused(quota));
        assert_eq!(line.pop(), Some((id(2), Verdict::Withheld)));
    }
}
