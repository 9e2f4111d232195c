//! From a TCP connection to a session: transport, CONNECT, and who may have which ClientID.
//! [mqtt 3.2] [mqtt 3.4] [mqtt 9]
//!
//! Order of the checks: decode, version, drain and limits, rate, authenticate, authorise the
//! ClientID, will, takeover. A refused newcomer disturbs nobody.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;

use rand::Rng;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info, info_span};
use weida_bridge::{Principal, SessionKey, SessionRef};

use super::close::close;
use super::driver::{Driver, End, Remains};
use super::gate::{Entered, TurnedAway};
use super::host::{Finisher, Host};
use super::intake::{Intake, Intakes};
use super::proxy;
use super::read::ReadBuffer;
use super::stream::{Rewound, Stream};
use super::write::WriteBuffer;
use crate::acl::{Access, NoAccess};
use crate::auth::{self, Accepted, Denied, Login};
use crate::codec::{ClientId, Connect, PacketType, ReasonCode};
use crate::config::LabelPolicy;
use crate::metrics::{Cause, Closed, Op};
use crate::session::{Claim, Ending, NoClaim, Outbound, Session, TableKey, will_publication};
use crate::state::{Admission, Connection, Event};

/// Serves one accepted connection to its end.
pub(crate) async fn drive<I: Intakes>(
    host: Arc<Host<I>>,
    socket: TcpStream,
    from: SocketAddr,
    stop: CancellationToken,
) {
    let deadline = Instant::now() + host.config.handshake_timeout;
    let opening = Opening::new(&host, deadline);
    let connected = opening.run(socket, from, &stop).await;
    let Some((driver, connected)) = connected else {
        host.metrics.closed(Closed::Handshake).add(1);
        return;
    };
    let span = info_span!("session", number = connected.session.number());
    Box::pin(run(host, driver, connected, stop))
        .instrument(span)
        .await;
}

/// A client that is let in, before anything is served.
struct Connected {
    session: Arc<Session>,
    claim: Claim,
    will: Option<crate::codec::Will>,
    _entered: Entered,
}

async fn run<I: Intakes>(
    host: Arc<Host<I>>,
    mut driver: Driver<I>,
    connected: Connected,
    stop: CancellationToken,
) {
    if stop.is_cancelled() {
        // The goodbye to all sessions may have been said before this one was among them.
        connected.session.end(Ending::Shutdown);
    }
    let end = driver.serve().await;
    debug!(
        claimed_id = ?connected.session.key().foreign_id,
        reason = end.closed.as_str(),
        "connection ended"
    );
    host.metrics.closed(end.closed).add(1);
    host.metrics.sessions.sub(1);
    let will = connected.will.filter(|_| end.will);
    let remains = driver.release(will.as_ref().map(will_publication));
    drop(connected.claim);
    let Remains {
        stream,
        write,
        connection,
        intake,
    } = remains;
    finish(&host.finisher, intake).await;
    say_goodbye(stream, write, connection, end).await;
}

/// Hands what is still on its way through routes to the finisher, or sees it through here.
async fn finish<N: Intake>(finisher: &Finisher, intake: N) {
    if intake.is_idle() {
        return;
    }
    let abort = finisher.abort.clone();
    match Arc::clone(&finisher.room).try_acquire_many_owned(intake.awaited()) {
        Ok(room) => {
            finisher.tasks.spawn(async move {
                let _room = room;
                tokio::select! {
                    () = abort.cancelled() => {}
                    () = intake.finish() => {}
                }
            });
        }
        Err(_) => tokio::select! {
            () = abort.cancelled() => {}
            () = intake.finish() => {}
        },
    }
}

async fn say_goodbye(stream: Stream, mut write: WriteBuffer, mut connection: Connection, end: End) {
    if end.closed == Closed::Lost {
        return;
    }
    if let Some(last) = end.reason.and_then(|reason| connection.close(reason)) {
        // What cannot be said within the client's own limits is left unsaid.
        let _: Result<usize, _> = connection.write(&last, write.control());
    }
    close(stream, write).await;
}

/// A connection that is no session yet.
struct Opening<'a, I> {
    host: &'a Arc<Host<I>>,
    deadline: Instant,
    read: ReadBuffer,
    connection: Connection,
}

/// A transport whose CONNECT is awaited.
struct Opened {
    stream: Stream,
    from: SocketAddr,
    entered: Result<Entered, TurnedAway>,
    _permit: OwnedSemaphorePermit,
}

/// Why a CONNECT is refused.
#[derive(Debug, Clone, Copy)]
struct No {
    reason: ReasonCode,
    cause: Cause,
}

impl<'a, I: Intakes> Opening<'a, I> {
    fn new(host: &'a Arc<Host<I>>, deadline: Instant) -> Self {
        let connection = Connection::new(host.terms, deadline.into_std());
        Self {
            host,
            deadline,
            read: ReadBuffer::new(),
            connection,
        }
    }

