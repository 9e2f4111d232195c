//! A UDP relay for one client that can be cut.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinSet;

pub(crate) struct Relay {
    addr: SocketAddr,
    up: Arc<AtomicBool>,
    down: Arc<AtomicBool>,
    _pump: JoinSet<()>,
}

impl Relay {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let front = UdpSocket::bind(super::loopback()).await.unwrap();
        let back = UdpSocket::bind(super::loopback()).await.unwrap();
        back.connect(server).await.unwrap();
        let addr = front.local_addr().unwrap();
        let (up, down) = (
            Arc::new(AtomicBool::new(true)),
            Arc::new(AtomicBool::new(true)),
        );
        let mut pump = JoinSet::new();
        let open = (Arc::clone(&up), Arc::clone(&down));
        pump.spawn(async move {
            let mut client = None;
            let (mut a, mut b) = (vec![0; 65_536], vec![0; 65_536]);
            loop {
                tokio::select! {
                    got = front.recv_from(&mut a) => {
                        let Ok((len, from)) = got else { continue };
                        client = Some(from);
                        if open.0.load(Ordering::SeqCst) {
                            let _: std::io::Result<usize> = back.send(&a[..len]).await;
                        }
                    }
                    got = back.recv(&mut b) => {
                        let (Ok(len), Some(to)) = (got, client) else { continue };
                        if open.1.load(Ordering::SeqCst) {
                            let _: std::io::Result<usize> = front.send_to(&b[..len], to).await;
                        }
                    }
                }
            }
        });
        Self {
            addr,
            up,
            down,
            _pump: pump,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Drops everything in both directions.
    pub(crate) fn cut(&self) {
        self.up.store(false, Ordering::SeqCst);
        self.down.store(false, Ordering::SeqCst);
    }

    /// Drops what the server sends.
    pub(crate) fn cut_down(&self) {
        self.down.store(false, Ordering::SeqCst);
    }

    pub(crate) fn heal(&self) {
        self.up.store(true, Ordering::SeqCst);
        self.down.store(true, Ordering::SeqCst);
    }
}
