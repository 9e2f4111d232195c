//! `weida sub`: prints what arrives until the count is reached or the process is stopped.

use tokio::io::AsyncWriteExt;
use weida::{IncomingTransfer, PeerEvent, PeerEvents, PeerIdentity};

use crate::args::SubArgs;
use crate::client;
use crate::exit::Failure;
use crate::framing::{self, Printed};
use crate::text::Escaped;

/// Runs the command.
pub(crate) async fn run(args: &SubArgs) -> Result<(), Failure> {
    let runtime = client::runtime()?;
    let subscriber = runtime.subscriber(client::terms(&args.dial)?);
    let failed = |error| Failure::weida(&args.url, &error);
    let mut events = subscriber.events();
    // Before the dial: the filter then rides the first connection, and nothing published after it is missed.
    let subscribed = subscriber.subscribe(&args.filter).await;
    // Nothing is dialled and nothing else is subscribed: it can only be the filter.
    subscribed.map_err(|error| Failure::usage(format!("--filter: {error}")))?;
    client::dial(&args.dial, &args.url, subscriber.connect(&args.url)).await?;

    let mut out = tokio::io::stdout();
    let mut printed = 0u64;
    let stop = stopped();
    tokio::pin!(stop);
    while args.count.is_none_or(|count| printed < count) {
        let transfer = tokio::select! {
            biased;
            () = &mut stop => break,
            ended = watch(&mut events, &args.url) => return Err(ended),
            transfer = subscriber.recv() => transfer.map_err(failed)?,
        };
        tokio::select! {
            biased;
            () = &mut stop => break,
            done = print(args, transfer, &mut out) => if done? { printed += 1 },
        }
    }
    drop(subscriber);
    client::finish(runtime).await;
    Ok(())
}

/// Prints one message; false when it was lost on the way (reported, not counted).
async fn print(
    args: &SubArgs,
    mut transfer: IncomingTransfer,
    out: &mut tokio::io::Stdout,
) -> Result<bool, Failure> {
    let topic = transfer
        .meta()
        .topic
        .as_deref()
        .unwrap_or_default()
        .to_owned();
    let lost = |error: std::io::Error| {
        if error
            .get_ref()
            .is_some_and(|inner| inner.is::<weida::Error>())
        {
            eprintln!(
                "lost: a message on '{}' ended early: {error}",
                Escaped(&topic)
            );
            Ok(false)
        } else {
            Err(Failure::io("write to stdout", error))
        }
    };
    if args.dial.json {
        let meta = transfer.meta().clone();
        let payload = match framing::hold(&mut transfer, args.max_bytes).await {
            Ok(Some(payload)) => payload,
            Ok(None) => return Ok(too_long(&topic, args.max_bytes)),
            Err(error) => return lost(error),
        };
        let mut line = serde_json::json!({
            "schema": 1,
            "topic": topic,
            "bytes": payload.len(),
            "content_type": meta.content_type,
            "peer": meta.peer.as_ref().map(peer_text),
        });
        match String::from_utf8(payload) {
            Ok(text) => line["payload"] = text.into(),
            Err(error) => line["payload_hex"] = hex(error.as_bytes()).into(),
        }
        let line = format!("{line}\n");
        out.write_all(line.as_bytes())
            .await
            .map_err(|error| Failure::io("write to stdout", error))?;
        out.flush()
            .await
            .map_err(|error| Failure::io("write to stdout", error))?;
        return Ok(true);
    }
    eprintln!("{}", Escaped(&topic));
    match framing::write(args.framing, &mut transfer, out, args.max_bytes).await {
        Ok(Printed::Whole(_)) => Ok(true),
        Ok(Printed::TooLong) => Ok(too_long(&topic, args.max_bytes)),
        Err(error) => lost(error),
    }
}

fn too_long(topic: &str, max_bytes: usize) -> bool {
    eprintln!(
        "skipped: a message on '{}' is longer than {max_bytes} bytes (--max-bytes)",
        Escaped(topic)
    );
    false
}

/// Reports what happens to the connection; resolves when it will not come back.
async fn watch(events: &mut PeerEvents, url: &str) -> Failure {
    loop {
        match events.recv().await {
            Some(PeerEvent::Lost { cause, .. }) => {
                eprintln!("lost: {cause}; what is published until the redial is missed")
            }
            Some(PeerEvent::Connected { .. }) => tracing::debug!("connected"),
            Some(PeerEvent::GaveUp { why, .. }) => {
                return Failure::gave_up(url, &format!("{why:?}"));
            }
            Some(_) => {}
            None => std::future::pending().await,
        }
    }
}

fn peer_text(peer: &PeerIdentity) -> String {
    match peer {
        PeerIdentity::Key(fingerprint) => fingerprint.to_string(),
        other => format!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _: std::fmt::Result = write!(text, "{byte:02x}");
            text
        })
}

/// Resolves on the first SIGINT or SIGTERM.
pub(crate) async fn stopped() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