    async fn run(
        mut self,
        socket: TcpStream,
        from: SocketAddr,
        stop: &CancellationToken,
    ) -> Option<(Driver<I>, Connected)> {
        let opened = timeout_at(self.deadline, self.open(socket, from)).await;
        let Ok(opened) = opened else {
            self.host
                .metrics
                .refused(Op::Connect, Cause::Malformed)
                .add(1);
            return None;
        };
        let Opened {
            mut stream,
            from,
            entered,
            _permit,
        } = opened?;
        let connect = tokio::select! {
            biased;
            () = stop.cancelled() => {
                // Whoever is only half in when the gateway stops is not answered.
                self.host.metrics.refused(Op::Connect, Cause::Draining).add(1);
                return None;
            }
            read = timeout_at(self.deadline, self.read_connect(&mut stream)) => match read {
                Ok(Ok(connect)) => connect,
                Ok(Err(no)) => {
                    self.refuse(stream, from, no).await;
                    return None;
                }
                Err(_) => {
                    self.host.metrics.refused(Op::Connect, Cause::Malformed).add(1);
                    return None;
                }
            },
        };
        let admitted = match entered {
            Ok(entered) => self
                .admit(&stream, from, &connect, stop)
                .await
                .map(|ok| (ok, entered)),
            Err(away) => Err(Some(turned_away(away))),
        };
        match admitted {
            Ok((admitted, entered)) => self.welcome(stream, &connect, admitted, entered),
            Err(no) => {
                self.refuse(stream, from, no).await;
                None
            }
        }
    }

    /// PROXY header, the gate, a place among the handshakes, TLS: whatever the listener wants.
    async fn open(&mut self, socket: TcpStream, mut from: SocketAddr) -> Option<Opened> {
        let host = self.host;
        let mut stream = Stream::Plain(socket);
        if host.config.proxy_from.contains(&from.ip().to_canonical()) {
            from = self.proxied(&mut stream, from).await?;
        }
        let entered = host.gate.enter(from.ip(), Instant::now());
        let permit = match &entered {
            Ok(_) => Arc::clone(&host.handshakes).acquire_owned().await.ok()?,
            Err(away) => {
                // A few are told why; a flood of them gets no more than a closed door.
                let told = Arc::clone(&host.turned_away).try_acquire_owned();
                match told {
                    Ok(permit) if host.tls.is_none() => permit,
                    _ => {
                        host.metrics
                            .refused(Op::Connect, turned_away(*away).cause)
                            .add(1);
                        return None;
                    }
                }
            }
        };
        if let Some(tls) = &host.tls {
            stream = self.tls(tls, stream, from).await?;
        }
        Some(Opened {
            stream,
            from,
            entered,
            _permit: permit,
        })
    }

    async fn proxied(&mut self, stream: &mut Stream, from: SocketAddr) -> Option<SocketAddr> {
        loop {
            match proxy::take(&mut self.read.bytes) {
                proxy::Header::Client(client) => return Some(client),
                proxy::Header::Itself => return Some(from),
                proxy::Header::Malformed => {
                    self.host
                        .metrics
                        .refused(Op::Connect, Cause::Malformed)
                        .add(1);
                    return None;
                }
                proxy::Header::NeedMore(_) => {
                    let got = poll_fn(|cx| self.read.poll_fill(stream, cx)).await;
                    if !matches!(got, Ok(1..)) {
                        return None;
                    }
                }
            }
        }
    }

    async fn tls(&mut self, tls: &TlsAcceptor, stream: Stream, from: SocketAddr) -> Option<Stream> {
        let Stream::Plain(socket) = stream else {
            return None;
        };
        // Bytes behind a PROXY header that are here already are the start of the TLS handshake.
        let early = self.read.bytes.split().freeze();
        match tls.accept(Rewound::new(early, socket)).await {
            Ok(tls) => Some(Stream::Tls(Box::new(tls))),
            Err(error) => {
                debug!(%from, %error, "tls handshake failed");
                self.host
                    .metrics
                    .refused(Op::Connect, Cause::NotAuthenticated)
                    .add(1);
                None
            }
        }
    }

