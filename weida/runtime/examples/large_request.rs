//! A request larger than the windows: read the reply while it is written.
//!
//! A replier may answer before it has read everything, and a stream carries only
//! as much as its reader takes. A requester that first writes all and then reads
//! would wait for the replier, which waits for it: correct flow control, and a
//! standstill. `[weida LG-2, LG-3]`

use weida::{Identity, Limits, Requester, Result, Runtime, RuntimeConfig, TransferMeta};

/// Sends `body` and collects the answer at the same time.
pub(crate) async fn ask(
    requester: &Requester,
    body: &[u8],
    max_reply_bytes: usize,
) -> Result<Vec<u8>> {
    let (mut request, reply) = requester.open(TransferMeta::default()).await?;
    let write = async {
        request.write_all(body).await?;
        request.finish().map(drop)
    };
    let read = async { reply.recv().await?.collect(max_reply_bytes).await };
    let (written, answer) = tokio::join!(write, read);
    // The answer says more than the write does: a replier that has heard enough
    // stops the request and answers all the same.
    let answer = answer?;
    written?;
    Ok(answer.to_vec())
}

/// Small windows, so that a small body is a large one.
pub(crate) fn narrow() -> RuntimeConfig {
    RuntimeConfig {
        limits: Limits {
            stream_receive_window: 64 << 10,
            connection_receive_window: 256 << 10,
            ..Limits::default()
        },
        ..RuntimeConfig::default()
    }
}

/// Answers one request with its own body, piece by piece.
pub(crate) async fn echo(replier: &weida::Replier) -> Result<()> {
    let mut request = replier.accept().await?;
    let mut body = request.take_body();
    let mut reply = request.reply(TransferMeta::default()).await?;
    while let Some(chunk) = body.read_chunk(16 << 10).await? {
        reply.write_chunk(chunk).await?;
    }
    reply.finish().map(drop)
}

#[cfg_attr(test, expect(dead_code, reason = "the test calls the parts"))]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let runtime = Runtime::new(narrow())?;
    let listener = runtime.listener();
    let identity = Identity::generate()?;
    let key = identity.fingerprint()?;
    let binding = listener
        .bind_quic(([127, 0, 0, 1], 0).into(), identity)
        .await?;
    let replier = listener.replier("/echo")?;
    let client = Runtime::new(narrow())?;
    let requester = client.requester(weida::Trust::by_address());
    requester
        .connect(&format!("weida://{key}@{}/echo", binding.local_addr()))
        .await?;
    let body = vec![7; 4 << 20];
    let (answer, echoed) = tokio::join!(ask(&requester, &body, 8 << 20), echo(&replier));
    echoed?;
    #[expect(clippy::print_stdout, reason = "an example shows what it does")]
    {
        println!("{} bytes back", answer?.len());
    }
    Ok(())
}
