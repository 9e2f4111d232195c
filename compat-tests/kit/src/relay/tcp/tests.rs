use super::*;
use crate::wait::eventually;

const SOON: Duration = Duration::from_secs(10);

/// A server that echoes, and the address of it.
async fn echo() -> (SocketAddr, JoinSet<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let addr = listener.local_addr().unwrap();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut clients = JoinSet::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            clients.spawn(async move {
                let (mut read, mut write) = socket.split();
                let _: io::Result<u64> = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    (addr, tasks)
}

async fn relay_to_echo() -> (TcpRelay, JoinSet<()>) {
    let (addr, tasks) = echo().await;
    (TcpRelay::start(addr, 1).await.unwrap(), tasks)
}

async fn round_trip(socket: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
    socket.write_all(bytes).await?;
    let mut back = vec![0; bytes.len()];
    socket.read_exact(&mut back).await?;
    assert_eq!(back, bytes);
    Ok(())
}

/// Nothing arrives within a while that is long for loopback.
async fn stays_silent(socket: &mut TcpStream) -> bool {
    let mut byte = [0];
    tokio::time::timeout(Duration::from_millis(200), socket.read(&mut byte))
        .await
        .is_err()
}

#[tokio::test]
async fn without_faults_bytes_and_ends_pass() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, &vec![7; 300_000]).await.unwrap();
    assert_eq!(relay.forwarded(Direction::Up), 300_000);
    assert_eq!(relay.forwarded(Direction::Down), 300_000);
    socket.shutdown().await.unwrap();
    assert_eq!(
        socket.read(&mut [0]).await.unwrap(),
        0,
        "the server's end comes through"
    );
    assert_eq!(relay.accepted(), 1);
}

#[tokio::test]
async fn delay_holds_every_piece() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    relay.faults(|faults| {
        faults.delay = Duration::from_millis(60);
        faults.jitter = Duration::from_millis(5);
    });
    let begun = Instant::now();
    round_trip(&mut socket, b"x").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(120), "both ways");
}

#[tokio::test]
async fn a_rate_is_kept() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, &[1; 50_000]).await.unwrap();
    relay.faults(|faults| faults.bytes_per_second = Some(100_000));
    let begun = Instant::now();
    round_trip(&mut socket, &[1; 50_000]).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(450));
}

#[tokio::test]
async fn a_frozen_relay_reads_nothing_and_loses_nothing() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, b"before").await.unwrap();
    relay.freeze();
    socket.write_all(b"during").await.unwrap();
    assert!(stays_silent(&mut socket).await);
    assert_eq!(relay.forwarded(Direction::Up), 6);
    // Nobody reads: our own writes stop once the buffers on the way are full.
    let chunk = vec![0; 1 << 20];
    let stuck = tokio::time::timeout(Duration::from_millis(500), async {
        for _ in 0..64 {
            socket.write_all(&chunk).await.unwrap();
        }
    });
    assert!(stuck.await.is_err(), "backpressure reaches the sender");
    relay.thaw();
    let mut back = [0; 6];
    socket.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"during");
}

#[tokio::test]
async fn one_direction_freezes_alone() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    relay.freeze_only(Direction::Down);
    socket.write_all(b"there").await.unwrap();
    assert!(eventually(|| relay.forwarded(Direction::Up) == 5, SOON).await);
    assert!(stays_silent(&mut socket).await);
    assert_eq!(relay.forwarded(Direction::Down), 0);
}

#[tokio::test]
async fn a_cut_resets_both_sides_and_new_connections_work() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let relay = TcpRelay::start(server.local_addr().unwrap(), 1)
        .await
        .unwrap();
    let mut client = TcpStream::connect(relay.addr()).await.unwrap();
    let (mut accepted, _) = server.accept().await.unwrap();
    client.write_all(b"x").await.unwrap();
    accepted.read_exact(&mut [0]).await.unwrap();
    relay.cut();
    let kind = |result: io::Result<usize>| result.unwrap_err().kind();
    assert_eq!(
        kind(client.read(&mut [0]).await),
        io::ErrorKind::ConnectionReset
    );
    assert_eq!(
        kind(accepted.read(&mut [0]).await),
        io::ErrorKind::ConnectionReset
    );
    let mut again = TcpStream::connect(relay.addr()).await.unwrap();
    let (mut accepted, _) = server.accept().await.unwrap();
    again.write_all(b"y").await.unwrap();
    accepted.read_exact(&mut [0]).await.unwrap();
}

#[tokio::test]
async fn half_open_resets_the_server_and_leaves_the_client_in_silence() {
    let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let relay = TcpRelay::start(server.local_addr().unwrap(), 1)
        .await
        .unwrap();
    let mut client = TcpStream::connect(relay.addr()).await.unwrap();
    let (mut accepted, _) = server.accept().await.unwrap();
    client.write_all(b"x").await.unwrap();
    accepted.read_exact(&mut [0]).await.unwrap();
    relay.half_open();
    assert_eq!(
        accepted.read(&mut [0]).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
    client.write_all(b"nobody reads this").await.unwrap();
    assert!(stays_silent(&mut client).await);
    relay.cut();
    assert_eq!(
        client.read(&mut [0]).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn swallowed_bytes_are_gone_without_a_word() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, b"before").await.unwrap();
    relay.swallow();
    socket.write_all(b"lost").await.unwrap();
    assert!(stays_silent(&mut socket).await);
    relay.restore();
    round_trip(&mut socket, b"after").await.unwrap();
}

#[tokio::test]
async fn refusing_and_redirecting_new_connections() {
    let (relay, _echo) = relay_to_echo().await;
    relay.faults(|faults| faults.refusing = true);
    let mut refused = TcpStream::connect(relay.addr()).await.unwrap();
    assert!(refused.read(&mut [0]).await.is_err());
    relay.restore();
    let (elsewhere, _other) = echo().await;
    relay.redirect(elsewhere);
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, b"x").await.unwrap();
}

#[tokio::test]
async fn a_dead_server_looks_dead_through_the_relay() {
    let gone = crate::FreePort::take().unwrap().release().unwrap();
    let relay = TcpRelay::start(gone, 1).await.unwrap();
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    assert!(socket.read(&mut [0]).await.is_err());
}

#[tokio::test]
async fn dropping_the_relay_resets_its_connections_and_frees_its_port() {
    let (relay, _echo) = relay_to_echo().await;
    let mut socket = TcpStream::connect(relay.addr()).await.unwrap();
    round_trip(&mut socket, b"x").await.unwrap();
    let addr = relay.addr();
    drop(relay);
    let ended = socket.read(&mut [0]).await;
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
    assert!(TcpStream::connect(addr).await.is_err());
}
