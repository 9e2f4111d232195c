//! `weida serve`: a replier that echoes, a puller that prints, or a publisher of stdin lines.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::task::JoinSet;
use weida::{Identity, IncomingRequest, Listener, TransferMeta};

use crate::args::ServeArgs;
use crate::body::stream_or_stall;
use crate::client;
use crate::exit::Failure;
use crate::sub::stopped;
use crate::text::Escaped;

/// A body that has not moved for this long is abandoned. One that moves may be of any size and take as long as it needs.
const STALL: Duration = Duration::from_secs(30);
/// Requests echoed at once; the next one waits in the replier's queue.
const MAX_ECHOES: usize = 64;
/// Copy size of an echo.
const ECHO_CHUNK_BYTES: usize = 8 * 1024;
/// Copy size of a printed payload.
const SINK_CHUNK_BYTES: usize = 64 * 1024;
/// Longest line that `--pub` takes.
const MAX_LINE_BYTES: usize = 1024 * 1024;

/// Runs the command.
pub(crate) async fn run(args: &ServeArgs) -> Result<(), Failure> {
    let place = Place::parse(&args.url)?;
    let identity = match &args.identity {
        Some(path) => client::load_or_create(path)?,
        None => Identity::generate_for(["localhost", "127.0.0.1", "::1"])
            .map_err(|error| Failure::usage(format!("cannot create an identity: {error}")))?,
    };
    if let Some(path) = &args.cert_out {
        let pem = identity
            .certificate_pem()
            .map_err(|error| Failure::usage(error.to_string()))?;
        std::fs::write(path, pem).map_err(|error| Failure::file("write", path, error))?;
    }
    let fingerprint = identity
        .fingerprint()
        .map_err(|error| Failure::usage(error.to_string()))?;

    let runtime = client::runtime()?;
    let listener = runtime.listener();
    let failed = |error| Failure::weida(&args.url, &error);
    let service = Service::register(args, &listener, &place.path).map_err(failed)?;
    let binding = listener
        .bind_quic(place.bind, identity)
        .await
        .map_err(failed)?;
    let address = format!(
        "weida://{fingerprint}@{}{}",
        binding.local_addr(),
        place.path
    );
    if args.json {
        println!(
            "{}",
            serde_json::json!({ "schema": 1, "address": address, "fingerprint": fingerprint.to_string() })
        );
    } else {
        println!("{address}");
    }

    tokio::select! {
        biased;
        () = stopped() => {}
        result = service.run() => result?,
    }
    drop(binding);
    client::finish(runtime).await;
    Ok(())
}

/// What the path does.
enum Service {
    Echo(weida::Replier),
    Sink(weida::Puller),
    Publish(weida::Publisher),
}

impl Service {
    fn register(args: &ServeArgs, listener: &Listener, path: &str) -> Result<Self, weida::Error> {
        Ok(if args.echo {
            Self::Echo(listener.replier(path)?)
        } else if args.sink {
            Self::Sink(listener.puller(path)?)
        } else {
            Self::Publish(listener.publisher(path)?)
        })
    }

    async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Echo(replier) => echo(replier).await,
            Self::Sink(puller) => sink(puller).await,
            Self::Publish(publisher) => publish(publisher).await,
        }
    }
}

async fn echo(replier: weida::Replier) -> Result<(), Failure> {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = running.join_next() => {}
            request = replier.accept(), if running.len() < MAX_ECHOES => {
                let request = request.map_err(|error| Failure::weida(replier.path(), &error))?;
                running.spawn(answer(request));
            }
        }
    }
}

/// Sends the body back while it arrives.
async fn answer(mut request: IncomingRequest) {
    let mut body = request.take_body();
    let mut meta = TransferMeta::default();
    if let Some(content_type) = &body.meta().content_type {
        meta = meta.with_content_type(content_type.clone());
    }
    if let Some(len) = body.meta().content_len {
        meta = meta.with_content_len(len);
    }
    let result = async {
        let mut reply = request.reply(meta).await.map_err(std::io::Error::from)?;
        stream_or_stall(&mut body, &mut reply, ECHO_CHUNK_BYTES, STALL).await?;
        reply.finish().map(drop).map_err(std::io::Error::from)
    };
    if let Err(error) = result.await {
        eprintln!("abandoned: {error}");
    }
}

