//! Who may knock: rates, connections per address, failed logins, bans. [mqtt 8.1]
//!
//! Everything is keyed by address, and the tables have caps of their own: a stranger can neither
//! grow them nor lock a key for others, because a takeover ban holds for one address and one key.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::Limits;

/// Most addresses remembered; beyond it strangers are refused.
const MAX_ADDRESSES: usize = 65_536;
/// Most (address, label) pairs remembered.
const MAX_PAIRS: usize = 16_384;
const MINUTE: Duration = Duration::from_secs(60);

/// Admission control of one adapter.
#[derive(Debug)]
pub(crate) struct Gate {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    arrivals: Option<Bucket>,
    addresses: HashMap<IpAddr, Address>,
    /// Failed logins per user and address.
    users: HashMap<(IpAddr, Box<str>), Strikes>,
    /// Takeover bans per key and address.
    banned_keys: HashMap<(IpAddr, Box<str>), Instant>,
}

#[derive(Debug)]
struct Address {
    connections: usize,
    arrivals: Bucket,
    strikes: Strikes,
}

/// Failures within a minute, and the ban they led to.
#[derive(Debug, Default)]
struct Strikes {
    since: Option<Instant>,
    count: u32,
    banned_until: Option<Instant>,
}

/// Why a connection is turned away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    /// Too many new connections: 0x9F.
    Rate,
    /// Too many connections of this address: 0x97.
    PerAddress,
    /// Banned: 0x8A.
    Banned,
}

/// One counted connection; dropped, it makes room again.
#[derive(Debug)]
pub(crate) struct Entered {
    gate: Arc<Gate>,
    ip: Option<IpAddr>,
}

