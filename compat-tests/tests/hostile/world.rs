//! A hostile peer and what it is hostile to, in either role.

use std::any::Any;

use tokio::sync::{mpsc, oneshot};

use crate::raw::{Dial, Raw, RawServer, data, soon};
use crate::subject::{self, Arrival, Ask, Asking, Subject, Tuning};

/// Which side of the connection the runtime under test is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A binding that the hostile peer dialled.
    Server,
    /// A subscriber that dialled the hostile peer.
    Client,
}

/// The runtime under test and its role.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) subject: Subject,
    pub(crate) role: Role,
}

/// One connection between a hostile peer and a runtime.
pub(crate) struct World {
    pub(crate) case: Case,
    pub(crate) raw: Raw,
    arrivals: mpsc::Receiver<Arrival>,
    connected: Option<oneshot::Receiver<Result<(), String>>>,
    _guard: Box<dyn Any + Send>,
}

impl World {
    /// Connected; the hostile peer has not said HELLO.
    pub(crate) async fn silent(case: Case, tuning: &Tuning) -> Self {
        match case.role {
            Role::Server => {
                let served = subject::serve(case.subject, tuning).await;
                Self {
                    case,
                    raw: Dial::default().dial(served.addr).await.unwrap(),
                    arrivals: served.arrivals,
                    connected: None,
                    _guard: Box::new((served.guard, served.drain)),
                }
            }
            Role::Client => {
                let server = RawServer::bind();
                let dialled = subject::subscribe(case.subject, tuning, server.url("/md"));
                Self {
                    case,
                    raw: server.accept().await.unwrap(),
                    arrivals: dialled.arrivals,
                    connected: Some(dialled.connected),
                    _guard: Box::new((dialled.guard, server)),
                }
            }
        }
    }

    /// Connected, with HELLO exchanged.
    pub(crate) async fn greeted(case: Case) -> Self {
        Self::tuned(case, &Tuning::default()).await
    }

    pub(crate) async fn tuned(case: Case, tuning: &Tuning) -> Self {
        let mut world = Self::silent(case, tuning).await;
        world.greet().await;
        world
    }

    /// HELLO both ways, and a dialler that says it is connected.
    pub(crate) async fn greet(&mut self) {
        self.raw.greet().await;
        if let Some(outcome) = self.dialled().await {
            assert_eq!(outcome, Ok(()));
        }
    }

    /// How the dial ended, when the runtime dialled.
    pub(crate) async fn dialled(&mut self) -> Option<Result<(), String>> {
        match self.connected.take() {
            Some(connected) => Some(soon(connected).await.unwrap()),
            None => None,
        }
    }

    /// Asserts how the dial failed, when the runtime dialled.
    ///
    /// The published runtime says only that the connection is lost; ours says
    /// what it closed it for.
    pub(crate) async fn dial_failed(&mut self, why: &str) {
        let why = match self.case.subject {
            Subject::Ours => why,
            Subject::Published => "ConnectionLost",
        };
        if let Some(outcome) = self.dialled().await {
            assert_eq!(outcome, Err(why.into()));
        }
    }

    /// A path that takes one-way transfers.
    pub(crate) fn path(&self) -> &'static str {
        match self.case.role {
            Role::Server => "/jobs",
            Role::Client => "/md",
        }
    }

    /// A whole transfer the runtime accepts.
    pub(crate) fn transfer(&self, body: &[u8]) -> Vec<u8> {
        [data(self.path()), body.to_vec()].concat()
    }

    /// The next thing that reached the application.
    pub(crate) async fn arrival(&mut self) -> Arrival {
        let next = async {
            tokio::select! {
                biased;
                arrival = self.arrivals.recv() => arrival.unwrap(),
                closed = self.raw.connection.closed() => panic!("{closed}"),
            }
        };
        soon(next).await
    }

    /// Sends `bytes` on a finished one-way stream and asserts that `body`
    /// reaches the application: what is beside the bad input is taken.
    pub(crate) async fn takes(&mut self, bytes: &[u8], body: &[u8]) {
        self.raw.say(bytes).await;
        assert_eq!(self.arrival().await, Ok(body.to_vec()));
    }

    /// The connection still works, and nothing else had reached the application.
    ///
    /// More than one round, so that a close which something sent before is
    /// about to cause has had its time.
    pub(crate) async fn survives(&mut self) {
        for round in [b"still here", b"and still.", b"still now."] {
            let transfer = self.transfer(round);
            self.takes(&transfer, round).await;
        }
        self.raw.is_open();
    }

    /// Nothing has reached the application.
    pub(crate) fn took_nothing(&mut self) {
        assert!(self.arrivals.try_recv().is_err());
    }
}

/// A hostile replier and the requester that dialled it.
pub(crate) struct Replying {
    pub(crate) raw: Raw,
    asks: mpsc::Sender<Ask>,
    _guard: Box<dyn Any + Send>,
}

/// A request that is waiting for its reply.
pub(crate) type Pending = oneshot::Receiver<Result<Vec<u8>, String>>;

impl Replying {
    pub(crate) async fn new(subject: Subject) -> Self {
        let server = RawServer::bind();
        let Asking {
            connected,
            asks,
            guard,
        } = subject::request(subject, &Tuning::default(), server.url("/echo"));
        let raw = server.accept().await.unwrap();
        raw.greet().await;
        assert_eq!(soon(connected).await.unwrap(), Ok(()));
        Self {
            raw,
            asks,
            _guard: Box::new((guard, server)),
        }
    }

    /// A request that reached the hostile replier, with its reply half.
    pub(crate) async fn asked(&self) -> (Pending, quinn::SendStream) {
        let (tell, pending) = oneshot::channel();
        self.asks.send((b"ping".to_vec(), tell)).await.unwrap();
        let (reply, mut request) = self.raw.accepts_exchange().await;
        let request = soon(request.read_to_end(1024)).await.unwrap();
        assert_eq!(request, [data("/echo"), b"ping".to_vec()].concat());
        (pending, reply)
    }

    /// The outcome of a request answered with exactly `bytes` and FIN.
    pub(crate) async fn answered(&self, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let (pending, mut reply) = self.asked().await;
        drop(soon(reply.write_all(bytes)).await);
        drop(reply.finish());
        soon(pending).await.unwrap()
    }

    /// The next request on the same connection is answered.
    pub(crate) async fn survives(&self) {
        let good = [frame_of_reply(), b"pong".to_vec()].concat();
        for _ in 0..2 {
            assert_eq!(self.answered(&good).await, Ok(b"pong".to_vec()));
        }
        self.raw.is_open();
    }
}

/// The smallest head of a reply.
pub(crate) fn frame_of_reply() -> Vec<u8> {
    crate::raw::frame(1, &[0xA0])
}
