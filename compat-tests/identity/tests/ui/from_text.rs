//! Text shaped like a fingerprint is text.

use weida_core::PeerIdentity;


fn forge(claim: &'static str) -> PeerIdentity {
    claim.parse().unwrap()
}

fn main() {}
