//! Keep Alive: how long a silent client lives. [MQTT5 3.1.2.10] [mqtt 8.3]

use std::time::{Duration, Instant};

use crate::codec::Version;

/// The clock of one connection: restarted by every *complete* packet that arrived. Partial packets and what we send do
/// not count, so a slow trickle of bytes keeps nobody alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    silence: Option<Duration>,
    last_packet: Instant,
}

/// What a Keep Alive of 0 means here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ZeroKeepAlive {
    /// No MQTT timeout, as the client asked.
    Allow,
    /// The listener's maximum takes its place and 5.0 clients are told. The default.
    #[default]
    Replace,
}

impl KeepAlive {
    /// Starts the clock with `secs` (0 for none); the client gets one and a half times that long.
    #[must_use]
    pub fn new(secs: u16, now: Instant) -> Self {
        let silence =
            (secs > 0).then(|| Duration::from_millis(u64::from(secs).saturating_mul(1500)));
        Self {
            silence,
            last_packet: now,
        }
    }

    /// As [`new`](Self::new), but silent clients without a Keep Alive last `idle_max`.
    #[must_use]
    pub fn with_idle_max(secs: u16, idle_max: Duration, now: Instant) -> Self {
        let mut this = Self::new(secs, now);
        this.silence = Some(this.silence.unwrap_or(idle_max));
        this
    }

    /// A whole packet arrived.
    pub const fn on_packet(&mut self, now: Instant) {
        self.last_packet = now;
    }

    /// When the client counts as gone; `None` for never.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.last_packet.checked_add(self.silence?)
    }

    /// Whether that moment has come.
    #[must_use]
    pub fn is_expired(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|deadline| now >= deadline)
    }
}

/// The Keep Alive in force, and what Server Keep Alive has to say of it. [MQTT5 3.2.2.3.14]
///
/// A 3.1.1 client cannot be told, so its own value stands.
pub(super) fn negotiate(
    asked_secs: u16,
    max_secs: u16,
    zero: ZeroKeepAlive,
    version: Version,
) -> (u16, Option<u16>) {
    let replace = match asked_secs {
        0 => zero == ZeroKeepAlive::Replace,
        secs => secs > max_secs,
    };
    if replace && version.is_v5() {
        (max_secs, Some(max_secs))
    } else {
        (asked_secs, None)
    }
}
