//! `weida send`: one payload, one way, and the transport's receipt.

use weida::TransferMeta;

use crate::args::SendArgs;
use crate::body::Source;
use crate::client;
use crate::exit::Failure;

/// Runs the command.
pub(crate) async fn run(args: &SendArgs) -> Result<(), Failure> {
    let source = Source::open(args.file.as_deref()).await?;
    let runtime = client::runtime()?;
    let pusher = runtime.pusher(client::terms(&args.dial)?);
    client::dial(&args.dial, &args.url, pusher.connect(&args.url)).await?;

    let meta = meta(
        args.topic.as_deref(),
        args.content_type.as_deref(),
        source.len(),
    );
    let mut transfer = pusher
        .open(meta)
        .await
        .map_err(|error| Failure::weida(&args.url, &error))?;
    let bytes = source
        .copy_into(&mut transfer)
        .await?
        .map_err(|error| Failure::weida(&args.url, &error))?;
    let delivery = transfer
        .finish()
        .map_err(|error| Failure::weida(&args.url, &error))?;
    delivery
        .delivered()
        .await
        .map_err(|error| Failure::weida(&args.url, &error))?;
    if args.dial.json {
        eprintln!(
            "{}",
            serde_json::json!({ "schema": 1, "receipt": true, "bytes": bytes })
        );
    } else {
        eprintln!("receipt: the peer's transport holds {bytes} bytes");
    }
    drop(pusher);
    client::finish(runtime).await;
    Ok(())
}

/// Metadata that the options name.
pub(crate) fn meta(
    topic: Option<&str>,
    content_type: Option<&str>,
    len: Option<u64>,
) -> TransferMeta {
    let mut meta = TransferMeta::default();
    if let Some(topic) = topic {
        meta = meta.with_topic(topic);
    }
    if let Some(content_type) = content_type {
        meta = meta.with_content_type(content_type);
    }
    if let Some(len) = len {
        meta = meta.with_content_len(len);
    }
    meta
}
