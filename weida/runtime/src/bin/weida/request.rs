//! `weida request`: both halves of an exchange at once, so that a large body and a large reply cannot wait for each other.

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use weida::Error;

use crate::args::RequestArgs;
use crate::body::{Source, stream};
use crate::client;
use crate::exit::Failure;
use crate::send::meta;

/// Copy size of the reply.
const CHUNK_BYTES: usize = 256 * 1024;

/// How long a refused request waits for the reply half, which names the refusal more precisely.
const REFUSAL_WAIT: Duration = Duration::from_secs(2);

/// Runs the command.
pub(crate) async fn run(args: &RequestArgs) -> Result<(), Failure> {
    let source = Source::open(args.file.as_deref()).await?;
    let runtime = client::runtime()?;
    let requester = runtime.requester(client::terms(&args.dial)?);
    client::dial(&args.dial, &args.url, requester.connect(&args.url)).await?;

    let failed = |error: Error| Failure::weida(&args.url, &error);
    let meta = meta(
        args.topic.as_deref(),
        args.content_type.as_deref(),
        source.len(),
    );
    let (mut transfer, reply) = requester.open(meta).await.map_err(failed)?;

    let sending = async {
        match source.copy_into(&mut transfer).await? {
            Ok(_) => Ok(transfer.finish().map(drop)),
            Err(error) => Ok(Err(error)),
        }
    };
    let receiving = async {
        let mut incoming = reply.recv().await.map_err(failed)?;
        let mut stdout = tokio::io::stdout();
        let bytes = stream(&mut incoming, &mut stdout, CHUNK_BYTES)
            .await
            .map_err(|error| told(&args.url, error))?;
        stdout
            .flush()
            .await
            .map_err(|error| Failure::io("write the reply", error))?;
        Ok::<u64, Failure>(bytes)
    };
    tokio::pin!(sending, receiving);

    let bytes = tokio::select! {
        // The reply's word is final, whether the rest of the body was wanted or not.
        received = &mut receiving => received?,
        sent = &mut sending => match sent? {
            Ok(()) => receiving.await?,
            Err(error) => match tokio::time::timeout(REFUSAL_WAIT, receiving).await {
                Ok(received) => received?,
                Err(_) => return Err(failed(error)),
            },
        },
    };
    if args.dial.json {
        eprintln!(
            "{}",
            serde_json::json!({ "schema": 1, "reply": true, "bytes": bytes })
        );
    }
    drop(requester);
    client::finish(runtime).await;
    Ok(())
}

/// An outcome that came through `AsyncRead`, or a plain local write error.
fn told(url: &str, error: std::io::Error) -> Failure {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Error>())
    {
        Some(outcome) => Failure::weida(url, outcome),
        None => Failure::io("copy the reply", error),
    }
}