impl Gate {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
        })
    }

    /// How long the accept loop leaves further connections in the kernel's backlog.
    pub(crate) fn pause(&self, now: Instant) -> Option<Duration> {
        let rate = self.limits.new_connections_per_second;
        let mut state = self.lock();
        state
            .arrivals
            .get_or_insert_with(|| Bucket::full(rate, now))
            .take(now)
            .err()
    }

    /// Counts a connection of `ip`.
    ///
    /// # Errors
    ///
    /// Says why it must be turned away; nothing is counted then.
    pub(crate) fn enter(self: &Arc<Self>, ip: IpAddr, now: Instant) -> Result<Entered, TurnedAway> {
        let Some(ip) = self.counted(ip) else {
            return Ok(Entered {
                gate: Arc::clone(self),
                ip: None,
            });
        };
        let rate = self.limits.new_connections_per_second_per_ip;
        let mut state = self.lock();
        if state.addresses.len() >= MAX_ADDRESSES && !state.addresses.contains_key(&ip) {
            state.addresses.retain(|_, address| !address.is_idle(now));
            if state.addresses.len() >= MAX_ADDRESSES {
                return Err(TurnedAway::Rate);
            }
        }
        let address = state.addresses.entry(ip).or_insert_with(|| Address {
            connections: 0,
            arrivals: Bucket::full(rate, now),
            strikes: Strikes::default(),
        });
        if address.strikes.is_banned(now) {
            return Err(TurnedAway::Banned);
        }
        if address.arrivals.take(now).is_err() {
            return Err(TurnedAway::Rate);
        }
        if address.connections >= self.limits.max_connections_per_ip {
            return Err(TurnedAway::PerAddress);
        }
        address.connections += 1;
        Ok(Entered {
            gate: Arc::clone(self),
            ip: Some(ip),
        })
    }

    /// Whether this login may be tried at all.
    pub(crate) fn may_log_in(&self, ip: IpAddr, user: Option<&str>, now: Instant) -> bool {
        let Some(ip) = self.counted(ip) else {
            return true;
        };
        let state = self.lock();
        let banned = |strikes: &Strikes| strikes.is_banned(now);
        let user = user.and_then(|user| state.users.get(&(ip, user.into())));
        !(state.addresses.get(&ip).is_some_and(|a| banned(&a.strikes)) || user.is_some_and(banned))
    }

    pub(crate) fn login_failed(&self, ip: IpAddr, user: Option<&str>, now: Instant) {
        let Some(ip) = self.counted(ip) else { return };
        let ban = self.limits.login_ban;
        let mut state = self.lock();
        if let Some(address) = state.addresses.get_mut(&ip) {
            address
                .strikes
                .strike(self.limits.login_failures_per_ip, ban, now);
        }
        if let Some(user) = user {
            if state.users.len() >= MAX_PAIRS {
                state.users.retain(|_, strikes| !strikes.is_idle(now));
            }
            if state.users.len() < MAX_PAIRS {
                let strikes = state.users.entry((ip, user.into())).or_default();
                strikes.strike(self.limits.login_failures_per_user, ban, now);
            }
        }
    }

    /// Keeps `ip` away from `key` for a while; the owner at another address is not touched.
    pub(crate) fn ban_key(&self, ip: IpAddr, key: &str, now: Instant) {
        let Some(ip) = self.counted(ip) else { return };
        let mut state = self.lock();
        if state.banned_keys.len() >= MAX_PAIRS {
            state.banned_keys.retain(|_, until| *until > now);
        }
        if state.banned_keys.len() < MAX_PAIRS {
            state
                .banned_keys
                .insert((ip, key.into()), now + self.limits.takeover_ban);
        }
    }

    pub(crate) fn is_key_banned(&self, ip: IpAddr, key: &str, now: Instant) -> bool {
        let Some(ip) = self.counted(ip) else {
            return false;
        };
        let until = self.lock().banned_keys.get(&(ip, key.into())).copied();
        until.is_some_and(|until| until > now)
    }

    /// The address that limits count by: an IPv6 client owns its /64; `None` = exempt.
    fn counted(&self, ip: IpAddr) -> Option<IpAddr> {
        let ip = ip.to_canonical();
        if ip.is_loopback() {
            return (!self.limits.per_ip_exempt_loopback).then_some(ip);
        }
        Some(match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                IpAddr::from([a, b, c, d, 0, 0, 0, 0])
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(ip) = self.ip
            && let Some(address) = self.gate.lock().addresses.get_mut(&ip)
        {
            address.connections -= 1;
        }
    }
}

impl Address {
    fn is_idle(&self, now: Instant) -> bool {
        self.connections == 0 && self.strikes.is_idle(now) && self.arrivals.is_full(now)
    }
}

impl Strikes {
    fn is_banned(&self, now: Instant) -> bool {
        self.banned_until.is_some_and(|until| until > now)
    }

    fn is_idle(&self, now: Instant) -> bool {
        let stale = |at: Instant| now.saturating_duration_since(at) >= MINUTE;
        !self.is_banned(now) && self.since.is_none_or(stale)
    }

    fn strike(&mut self, max: u32, ban: Duration, now: Instant) {
        if self.is_idle(now) {
            *self = Self {
                since: Some(now),
                count: 0,
                banned_until: None,
            };
        }
        self.count += 1;
        if self.count >= max {
            self.banned_until = Some(now + ban);
        }
    }
}

/// A token bucket with room for two seconds.
#[derive(Debug)]
struct Bucket {
    per_second: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    fn full(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self {
            per_second,
            tokens: per_second * 2.0,
            at: now,
        }
    }

