//! Runs the cases, and their valid neighbour.

use weida_core::{Fingerprint, PeerIdentity};

/// One case per foreign-id newtype and claim: none converts into the type that names a proved peer.
#[test]
fn s8_31_no_claim_compiles_into_a_peer_identity() {
    trybuild::TestCases::new().compile_fail("tests/ui/from_*.rs");
}

/// The valid neighbour compiles: who holds a proved identity may read it, compare it and hand it over.
#[test]
fn a_proved_peer_can_be_passed_on() {
    fn name_of(peer: Option<PeerIdentity>) -> Option<Fingerprint> {
        match peer {
            Some(PeerIdentity::Key(fingerprint)) => Some(*fingerprint),
            _ => None,
        }
    }
    assert_eq!(name_of(None), None);
}
