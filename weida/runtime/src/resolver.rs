//! What a name means, and in which order its addresses are tried.
//! `[wire 4]`, `[weida AD-9 to AD-12]`

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weida_core::{DEFAULT_PORT, Error, Result};

use crate::exec::Exec;

/// System lookups that may be outstanding in this process; the next one is
/// refused with [`Error::LimitExceeded`]. `[weida AD-10, INV-8]`
///
/// A lookup blocks a thread that nobody can interrupt, so a name server that
/// never answers must not collect threads without end.
pub const MAX_OUTSTANDING_LOOKUPS: usize = 64;

static LOOKUPS: LookupGate = LookupGate::new(MAX_OUTSTANDING_LOOKUPS);

/// The future a [`Resolver`] returns.
pub type Resolved<'a> = Pin<Box<dyn Future<Output = Result<Vec<SocketAddr>>> + Send + 'a>>;

/// What a name means.
///
/// Implement this to answer a `weida://` host from SRV records, a registry or a
/// table; [`SystemResolver`] is the default. A host that is an IP literal never
/// reaches a resolver.
///
/// - The addresses are dialled in the order returned.
/// - `port` is what the address wrote; `None` means the host names a *set*, and
///   the resolver says which ports its members listen on
///   ([`DEFAULT_PORT`](crate::DEFAULT_PORT) for the system resolver).
/// - `max_addresses` is a cap on the answer.
/// - An empty answer is an error: say why there is nothing to dial.
///
/// A caller's deadline drops the returned future. Work it started elsewhere
/// goes on, so a resolver that blocks threads bounds how many.
pub trait Resolver: fmt::Debug + Send + Sync + 'static {
    /// Resolves `name` into the addresses to dial, in order. Work that needs a
    /// reactor is spawned on `exec`.
    ///
    /// # Errors
    ///
    /// Whatever keeps the name from being answered.
    fn resolve<'a>(
        &'a self,
        exec: &'a Exec,
        name: &'a str,
        port: Option<u16>,
        max_addresses: usize,
    ) -> Resolved<'a>;
}

/// Whether an address without a port may name a set of nodes.
/// `[weida AD-11]`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// It does: every address of the host is a candidate, on
    /// [`DEFAULT_PORT`](crate::DEFAULT_PORT).
    #[default]
    Aware,
    /// It is refused with [`Error::InvalidAddress`]: every address names
    /// exactly one endpoint.
    Single,
}

/// The system's resolver: A and AAAA records, one port for all.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(
        &'a self,
        exec: &'a Exec,
        name: &'a str,
        port: Option<u16>,
        max_addresses: usize,
    ) -> Resolved<'a> {
        let port = port.unwrap_or(DEFAULT_PORT);
        let name = name.to_owned();
        LOOKUPS.run(exec, move || {
            let found = (name.as_str(), port).to_socket_addrs()?;
            Ok(found.take(max_addresses).collect())
        })
    }
}

/// The resolver a configuration holds; [`SystemResolver`] by default.
///
/// Two are equal if they are clones of one another, or both the default.
#[derive(Clone, Debug, Default)]
pub struct SharedResolver(Option<Arc<dyn Resolver>>);

impl SharedResolver {
    /// Wraps a resolver.
    pub fn new(resolver: impl Resolver) -> Self {
        Self(Some(Arc::new(resolver)))
    }

    /// Resolves through the wrapped resolver.
    ///
    /// # Errors
    ///
    /// As [`Resolver::resolve`].
    pub fn resolve<'a>(
        &'a self,
        exec: &'a Exec,
        name: &'a str,
        port: Option<u16>,
        max_addresses: usize,
    ) -> Resolved<'a> {
        match &self.0 {
            Some(resolver) => resolver.resolve(exec, name, port, max_addresses),
            None => SystemResolver.resolve(exec, name, port, max_addresses),
        }
    }
}

impl PartialEq for SharedResolver {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            (None, Some(_)) | (Some(_), None) => false,
        }
    }
}

impl Eq for SharedResolver {}

/// Lookups in progress, each holding a thread until the system answers.
struct LookupGate {
    outstanding: AtomicUsize,
    max: usize,
}

impl LookupGate {
    const fn new(max: usize) -> Self {
        Self {
            outstanding: AtomicUsize::new(0),
            max,
        }
    }

    /// Runs `lookup` on a blocking thread, or refuses it at the bound. The
    /// place is held until the *lookup* ends, not until the caller stops
    /// waiting for it.
    fn run(
        &'static self,
        exec: &Exec,
        lookup: impl FnOnce() -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> Resolved<'static> {
        let running = Place::take(self).map(|place| {
            exec.blocking(move || {
                let _place = place;
                lookup()
            })
        });
        Box::pin(async move {
            let running = running.ok_or(Error::LimitExceeded(None))?;
            match running.await {
                Some(found) => Ok(found?),
                None => Err(Error::Runtime("the runtime stopped during a lookup".into())),
            }
        })
    }
}

