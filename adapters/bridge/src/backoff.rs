//! How long to wait before dialling again.

use std::time::Duration;

use rand::Rng;

/// Reconnect delays: doubling from a base to a cap, with jitter, without an attempt limit.
///
/// Each delay is the current step minus a random share of it, at most `jitter`: never longer than the cap, and many
/// clients that lost one broker at one moment do not come back at one moment.
///
/// ```
/// use std::time::Duration;
/// use weida_bridge::Backoff;
///
/// let mut backoff = Backoff::default();
/// let first = backoff.next(&mut rand::rng());
/// assert!(first >= Duration::from_millis(100) && first <= Duration::from_millis(200));
/// backoff.reset(); // connected
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Backoff {
    base: Duration,
    cap: Duration,
    jitter: f64,
    step: Duration,
}

impl Backoff {
    /// First step, 200 ms [reconciled R16].
    pub const BASE: Duration = Duration::from_millis(200);
    /// Longest step, 30 s [reconciled R16].
    pub const CAP: Duration = Duration::from_secs(30);
    /// Largest share of a step that chance takes off [reconciled R16].
    pub const JITTER: f64 = 0.5;

    /// Steps from `base` to `cap`; `jitter` is clamped to 0..=1, and a cap below the base is the base.
    ///
    /// Both are cut at a day, past which a delay is no reconnect any more. A base of zero is taken as one millisecond: an endless loop of dialling at once is never meant.
    #[must_use]
    pub fn new(base: Duration, cap: Duration, jitter: f64) -> Self {
        let base = base.clamp(Duration::from_millis(1), LONGEST);
        let jitter = if jitter.is_finite() {
            jitter.clamp(0.0, 1.0)
        } else {
            Self::JITTER
        };
        Self {
            base,
            cap: cap.clamp(base, LONGEST),
            jitter,
            step: base,
        }
    }

    /// The next delay.
    pub fn next<R: Rng + ?Sized>(&mut self, rng: &mut R) -> Duration {
        let step = self.step;
        self.step = step.saturating_mul(2).min(self.cap);
        step.mul_f64(1.0 - self.jitter * rng.random::<f64>())
    }

    /// Starts over at the base; call it once a connection proved useful, not when the socket opened.
    pub fn reset(&mut self) {
        self.step = self.base;
    }
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new(Self::BASE, Self::CAP, Self::JITTER)
    }
}

const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    #[test]
    fn reconciled_r16_steps_double_from_200_ms_to_30_s() {
        let mut backoff = Backoff::new(Backoff::BASE, Backoff::CAP, 0.0);
        let mut rng = StdRng::seed_from_u64(1);
        let steps: Vec<_> = (0..10)
            .map(|_| backoff.next(&mut rng).as_millis())
            .collect();
        assert_eq!(
            steps,
            [
                200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000
            ]
        );
        backoff.reset();
        assert_eq!(backoff.next(&mut rng).as_millis(), 200);
    }

    #[test]
    fn reconciled_r16_jitter_takes_off_up_to_half() {
        let mut rng = StdRng::seed_from_u64(7);
        let delays: Vec<_> = (0..1000)
            .map(|_| Backoff::default().next(&mut rng))
            .collect();
        assert!(
            delays
                .iter()
                .all(|delay| (100..=200).contains(&delay.as_millis()))
        );
        assert!(delays.iter().any(|delay| delay.as_millis() < 110));
        assert!(delays.iter().any(|delay| delay.as_millis() > 190));
    }

    #[test]
    fn it_never_ends_and_never_passes_the_cap() {
        let mut backoff = Backoff::default();
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..100_000 {
            assert!(backoff.next(&mut rng) <= Backoff::CAP);
        }
    }

    #[test]
    fn the_same_generator_gives_the_same_delays() {
        let delays = |seed| {
            let (mut backoff, mut rng) = (Backoff::default(), StdRng::seed_from_u64(seed));
            (0..8).map(|_| backoff.next(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(delays(5), delays(5));
        assert_ne!(delays(5), delays(6));
    }

    #[test]
    fn odd_settings_become_usable_ones() {
        let mut rng = StdRng::seed_from_u64(2);
        let mut backoff = Backoff::new(Duration::ZERO, Duration::ZERO, f64::NAN);
        assert!(backoff.next(&mut rng) > Duration::ZERO);
        assert!(
            Backoff::new(Duration::MAX, Duration::MAX, -1.0).next(&mut rng)
                > Duration::from_secs(1)
        );
    }
}