    /// Takes one token, or says when there will be one.
    fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.tokens = (self.tokens + grown).min(self.per_second * 2.0);
        self.at = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Ok(());
        }
        Err(Duration::from_secs_f64(
            (1.0 - self.tokens) / self.per_second,
        ))
    }

    fn is_full(&self, now: Instant) -> bool {
        let grown = now.saturating_duration_since(self.at).as_secs_f64() * self.per_second;
        self.tokens + grown >= self.per_second * 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn gate(change: impl FnOnce(&mut Limits)) -> Arc<Gate> {
        let mut limits = Limits::default();
        change(&mut limits);
        Gate::new(limits)
    }

    #[tokio::test(start_paused = true)]
    async fn mqtt_8_1_connections_per_address_are_bounded_and_given_back() {
        let gate = gate(|l| l.max_connections_per_ip = 2);
        let now = Instant::now();
        let first = gate.enter(FAR, now).unwrap();
        let _second = gate.enter(FAR, now).unwrap();
        assert_eq!(gate.enter(FAR, now).unwrap_err(), TurnedAway::PerAddress);
        drop(first);
        assert!(gate.enter(FAR, now).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn mqtt_8_1_arrivals_of_one_address_are_paced() {
        let gate = gate(|l| l.new_connections_per_second_per_ip = 20);
        let now = Instant::now();
        let passed = (0..100).filter(|_| gate.enter(FAR, now).is_ok()).count();
        assert_eq!(passed, 40, "a burst of two seconds");
        assert!(gate.enter(FAR, now + Duration::from_millis(60)).is_ok());
        let other = IpAddr::from([192, 0, 2, 8]);
        assert!(
            gate.enter(other, now).is_ok(),
            "another address is not touched"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn mqtt_8_1_failed_logins_ban_the_user_then_the_address() {
        let gate = gate(|_| {});
        let now = Instant::now();
        let _in = gate.enter(FAR, now).unwrap();
        for _ in 0..5 {
            assert!(gate.may_log_in(FAR, Some("ann"), now));
            gate.login_failed(FAR, Some("ann"), now);
        }
        assert!(!gate.may_log_in(FAR, Some("ann"), now));
        assert!(gate.may_log_in(FAR, Some("bob"), now));
        for _ in 0..5 {
            gate.login_failed(FAR, Some("bob"), now);
        }
        assert!(!gate.may_log_in(FAR, Some("cid"), now));
        assert_eq!(gate.enter(FAR, now).unwrap_err(), TurnedAway::Banned);
        let later = now + Duration::from_secs(61);
        assert!(gate.may_log_in(FAR, Some("ann"), later));
        assert!(gate.enter(FAR, later).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn mqtt_4_7_a_takeover_ban_holds_for_one_key_and_one_address() {
        let gate = gate(|_| {});
        let now = Instant::now();
        gate.ban_key(FAR, "sensor-7", now);
        assert!(gate.is_key_banned(FAR, "sensor-7", now));
        assert!(!gate.is_key_banned(FAR, "sensor-8", now));
        assert!(!gate.is_key_banned(IpAddr::from([192, 0, 2, 8]), "sensor-7", now));
        assert!(!gate.is_key_banned(FAR, "sensor-7", now + Duration::from_secs(31)));
    }

    #[tokio::test(start_paused = true)]
    async fn loopback_is_exempt_only_when_the_configuration_says_so() {
        let local = IpAddr::from([127, 0, 0, 1]);
        let now = Instant::now();
        let strict = gate(|l| l.max_connections_per_ip = 1);
        let _one = strict.enter(local, now).unwrap();
        assert!(strict.enter(local, now).is_err());
        let exempt = gate(|l| (l.max_connections_per_ip, l.per_ip_exempt_loopback) = (1, true));
        let held: Vec<_> = (0..100)
            .map(|_| exempt.enter(local, now).unwrap())
            .collect();
        assert_eq!(held.len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_of_addresses_is_bounded() {
        let gate = gate(|_| {});
        let now = Instant::now();
        for at in 0..MAX_ADDRESSES as u32 + 10 {
            let _entered: Result<Entered, TurnedAway> =
                gate.enter(IpAddr::from(at.to_be_bytes()), now);
        }
        assert!(gate.lock().addresses.len() <= MAX_ADDRESSES);
        let later = now + Duration::from_secs(5);
        assert!(
            gate.enter(IpAddr::from([9, 9, 9, 9]), later).is_ok(),
            "idle ones make room"
        );
    }
}