/// One place at the gate, given back on drop.
struct Place(&'static LookupGate);

impl Place {
    fn take(gate: &'static LookupGate) -> Option<Self> {
        let below_max = |now: usize| (now < gate.max).then_some(now + 1);
        gate.outstanding
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, below_max)
            .ok()
            .map(|_| Self(gate))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.outstanding.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How the host of an address becomes candidates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup<'a> {
    /// Answers names.
    pub(crate) resolver: &'a SharedResolver,
    /// What a missing port means.
    pub(crate) discovery: Discovery,
    /// Candidates kept at most.
    pub(crate) max_addresses: usize,
}

impl Lookup<'_> {
    /// The addresses to dial for `host`, in order, never empty.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidAddress`] without a port under [`Discovery::Single`];
    /// [`Error::LimitExceeded`] at the lookup bound; [`Error::Io`] for a name
    /// that does not resolve; whatever a custom resolver returns.
    ///
    /// # Cancel safety
    ///
    /// Safe; a lookup that runs on a thread keeps its place until it ends.
    pub(crate) async fn candidates(
        &self,
        exec: &Exec,
        host: &str,
        port: Option<u16>,
    ) -> Result<Vec<SocketAddr>> {
        if port.is_none() && self.discovery == Discovery::Single {
            return Err(Error::InvalidAddress(format!(
                "{host:?} has no port, and sets of nodes are switched off"
            )));
        }
        if let Some(literal) = ip_literal(host) {
            let port = port.unwrap_or(DEFAULT_PORT);
            return Ok(vec![SocketAddr::new(literal, port)]);
        }
        let mut found = self
            .resolver
            .resolve(exec, host, port, self.max_addresses)
            .await?;
        // The cap is ours to keep, whoever wrote the resolver.
        found.truncate(self.max_addresses);
        if found.is_empty() {
            let why = format!("{host:?} has no address");
            return Err(io::Error::new(io::ErrorKind::NotFound, why).into());
        }
        Ok(found)
    }
}

/// `host` as an IP address, brackets of an IPv6 literal allowed.
fn ip_literal(host: &str) -> Option<IpAddr> {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse().ok()
}