    /// Reads until CONNECT is whole; at most 64 KiB are held for it.
    async fn read_connect(&mut self, stream: &mut Stream) -> Result<Box<Connect>, Option<No>> {
        loop {
            let now = Instant::now().into_std();
            match self.connection.receive(&mut self.read.bytes, now) {
                Ok(Some(Event::Connect(connect))) => return Ok(connect),
                Ok(_) => {}
                Err(violation) => {
                    self.host.metrics.malformed(violation.rule());
                    let reason = violation.reason_code();
                    let cause = match reason {
                        ReasonCode::UnsupportedProtocolVersion
                        | ReasonCode::BadAuthenticationMethod
                        | ReasonCode::QosNotSupported
                        | ReasonCode::RetainNotSupported => Cause::Unsupported,
                        ReasonCode::PacketTooLarge => Cause::TooLarge,
                        ReasonCode::ClientIdentifierNotValid => Cause::BadName,
                        _ => Cause::Malformed,
                    };
                    return Err(Some(No { reason, cause }));
                }
            }
            match poll_fn(|cx| self.read.poll_fill(stream, cx)).await {
                Ok(0) | Err(_) => {
                    self.host
                        .metrics
                        .refused(Op::Connect, Cause::Malformed)
                        .add(1);
                    return Err(None);
                }
                Ok(_) => {}
            }
        }
    }

    async fn admit(
        &self,
        stream: &Stream,
        from: SocketAddr,
        connect: &Connect,
        stop: &CancellationToken,
    ) -> Result<Admitted, Option<No>> {
        let host = self.host;
        let no = |reason, cause| Some(No { reason, cause });
        if stop.is_cancelled() {
            return Err(no(ReasonCode::ServerUnavailable, Cause::Draining));
        }
        let user = connect.user_name.as_ref().map(|name| name.as_str());
        if user.is_some_and(|user| user.len() > 128)
            || connect
                .password
                .as_ref()
                .is_some_and(|p| p.expose().len() > 512)
        {
            return Err(no(
                ReasonCode::BadUserNameOrPassword,
                Cause::NotAuthenticated,
            ));
        }
        let label = connect.client_id.as_str();
        let now = Instant::now();
        if !host.gate.may_log_in(from.ip(), user, now)
            || host.gate.is_key_banned(from.ip(), label, now)
        {
            return Err(no(ReasonCode::Banned, Cause::Banned));
        }
        let accepted = self.authenticate(stream, from, connect, user).await?;
        if label.len() > host.config.max_client_id_bytes {
            return Err(no(ReasonCode::ClientIdentifierNotValid, Cause::NameTooLong));
        }
        let assigned = label.is_empty().then(assigned_client_id);
        let client_id: Arc<str> = assigned.as_deref().unwrap_or(label).into();
        let tenant = host.config.tenant.as_deref();
        let access = Access::decide(&host.grants, &host.name, tenant, &accepted, &client_id)
            .map_err(|denied| match denied {
                NoAccess::NoGrant => no(ReasonCode::NotAuthorized, Cause::NotAuthorized),
                NoAccess::ClientId => {
                    no(ReasonCode::ClientIdentifierNotValid, Cause::NotAuthorized)
                }
            })?;
        if let Some(will) = &connect.will
            && (will.topic.is_reserved() || !access.may_will(&will.topic))
        {
            return Err(no(ReasonCode::NotAuthorized, Cause::NotAuthorized));
        }
        let principal = accepted.principal;
        let key = TableKey {
            group: Arc::clone(&host.group),
            principal: by_principal(host.config.label_policy, &principal),
            client_id: Arc::clone(&client_id),
        };
        let sessions = usize::try_from(host.metrics.sessions.get()).unwrap_or(usize::MAX);
        if host.sessions.is_full_for(&key) || sessions >= host.config.max_sessions {
            return Err(no(ReasonCode::QuotaExceeded, Cause::Limit));
        }
        let session = self.session(principal, client_id, access, from);
        let claim = host.sessions.claim(key, Arc::clone(&session)).await;
        let claim = claim.map_err(|refused| Some(self.no_claim(refused, from, label)))?;
        if claim.took_over {
            host.metrics.takeovers_same.add(1);
        }
        Ok(Admitted {
            session,
            claim,
            assigned,
        })
    }

    async fn authenticate(
        &self,
        stream: &Stream,
        from: SocketAddr,
        connect: &Connect,
        user: Option<&str>,
    ) -> Result<Accepted, Option<No>> {
        let certificate = stream.certificate();
        let login = Login {
            user_name: user,
            password: connect.password.as_ref().map(|password| password.expose()),
            certificate: certificate.as_ref(),
        };
        let checked =
            auth::authenticate(&self.host.config.auth, login, self.host.passwords.as_ref());
        checked.await.map_err(|denied| match denied {
            Denied::Busy => Some(No {
                reason: ReasonCode::ServerBusy,
                cause: Cause::RateLimited,
            }),
            Denied::NotAuthenticated => {
                self.host.gate.login_failed(from.ip(), user, Instant::now());
                Some(No {
                    reason: ReasonCode::BadUserNameOrPassword,
                    cause: Cause::NotAuthenticated,
                })
            }
        })
    }

