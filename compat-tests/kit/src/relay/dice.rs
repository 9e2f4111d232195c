//! What chance does to one datagram; the same seed gives the same fates.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{Direction, UdpFaults};

/// A seeded source of fates for one direction of one session.
#[derive(Debug, Clone)]
pub struct Dice(StdRng);

/// What happens to one datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// How often it arrives: 0 lost, 2 duplicated.
    pub copies: u8,
    /// How long it is held.
    pub delay: Duration,
    /// True when it was held longer, so that later ones overtake it.
    pub reordered: bool,
}

impl Dice {
    /// Dice of one direction of one session; each gets its own sequence from one seed.
    #[must_use]
    pub fn new(seed: u64, session: u64, direction: Direction) -> Self {
        // Far apart, so that neighbouring sessions and seeds share nothing.
        let mixed =
            seed ^ (session * 2 + direction.index() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(StdRng::seed_from_u64(mixed))
    }

    /// The fate of the next datagram. Rolls as often whatever the faults are, so that changing one of them leaves the
    /// sequence of the others alone.
    pub fn roll(&mut self, faults: &UdpFaults) -> Fate {
        let [lost, doubled, late, jitter] = std::array::from_fn(|_| self.0.random::<f64>());
        let reordered = late < faults.reorder;
        let extra = if reordered {
            faults.reorder_by
        } else {
            Duration::ZERO
        };
        Fate {
            copies: if lost < faults.loss {
                0
            } else {
                1 + u8::from(doubled < faults.duplicate)
            },
            delay: faults.delay + faults.jitter.mul_f64(jitter) + extra,
            reordered,
        }
    }

    /// The delay of the next piece of a byte stream.
    pub(crate) fn delay(&mut self, delay: Duration, jitter: Duration) -> Duration {
        delay + jitter.mul_f64(self.0.random::<f64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64, faults: &UdpFaults) -> Vec<Fate> {
        let mut dice = Dice::new(seed, 0, Direction::Up);
        (0..10_000).map(|_| dice.roll(faults)).collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_fates() {
        let faults = UdpFaults {
            loss: 0.1,
            duplicate: 0.1,
            reorder: 0.1,
            ..UdpFaults::default()
        };
        assert_eq!(fates(1, &faults), fates(1, &faults));
        assert_ne!(fates(1, &faults), fates(2, &faults));
        let mut other = Dice::new(1, 0, Direction::Down);
        assert_ne!(
            fates(1, &faults),
            (0..10_000).map(|_| other.roll(&faults)).collect::<Vec<_>>()
        );
    }

    #[test]
    fn rates_are_what_was_asked_for() {
        let faults = UdpFaults {
            loss: 0.2,
            duplicate: 0.1,
            reorder: 0.3,
            ..UdpFaults::default()
        };
        let fates = fates(9, &faults);
        let share = |wanted: fn(&Fate) -> bool| {
            fates.iter().filter(|fate| wanted(fate)).count() as f64 / 10_000.0
        };
        assert!((0.18..0.22).contains(&share(|fate| fate.copies == 0)));
        assert!(
            (0.07..0.09).contains(&share(|fate| fate.copies == 2)),
            "a tenth of those that are not lost"
        );
        assert!((0.28..0.32).contains(&share(|fate| fate.reordered)));
    }

    #[test]
    fn changing_one_fault_leaves_the_others_alone() {
        let lossy = UdpFaults {
            loss: 0.2,
            ..UdpFaults::default()
        };
        let worse = UdpFaults {
            duplicate: 0.5,
            jitter: Duration::from_millis(3),
            ..lossy
        };
        let lost = |fates: &[Fate]| {
            fates
                .iter()
                .map(|fate| fate.copies == 0)
                .collect::<Vec<_>>()
        };
        assert_eq!(lost(&fates(4, &lossy)), lost(&fates(4, &worse)));
    }
}