async fn sink(puller: weida::Puller) -> Result<(), Failure> {
    let mut out = tokio::io::stdout();
    loop {
        let mut transfer = puller
            .recv()
            .await
            .map_err(|error| Failure::weida(puller.path(), &error))?;
        if let Some(topic) = &transfer.meta().topic {
            eprintln!("{}", Escaped(topic));
        }
        let copied = stream_or_stall(&mut transfer, &mut out, SINK_CHUNK_BYTES, STALL).await;
        match copied {
            Ok(_) => {}
            // The payload ended early: the sender's doing, reported and survived.
            Err(error)
                if error
                    .get_ref()
                    .is_some_and(|inner| inner.is::<weida::Error>())
                    || error.kind() == std::io::ErrorKind::TimedOut =>
            {
                eprintln!("abandoned: {error}");
            }
            Err(error) => return Err(Failure::io("write to stdout", error)),
        }
        out.write_all(b"\n")
            .await
            .map_err(|error| Failure::io("write to stdout", error))?;
        out.flush()
            .await
            .map_err(|error| Failure::io("write to stdout", error))?;
    }
}

/// Publishes until stdin ends; the drain at the end of the process lets the last copies arrive.
async fn publish(publisher: weida::Publisher) -> Result<(), Failure> {
    let mut lines = BufReader::new(tokio::io::stdin());
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut limited = tokio::io::AsyncReadExt::take(&mut lines, MAX_LINE_BYTES as u64 + 1);
        let read = limited
            .read_until(b'\n', &mut line)
            .await
            .map_err(|error| Failure::io("read stdin", error))?;
        if read == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > MAX_LINE_BYTES {
            return Err(Failure::usage(format!(
                "a line is longer than {MAX_LINE_BYTES} bytes"
            )));
        }
        let (topic, body) = split_line(&line);
        match publisher.publish(topic, body.to_vec()) {
            Ok(copies) => eprintln!("published to {copies}"),
            Err(error) => eprintln!("refused: {error}"),
        }
    }
}

/// `topic body`, or a body alone on the empty topic. A topic that is not UTF-8 makes the whole line a body.
fn split_line(line: &[u8]) -> (&str, &[u8]) {
    let Some(space) = line.iter().position(|byte| *byte == b' ') else {
        return ("", line);
    };
    let (topic, rest) = line.split_at(space);
    match std::str::from_utf8(topic) {
        Ok(topic) => (topic, rest.get(1..).unwrap_or_default()),
        Err(_) => ("", line),
    }
}

/// Where to bind and which path to serve. An address to dial has no port 0; one to serve may.
struct Place {
    bind: SocketAddr,
    path: String,
}

impl Place {
    fn parse(url: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::usage(format!(
                "{}: {why}; serve takes weida://IP:PORT/path",
                Escaped(url)
            ))
        };
        let rest = url
            .strip_prefix("weida://")
            .ok_or_else(|| wrong("only weida:// can be served from a shell"))?;
        let (authority, path) = rest
            .split_once('/')
            .ok_or_else(|| wrong("the path is missing"))?;
        let bind = match authority.strip_prefix("localhost:") {
            Some(port) => port
                .parse()
                .map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
                .ok(),
            None => authority.parse().ok(),
        };
        let bind = bind.ok_or_else(|| wrong("the host must be an IP address with a port"))?;
        Ok(Self {
            bind,
            path: format!("/{path}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_may_have_port_zero() {
        let place = Place::parse("weida://127.0.0.1:0/echo").unwrap();
        assert_eq!(place.bind, "127.0.0.1:0".parse().unwrap());
        assert_eq!(place.path, "/echo");
        assert_eq!(
            Place::parse("weida://[::1]:7443/a/b").unwrap().bind,
            "[::1]:7443".parse().unwrap()
        );
        for wrong in [
            "weida+inproc://bus/x",
            "weida://example.org:1/x",
            "weida://127.0.0.1:1",
            "weida://127.0.0.1/x",
        ] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_line_is_a_topic_and_a_body() {
        assert_eq!(split_line(b"a.b hello world"), ("a.b", &b"hello world"[..]));
        assert_eq!(split_line(b"hello"), ("", &b"hello"[..]));
        assert_eq!(split_line(b" hello"), ("", &b"hello"[..]));
        assert_eq!(split_line(b"\xff hello"), ("", &b"\xff hello"[..]));
    }
}