    fn session(
        &self,
        principal: Principal,
        client_id: Arc<str>,
        access: Access,
        from: SocketAddr,
    ) -> Arc<Session> {
        let host = self.host;
        let shown = SessionRef {
            adapter: "mqtt",
            listener: Arc::clone(&host.name),
            principal: Some(principal.clone()),
            foreign: Arc::clone(&client_id),
            address: Some(from.to_string()),
        };
        let key = SessionKey::new(Arc::clone(&host.group), principal, client_id);
        let outbound = Outbound::new(host.config.queue, Arc::clone(&host.metrics));
        Arc::new(Session::new(key, access, Arc::new(shown), from, outbound))
    }

    fn no_claim(&self, refused: NoClaim, from: SocketAddr, label: &str) -> No {
        match refused {
            NoClaim::OtherPrincipal => {
                self.host.metrics.takeovers_other.add(1);
                No {
                    reason: ReasonCode::ClientIdentifierNotValid,
                    cause: Cause::LabelInUse,
                }
            }
            NoClaim::Flapping => {
                self.host.gate.ban_key(from.ip(), label, Instant::now());
                No {
                    reason: ReasonCode::Banned,
                    cause: Cause::Banned,
                }
            }
            NoClaim::Busy => No {
                reason: ReasonCode::ServerBusy,
                cause: Cause::Internal,
            },
            NoClaim::Limit => No {
                reason: ReasonCode::QuotaExceeded,
                cause: Cause::Limit,
            },
        }
    }

    fn welcome(
        mut self,
        stream: Stream,
        connect: &Connect,
        admitted: Admitted,
        entered: Entered,
    ) -> Option<(Driver<I>, Connected)> {
        let Admitted {
            session,
            claim,
            assigned,
        } = admitted;
        // Expiry 0 and no session present, whatever was asked: said in 5.0, documented in 3.1.1.
        let admission = Admission {
            session_present: false,
            session_expiry_secs: 0,
            assigned_client_id: assigned.and_then(|id| ClientId::parse(&id).ok()),
        };
        let connack = self.connection.accept(admission, Instant::now().into_std());
        self.host.metrics.packets_in(PacketType::Connect).add(1);
        self.host.metrics.connected(connect.version).add(1);
        self.host.metrics.sessions.add(1);
        let mut driver = Driver::new(
            Arc::clone(self.host),
            stream,
            self.read,
            self.connection,
            Arc::clone(&session),
        );
        let will = connect.will.as_ref().map(detached_will);
        let connected = Connected {
            session,
            claim,
            will,
            _entered: entered,
        };
        if driver.greet(&connack).is_err() {
            // The CONNACK does not fit the client's own maximum: nothing can be said to it.
            connected.session.end(Ending::Shutdown);
        }
        Some((driver, connected))
    }

    /// Answers with CONNACK where the version has one, then closes.
    async fn refuse(mut self, stream: Stream, from: SocketAddr, no: impl Into<Option<No>>) {
        let Some(no) = no.into() else { return };
        self.host.metrics.refused(Op::Connect, no.cause).add(1);
        info!(%from, cause = no.cause.as_str(), code = no.reason.code(), "connect refused");
        let mut write = WriteBuffer::default();
        if let Some(last) = self.connection.close(no.reason) {
            let _: Result<usize, _> = self.connection.write(&last, write.control()); // or silence
        }
        close(stream, write).await;
    }
}

struct Admitted {
    session: Arc<Session>,
    claim: Claim,
    assigned: Option<String>,
}

fn turned_away(away: TurnedAway) -> No {
    match away {
        TurnedAway::Rate => No {
            reason: ReasonCode::ConnectionRateExceeded,
            cause: Cause::RateLimited,
        },
        TurnedAway::PerAddress => No {
            reason: ReasonCode::QuotaExceeded,
            cause: Cause::Limit,
        },
        TurnedAway::Banned => No {
            reason: ReasonCode::Banned,
            cause: Cause::Banned,
        },
    }
}

fn by_principal(policy: LabelPolicy, principal: &Principal) -> Option<Principal> {
    match policy {
        LabelPolicy::OnePrincipal => None,
        LabelPolicy::Any => Some(principal.clone()),
    }
}

/// `auto-` and 22 characters: 128 bits nobody can guess. [mqtt 9.4]
fn assigned_client_id() -> String {
    const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut number: u128 = rand::rng().random();
    let mut id = String::from("auto-");
    for _ in 0..22 {
        id.push(char::from(BASE62[(number % 62) as usize]));
        number /= 62;
    }
    id
}

/// The will lives as long as the connection, so it does not keep the CONNECT packet alive.
fn detached_will(will: &crate::codec::Will) -> crate::codec::Will {
    let mut will = will.clone();
    will.topic = will.topic.detached();
    will.payload = bytes::Bytes::copy_from_slice(&will.payload);
    will
}
