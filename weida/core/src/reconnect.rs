//! When a lost address is dialled again. [wire 23]

use std::time::Duration;

/// How a dialling endpoint redials an address it has lost: exponential, capped, jittered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Delay before the first redial; doubles with every further attempt. Default 100 ms.
    pub initial: Duration,
    /// Cap of the delay, and how long a connection must live to earn a fresh schedule. Default 30 s.
    pub max: Duration,
    /// Whether each delay is drawn from the upper half of its value. Default on.
    pub jitter: bool,
    /// Attempts before giving up; `None` tries for as long as the endpoint lives, the default.
    pub max_attempts: Option<u32>,
    /// Give up when the peer closed on purpose, other than to restart. Default off.
    pub stop_on_peer_closed: bool,
}

impl ReconnectPolicy {
    /// No redial at all.
    pub fn never() -> Self {
        Self {
            max_attempts: Some(0),
            ..Self::default()
        }
    }

    /// Whether a lost address is dialled again at all.
    pub fn redials(&self) -> bool {
        self.max_attempts != Some(0)
    }

    /// The delay before `attempt` (from 1), drawn with `random`, any uniform 32 bits.
    pub fn delay_with(&self, attempt: u32, random: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(63);
        let factor = 1u64 << doublings;
        let full = u32::try_from(factor)
            .map_or(self.max, |factor| self.initial.saturating_mul(factor))
            .min(self.max);
        if !self.jitter {
            return full;
        }
        let half = full / 2;
        half + (full - half).mul_f64(f64::from(random) / f64::from(u32::MAX))
    }
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self {
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
            jitter: true,
            max_attempts: None,
            stop_on_peer_closed: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_23_delays_double_up_to_the_cap_and_keep_to_the_upper_half() {
        let policy = ReconnectPolicy::default();
        for (attempt, full_ms) in [
            (1, 100),
            (2, 200),
            (5, 1600),
            (9, 25_600),
            (10, 30_000),
            (u32::MAX, 30_000),
        ] {
            let full = Duration::from_millis(full_ms);
            assert_eq!(policy.delay_with(attempt, u32::MAX), full, "{attempt}");
            assert_eq!(policy.delay_with(attempt, 0), full / 2, "{attempt}");
            let exact = ReconnectPolicy {
                jitter: false,
                ..policy.clone()
            };
            assert_eq!(exact.delay_with(attempt, 0), full);
        }
        assert!(policy.redials() && !ReconnectPolicy::never().redials());
    }
}
