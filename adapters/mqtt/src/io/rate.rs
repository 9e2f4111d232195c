//! The publish rate that a grant allows one session; excess stops reading its socket. [mqtt 8.1]

use std::time::Duration;

use tokio::time::Instant;

use crate::config::PublishRate;

/// Two token buckets that may go into debt; while they are, the client is not read.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<PublishRate>,
    messages: f64,
    bytes: f64,
    at: Instant,
    paused_until: Option<Instant>,
}

impl Pace {
    pub(crate) fn new(rate: Option<PublishRate>, now: Instant) -> Self {
        let mut pace = Self {
            rate,
            messages: 0.0,
            bytes: 0.0,
            at: now,
            paused_until: None,
        };
        if let Some(rate) = rate {
            pace.messages = f64::from(rate.messages_per_second);
            pace.bytes = bytes_per_second(rate);
        }
        pace
    }

    /// Counts one publish.
    pub(crate) fn spend(&mut self, payload_bytes: usize, now: Instant) {
        let Some(rate) = self.rate else { return };
        let grown = now.saturating_duration_since(self.at).as_secs_f64();
        self.at = now;
        let mut wait = 0.0_f64;
        if rate.messages_per_second > 0 {
            let per_second = f64::from(rate.messages_per_second);
            self.messages = (self.messages + grown * per_second).min(per_second) - 1.0;
            wait = wait.max(-self.messages / per_second);
        }
        if rate.bytes_per_second > 0 {
            let per_second = bytes_per_second(rate);
            self.bytes = (self.bytes + grown * per_second).min(per_second);
            self.bytes -= payload_bytes as f64;
            wait = wait.max(-self.bytes / per_second);
        }
        if wait > 0.0 {
            self.paused_until = Some(now + Duration::from_secs_f64(wait));
        }
    }

    pub(crate) fn paused_until(&self) -> Option<Instant> {
        self.paused_until
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
        }
    }
}

fn bytes_per_second(rate: PublishRate) -> f64 {
    rate.bytes_per_second as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn mqtt_8_1_a_rate_pauses_and_goes_on() {
        let now = Instant::now();
        let rate = PublishRate {
            messages_per_second: 10,
            bytes_per_second: 0,
        };
        let mut pace = Pace::new(Some(rate), now);
        for _ in 0..10 {
            pace.spend(1 << 20, now);
        }
        assert_eq!(pace.paused_until(), None, "a burst of one second");
        pace.spend(1, now);
        assert_eq!(pace.paused_until(), Some(now + Duration::from_millis(100)));
        pace.tick(now + Duration::from_millis(100));
        assert_eq!(pace.paused_until(), None);
        let mut free = Pace::new(None, now);
        free.spend(1 << 30, now);
        assert_eq!(free.paused_until(), None);
    }
}
