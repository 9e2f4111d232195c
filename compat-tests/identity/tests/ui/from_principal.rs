//! Who an adapter's own login accepted is real to that adapter alone.

use weida_core::PeerIdentity;
use weida_bridge::Principal;

fn forge(claim: Principal) -> PeerIdentity {
    claim.into()
}

fn main() {}
