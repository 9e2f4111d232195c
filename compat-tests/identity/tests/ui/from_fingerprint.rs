//! A fingerprint that was written down is an expectation, not a proof.

use weida_core::PeerIdentity;
use weida_core::Fingerprint;

fn forge(claim: Fingerprint) -> PeerIdentity {
    PeerIdentity::Key(claim)
}

fn main() {}
