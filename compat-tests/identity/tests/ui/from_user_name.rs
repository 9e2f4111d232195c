//! An MQTT user name is a claim until an adapter's login accepted it, and a principal then.

use weida_core::PeerIdentity;
use weida_mqtt::codec::UserName;

fn forge(claim: UserName) -> PeerIdentity {
    claim.into()
}

fn main() {}
