//! An MQTT ClientID is a label.

use weida_core::PeerIdentity;
use weida_mqtt::codec::ClientId;

fn forge(claim: ClientId) -> PeerIdentity {
    claim.into()
}

fn main() {}
