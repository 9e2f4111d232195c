//! A UDP relay: loss, duplicates, reordering, delay, rate, freeze, silence, and a changed outgoing port.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::UdpSocket;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{Dice, Direction};

/// A relay in front of one UDP server. Each client address gets an outgoing socket of its own, as behind a NAT.
#[derive(Debug)]
pub struct UdpRelay {
    addr: SocketAddr,
    shared: Arc<Shared>,
    _tasks: JoinSet<()>,
}

/// What a [`UdpRelay`] does to datagrams, in both directions unless named.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UdpFaults {
    /// Share that is lost, 0 to 1.
    pub loss: f64,
    /// Share that arrives twice, 0 to 1.
    pub duplicate: f64,
    /// Share that is held longer, so that later ones overtake it, 0 to 1.
    pub reorder: f64,
    /// How much longer those are held.
    pub reorder_by: Duration,
    /// How long every datagram is held.
    pub delay: Duration,
    /// Up to this much more, by chance; it reorders, as the real thing does.
    pub jitter: Duration,
    /// Bytes per second of each direction of each client; datagrams wait for their turn.
    pub bytes_per_second: Option<u64>,
    /// Directions that are not read: the kernel's buffer fills, then drops.
    pub frozen: [bool; 2],
    /// Directions in which every datagram is lost.
    pub silent: [bool; 2],
}

impl Default for UdpFaults {
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::from_millis(5),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            bytes_per_second: None,
            frozen: [false; 2],
            silent: [false; 2],
        }
    }
}

/// What happened to the datagrams of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UdpCounts {
    /// That came in.
    pub received: u64,
    /// That went out, copies included.
    pub forwarded: u64,
    /// That chance, silence or a full line lost.
    pub lost: u64,
    /// That chance doubled.
    pub duplicated: u64,
    /// That chance held longer.
    pub reordered: u64,
}

#[derive(Debug, Default)]
struct Counters {
    received: AtomicU64,
    forwarded: AtomicU64,
    lost: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
}

#[derive(Debug)]
struct Shared {
    upstream: Mutex<SocketAddr>,
    faults: watch::Sender<UdpFaults>,
    /// Raised to give every client a new outgoing port.
    generation: watch::Sender<u64>,
    counters: [Counters; 2],
    seed: u64,
}

impl UdpRelay {
    /// Clients at once; a datagram of one more is lost and counted.
    pub const MAX_CLIENTS: usize = 256;

    /// Listens on a loopback port and relays to `upstream`; the seed decides every fate.
    ///
    /// # Errors
    /// When the port cannot be opened.
    pub async fn start(upstream: SocketAddr, seed: u64) -> io::Result<Self> {
        let socket = Arc::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?);
        let addr = socket.local_addr()?;
        let shared = Arc::new(Shared {
            upstream: Mutex::new(upstream),
            faults: watch::Sender::new(UdpFaults::default()),
            generation: watch::Sender::new(0),
            counters: Default::default(),
            seed,
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(socket, Arc::clone(&shared)));
        Ok(Self {
            addr,
            shared,
            _tasks: tasks,
        })
    }

    /// Where clients send to.
    #[must_use]
    pub const fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Changes the faults; it holds from the next datagram on.
    pub fn faults(&self, change: impl FnOnce(&mut UdpFaults)) {
        self.shared.faults.send_modify(change);
    }

    /// Stops reading both directions.
    pub fn freeze(&self) {
        self.faults(|faults| faults.frozen = [true; 2]);
    }

    /// Reads both directions again.
    pub fn thaw(&self) {
        self.faults(|faults| faults.frozen = [false; 2]);
    }

    /// Loses everything, both ways, until [`restore`](Self::restore).
    pub fn cut(&self) {
        self.faults(|faults| faults.silent = [true; 2]);
    }

    /// Loses everything of one direction.
    pub fn cut_only(&self, direction: Direction) {
        self.faults(|faults| faults.silent[direction.index()] = true);
    }

    /// No faults any more.
    pub fn restore(&self) {
        self.faults(|faults| *faults = UdpFaults::default());
    }

    /// Gives every client a new outgoing port, as a NAT does that forgot its table.
    pub fn rebind(&self) {
        self.shared
            .generation
            .send_modify(|generation| *generation += 1);
    }

    /// Sends to another server from the next datagram on.
    pub fn redirect(&self, upstream: SocketAddr) {
        *self
            .shared
            .upstream
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = upstream;
    }

    /// What happened to one direction so far.
    #[must_use]
    pub fn counts(&self, direction: Direction) -> UdpCounts {
        let counters = &self.shared.counters[direction.index()];
        UdpCounts {
            received: counters.received.load(Relaxed),
            forwarded: counters.forwarded.load(Relaxed),
            lost: counters.lost.load(Relaxed),
            duplicated: counters.duplicated.load(Relaxed),
            reordered: counters.reordered.load(Relaxed),
        }
    }
}