/// Tries `dial` on `candidates` in order until one succeeds. Every attempt but
/// the last is cut after `attempt_timeout`; a refused key ends the whole dial.
/// `[weida AD-9]`
///
/// # Errors
///
/// [`Error::Untrusted`] from any candidate; else the last candidate's error.
///
/// # Cancel safety
///
/// Safe if `dial`'s futures are.
pub(crate) async fn dial_in_order<T, D, F>(
    exec: &Exec,
    candidates: &[SocketAddr],
    attempt_timeout: Duration,
    mut dial: D,
) -> Result<T>
where
    D: FnMut(SocketAddr) -> F,
    F: Future<Output = Result<T>>,
{
    let Some((last, others)) = candidates.split_last() else {
        return Err(Error::NotConnected);
    };
    for candidate in others {
        match exec.timeout(attempt_timeout, dial(*candidate)).await {
            Some(Ok(connected)) => return Ok(connected),
            Some(Err(Error::Untrusted(presented))) => return Err(Error::Untrusted(presented)),
            Some(Err(error)) => tracing::debug!(%candidate, %error, "address failed, next one"),
            None => tracing::debug!(%candidate, "address silent, next one"),
        }
    }
    dial(*last).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use tokio::runtime::Handle;

    fn exec() -> Exec {
        Exec::from_handle(Handle::current())
    }

    fn addr(last: u8) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, last], 7443))
    }

    /// What a resolver was asked: name, port, cap.
    type Asked = Arc<std::sync::Mutex<Vec<(String, Option<u16>, usize)>>>;

    /// Answers every name with the same addresses and remembers what it was
    /// asked.
    #[derive(Debug)]
    struct Table {
        answer: Vec<SocketAddr>,
        asked: Asked,
    }

    impl Resolver for Table {
        fn resolve<'a>(
            &'a self,
            _exec: &'a Exec,
            name: &'a str,
            port: Option<u16>,
            max_addresses: usize,
        ) -> Resolved<'a> {
            self.asked
                .lock()
                .unwrap()
                .push((name.to_owned(), port, max_addresses));
            Box::pin(async { Ok(self.answer.clone()) })
        }
    }

    fn table(answer: Vec<SocketAddr>) -> (SharedResolver, Asked) {
        let asked = Asked::default();
        let resolver = SharedResolver::new(Table {
            answer,
            asked: Arc::clone(&asked),
        });
        (resolver, asked)
    }

    #[tokio::test]
    async fn ad_10_a_literal_is_parsed_in_place() {
        let (resolver, asked) = table(vec![addr(9)]);
        let lookup = Lookup {
            resolver: &resolver,
            discovery: Discovery::Aware,
            max_addresses: 8,
        };
        for (host, port, want) in [
            ("127.0.0.1", Some(9), "127.0.0.1:9"),
            ("[::1]", Some(9), "[::1]:9"),
            ("::1", None, "[::1]:7443"),
        ] {
            let found = lookup.candidates(&exec(), host, port).await.unwrap();
            assert_eq!(found, [want.parse().unwrap()]);
        }
        assert!(asked.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn ad_10_inv_8_the_lookup_past_the_bound_is_refused_until_one_ends() {
        static GATE: LookupGate = LookupGate::new(2);
        let (release, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let stuck = || {
            let held = Arc::clone(&held);
            GATE.run(&exec(), move || {
                let _ended: Result<(), _> = held.lock().unwrap().recv();
                Ok(vec![addr(1)])
            })
        };
        let first = stuck();
        // The caller of the second one gives up; its thread does not.
        drop(stuck());
        let third = GATE.run(&exec(), || Ok(vec![addr(3)])).await;
        assert!(matches!(third, Err(Error::LimitExceeded(None))));

        release.send(()).unwrap();
        release.send(()).unwrap();
        assert_eq!(first.await.unwrap(), [addr(1)]);
        while GATE.outstanding.load(Ordering::Acquire) > 0 {
            tokio::task::yield_now().await;
        }
        let fourth = GATE.run(&exec(), || Ok(vec![addr(4)])).await.unwrap();
        assert_eq!(fourth, [addr(4)]);
        assert_eq!(LOOKUPS.max, 64);
    }

    #[tokio::test]
    async fn ad_11_single_discovery_refuses_a_missing_port() {
        let (resolver, _) = table(vec![addr(1)]);
        let mut lookup = Lookup {
            resolver: &resolver,
            discovery: Discovery::Aware,
            max_addresses: 8,
        };
        assert!(lookup.candidates(&exec(), "nodes", None).await.is_ok());
        lookup.discovery = Discovery::Single;
        let one = lookup.candidates(&exec(), "nodes", Some(1)).await;
        assert!(one.is_ok());
        let set = lookup.candidates(&exec(), "nodes", None).await;
        assert!(matches!(set, Err(Error::InvalidAddress(_))));
    }

    #[tokio::test]
    async fn ad_12_inv_8_a_custom_resolver_answers_within_the_cap() {
        let (resolver, asked) = table((1..=9).map(addr).collect());
        let lookup = Lookup {
            resolver: &resolver,
            discovery: Discovery::Aware,
            max_addresses: 3,
        };
        let found = lookup.candidates(&exec(), "queue", None).await.unwrap();
        assert_eq!(found, [addr(1), addr(2), addr(3)]);
        assert_eq!(*asked.lock().unwrap(), [("queue".to_owned(), None, 3)]);

        let (nothing, _) = table(Vec::new());
        let lookup = Lookup {
            resolver: &nothing,
            ..lookup
        };
        assert!(lookup.candidates(&exec(), "queue", None).await.is_err());
    }

    #[tokio::test]
    async fn ad_12_the_system_resolver_answers_localhost_on_the_default_port() {
        let found = SystemResolver.resolve(&exec(), "localhost", None, 8).await;
        let found = found.unwrap();
        assert!(!found.is_empty());
        assert!(
            found
                .iter()
                .all(|it| it.ip().is_loopback() && it.port() == 7443)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn ad_9_a_silent_address_costs_one_attempt_bound() {
        let (exec, both) = (exec(), [addr(1), addr(2)]);
        let started = tokio::time::Instant::now();
        let bound = Duration::from_millis(250);
        let reached = dial_in_order(&exec, &both, bound, |to| async move {
            if to == addr(1) {
                std::future::pending::<()>().await;
            }
            Ok(to)
        });
        assert_eq!(reached.await.unwrap(), addr(2));
        assert_eq!(started.elapsed(), bound);
    }

    #[tokio::test(start_paused = true)]
    async fn ad_9_the_last_address_keeps_the_whole_handshake_budget() {
        let (exec, one) = (exec(), [addr(1)]);
        let bound = Duration::from_millis(250);
        let reached = dial_in_order(&exec, &one, bound, |to| async move {
            tokio::time::sleep(bound * 20).await;
            Ok(to)
        });
        assert_eq!(reached.await.unwrap(), addr(1));
    }

    #[tokio::test]
    async fn ad_9_a_failing_address_is_followed_by_the_next_but_a_refused_key_is_not() {
        let bound = Duration::from_millis(250);
        let (exec, both) = (exec(), [addr(1), addr(2)]);
        let reached = dial_in_order(&exec, &both, bound, |to| async move {
            if to == addr(1) {
                return Err(Error::Tls("refused".into()));
            }
            Ok(to)
        });
        assert_eq!(reached.await.unwrap(), addr(2));

        let stranger = weida_core::Fingerprint::from_bytes([7; 32]);
        let refused = dial_in_order(&exec, &both, bound, |to| async move {
            if to == addr(1) {
                return Err(Error::Untrusted(stranger));
            }
            Ok(to)
        });
        assert!(matches!(refused.await, Err(Error::Untrusted(fp)) if fp == stranger));
    }
}
