//! `quickstart --demo`: one message each way through the running gateway, so that no other program is needed to see it.

mod client;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::{interval, timeout};
use weida::{Runtime, RuntimeConfig, TransferMeta, Trust};

use client::{Client, ClientError};

/// Everything together takes this long at most.
const PATIENCE: Duration = Duration::from_secs(10);
/// A fan-out tells nobody that a subscription has arrived, so the message is repeated until a copy comes.
const AGAIN: Duration = Duration::from_millis(100);
const BODY: &str = "21.5";

/// One message that was seen on the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crossed {
    from: &'static str,
    to: &'static str,
    sent: &'static str,
    arrived: String,
    payload: String,
}

/// Why a message did not cross.
#[derive(Debug, thiserror::Error)]
pub(super) enum DemoError {
    /// The MQTT half failed.
    #[error("the MQTT client of the demo failed")]
    Mqtt(#[from] ClientError),
    /// The weida half failed.
    #[error("the weida peer of the demo failed")]
    Weida(#[from] weida::Error),
    /// Nothing came.
    #[error("no message crossed within {PATIENCE:?}")]
    Late,
}

/// Sends one message from MQTT to weida and one back.
pub(super) async fn run(mqtt: SocketAddr, weida: &str) -> Result<Vec<Crossed>, DemoError> {
    timeout(PATIENCE, both(mqtt, weida))
        .await
        .map_err(|_| DemoError::Late)?
}

async fn both(mqtt: SocketAddr, weida: &str) -> Result<Vec<Crossed>, DemoError> {
    let runtime = Runtime::new(RuntimeConfig::default())?;
    let mut client = Client::connect(mqtt, "weida-gateway-demo").await?;
    let crossed = vec![
        to_weida(&runtime, &mut client, weida).await?,
        to_mqtt(&runtime, &mut client, weida).await?,
    ];
    client.disconnect().await?;
    runtime.shutdown().await;
    Ok(crossed)
}

async fn to_weida(
    runtime: &Runtime,
    client: &mut Client,
    weida: &str,
) -> Result<Crossed, DemoError> {
    const SENT: &str = "demo/from-mqtt";
    let subscriber = runtime.subscriber(Trust::by_address());
    subscriber.subscribe("demo.#").await?;
    subscriber.connect(&format!("{weida}/mqtt")).await?;
    let mut again = interval(AGAIN);
    let transfer = loop {
        tokio::select! {
            transfer = subscriber.recv() => break transfer?,
            _ = again.tick() => client.publish(SENT, BODY).await?,
        }
    };
    let arrived = transfer.meta().topic.clone().unwrap_or_default();
    let payload = transfer.collect(1024).await?;
    Ok(Crossed {
        from: "MQTT",
        to: "weida",
        sent: SENT,
        arrived,
        payload: String::from_utf8_lossy(&payload).into_owned(),
    })
}

async fn to_mqtt(
    runtime: &Runtime,
    client: &mut Client,
    weida: &str,
) -> Result<Crossed, DemoError> {
    const SENT: &str = "demo.from-weida";
    client.subscribe("demo/from-weida").await?;
    let pusher = runtime.pusher(Trust::by_address());
    pusher.connect(&format!("{weida}/to-mqtt")).await?;
    let meta = TransferMeta::default().with_topic(SENT);
    pusher.send_with(meta, BODY.as_bytes()).await?;
    let (arrived, payload) = client.next_message().await?;
    Ok(Crossed {
        from: "weida",
        to: "MQTT",
        sent: SENT,
        arrived,
        payload,
    })
}

impl Crossed {
    pub(super) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "from": self.from,
            "to": self.to,
            "sent": self.sent,
            "arrived": self.arrived,
            "payload": self.payload,
        })
    }
}

impl fmt::Display for Crossed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            from,
            to,
            sent,
            arrived,
            payload,
        } = self;
        write!(f, "{from} {sent} arrived at {to} as {arrived}: {payload}")
    }
}