impl Shared {
    fn upstream(&self) -> SocketAddr {
        *self.upstream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn thawed(&self, faults: &mut watch::Receiver<UdpFaults>, direction: Direction) {
        let _: Result<_, _> = faults
            .wait_for(|faults| !faults.frozen[direction.index()])
            .await; // gone with the relay
    }
}

/// Reads what clients send and hands it to the client's own task.
async fn serve(socket: Arc<UdpSocket>, shared: Arc<Shared>) {
    let mut clients: HashMap<SocketAddr, mpsc::Sender<Bytes>> = HashMap::new();
    let mut tasks = JoinSet::new();
    let mut faults = shared.faults.subscribe();
    let mut buffer = vec![0; MAX_DATAGRAM];
    let lost = |counters: &Counters| counters.lost.fetch_add(1, Relaxed);
    loop {
        shared.thawed(&mut faults, Direction::Up).await;
        let received = tokio::select! {
            biased;
            _ = faults.changed() => continue,
            received = socket.recv_from(&mut buffer) => received,
        };
        let Ok((length, from)) = received else {
            continue;
        };
        let counters = &shared.counters[Direction::Up.index()];
        counters.received.fetch_add(1, Relaxed);
        if !clients.contains_key(&from) {
            if clients.len() >= UdpRelay::MAX_CLIENTS {
                lost(counters);
                continue;
            }
            let (line, inbox) = mpsc::channel(LINE);
            let number = clients.len() as u64;
            tasks.spawn(client(
                Arc::clone(&socket),
                from,
                inbox,
                Arc::clone(&shared),
                number,
            ));
            clients.insert(from, line);
        }
        let datagram = Bytes::copy_from_slice(&buffer[..length]);
        if clients
            .get(&from)
            .is_none_or(|line| line.try_send(datagram).is_err())
        {
            lost(counters);
        }
    }
}

/// Both directions of one client.
async fn client(
    front: Arc<UdpSocket>,
    from: SocketAddr,
    mut inbox: mpsc::Receiver<Bytes>,
    shared: Arc<Shared>,
    number: u64,
) {
    let Ok(mut back) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await else {
        return;
    };
    let mut generation = shared.generation.subscribe();
    generation.mark_unchanged();
    let mut faults = shared.faults.subscribe();
    let mut up = Lane::new(&shared, number, Direction::Up);
    let mut down = Lane::new(&shared, number, Direction::Down);
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let frozen = faults.borrow_and_update().frozen;
        let (up_due, down_due) = (up.due(), down.due());
        tokio::select! {
            biased;
            Ok(()) = generation.changed() => {
                if let Ok(fresh) = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await {
                    back = fresh;
                }
            }
            Ok(()) = faults.changed() => {}
            () = sleep_until(up_due.unwrap_or_else(Instant::now)), if up_due.is_some() => {
                up.send_due(&back, shared.upstream()).await;
            }
            () = sleep_until(down_due.unwrap_or_else(Instant::now)), if down_due.is_some() => {
                down.send_due(&front, from).await;
            }
            datagram = inbox.recv() => match datagram {
                Some(datagram) => {
                    let now = *shared.faults.borrow();
                    up.take(datagram, &now);
                    up.send_due(&back, shared.upstream()).await;
                }
                None => return,
            },
            received = back.recv_from(&mut buffer), if !frozen[Direction::Down.index()] => {
                // An error here is the server's ICMP refusal: as silent as the network would be.
                if let Ok((length, _)) = received {
                    down.counters.received.fetch_add(1, Relaxed);
                    let now = *shared.faults.borrow();
                    down.take(Bytes::copy_from_slice(&buffer[..length]), &now);
                    down.send_due(&front, from).await;
                }
            }
        }
    }
}

/// Datagrams of one direction on their way, ordered by when they are due.
struct Lane<'s> {
    held: BinaryHeap<Reverse<(Instant, u64, Bytes)>>,
    dice: Dice,
    sequence: u64,
    pace: Instant,
    counters: &'s Counters,
    direction: Direction,
}

impl<'s> Lane<'s> {
    fn new(shared: &'s Shared, number: u64, direction: Direction) -> Self {
        Self {
            held: BinaryHeap::new(),
            dice: Dice::new(shared.seed, number, direction),
            sequence: 0,
            pace: Instant::now(),
            counters: &shared.counters[direction.index()],
            direction,
        }
    }

    fn take(&mut self, datagram: Bytes, faults: &UdpFaults) {
        let fate = self.dice.roll(faults);
        if fate.copies == 0 || faults.silent[self.direction.index()] {
            self.counters.lost.fetch_add(1, Relaxed);
            return;
        }
        self.counters
            .reordered
            .fetch_add(u64::from(fate.reordered), Relaxed);
        self.counters
            .duplicated
            .fetch_add(u64::from(fate.copies > 1), Relaxed);
        for _ in 0..fate.copies {
            if self.held.len() >= LINE {
                self.counters.lost.fetch_add(1, Relaxed);
                continue;
            }
            let now = Instant::now();
            let turn = match faults.bytes_per_second {
                Some(rate) => {
                    let takes = datagram.len() as f64 / rate.max(1) as f64;
                    self.pace = self.pace.max(now) + Duration::from_secs_f64(takes);
                    self.pace
                }
                None => now,
            };
            self.held.push(Reverse((
                turn + fate.delay,
                self.sequence,
                datagram.clone(),
            )));
            self.sequence += 1;
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse((due, _, _))| *due)
    }

    async fn send_due(&mut self, socket: &UdpSocket, to: SocketAddr) {
        while self.due().is_some_and(|due| due <= Instant::now()) {
            let Some(Reverse((_, _, datagram))) = self.held.pop() else {
                return;
            };
            match socket.send_to(&datagram, to).await {
                Ok(_) => self.counters.forwarded.fetch_add(1, Relaxed),
                Err(_) => self.counters.lost.fetch_add(1, Relaxed),
            };
        }
    }
}

const MAX_DATAGRAM: usize = 65_536;
/// Datagrams on their way per direction and client.
const LINE: usize = 16_384;

#[cfg(test)]
mod tests;
