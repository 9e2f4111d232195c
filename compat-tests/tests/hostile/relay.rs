//! A UDP relay in front of a binding that can swallow the answers.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::raw::{Dial, eventually, loopback};

/// Passes on everything clients say, and what is answered only while open.
pub(crate) struct Relay {
    pub(crate) addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    open: AtomicBool,
    /// Who spoke last.
    client: Mutex<Option<SocketAddr>>,
    /// First bytes of the answers, passed on or not.
    answers: Mutex<Vec<u8>>,
}

impl Relay {
    /// A relay that swallows every answer until it is opened.
    pub(crate) async fn toward(server: SocketAddr) -> Self {
        let inside = Arc::new(UdpSocket::bind(loopback()).await.unwrap());
        let outside = Arc::new(UdpSocket::bind(loopback()).await.unwrap());
        outside.connect(server).await.unwrap();
        let addr = inside.local_addr().unwrap();
        let shared = Arc::<Shared>::default();
        let mut tasks = JoinSet::new();
        let (from, to, noted) = (
            Arc::clone(&inside),
            Arc::clone(&outside),
            Arc::clone(&shared),
        );
        tasks.spawn(async move {
            let mut packet = [0; 10_000];
            while let Ok((len, client)) = from.recv_from(&mut packet).await {
                *noted.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
                drop(to.send(&packet[..len]).await);
            }
        });
        let noted = Arc::clone(&shared);
        tasks.spawn(async move {
            let mut packet = [0; 10_000];
            while let Ok(len) = outside.recv(&mut packet).await {
                noted
                    .answers
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(packet[0]);
                let client = *noted.client.lock().unwrap_or_else(PoisonError::into_inner);
                if let (true, Some(client)) = (noted.open.load(Ordering::Relaxed), client) {
                    drop(inside.send_to(&packet[..len], client).await);
                }
            }
        });
        Self {
            addr,
            shared,
            _tasks: tasks,
        }
    }

    /// Passes answers on, or swallows them.
    pub(crate) fn open(&self, open: bool) {
        self.shared.open.store(open, Ordering::Relaxed);
    }

    fn answers(&self) -> Vec<u8> {
        let answers = self.shared.answers.lock();
        answers.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for `count` more answers.
    pub(crate) async fn answered(&self, count: usize) {
        let before = self.answers().len();
        eventually(|| self.answers().len() >= before + count).await;
    }

    /// Stateless Retry packets among the answers.
    pub(crate) fn retries(&self) -> usize {
        // Long header, type 3. [RFC 9000 17.2.5]
        let answers = self.answers();
        answers
            .iter()
            .filter(|first| **first & 0xF0 == 0xF0)
            .count()
    }

    /// Begins `count` handshakes, one at a time, and waits for each to be
    /// answered: then it is one in progress, and will stay so.
    pub(crate) async fn begin(&self, count: usize) -> JoinSet<()> {
        let mut dials = JoinSet::new();
        for _ in 0..count {
            let before = self.answers().len();
            let addr = self.addr;
            dials.spawn(async move {
                let mut dial = Dial::default();
                let idle = Duration::from_secs(20).try_into().unwrap();
                dial.transport.max_idle_timeout(Some(idle));
                // Never returns: no answer arrives.
                drop(dial.dial(addr).await);
            });
            eventually(|| self.answers().len() > before).await;
        }
        dials
    }
}
