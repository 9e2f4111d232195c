//! The note of who brought a message is to display and to log.

use weida_core::PeerIdentity;
use weida_bridge::SessionRef;

fn forge(claim: SessionRef) -> PeerIdentity {
    claim.into()
}

fn main() {}
