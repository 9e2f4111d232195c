//! What the types do not let anybody say. [weida ID-8]

use weida::{ClientTls, ClientTrust, ServerTls, Trust, TrustSource};

/// Two implementations match a type that converts into `ClientTls`, so that
/// naming the item is ambiguous and this file does not compile.
trait NotForDialling<Which> {
    const HOLDS: bool = true;
}

struct Converts;

impl<T: ?Sized> NotForDialling<()> for T {}
impl<T: Into<ClientTls>> NotForDialling<Converts> for T {}

/// "Whoever proves a key" is for those who are dialled. A dialler that would
/// take it, would trust anybody: no conversion leads there, while the same type
/// is accepted by a binding.
#[test]
fn id_8_any_key_cannot_reach_the_dialling_side() {
    const { assert!(<ClientTrust as NotForDialling<_>>::HOLDS) };
    let identity = weida::Identity::generate().unwrap();
    let server = ServerTls::new(identity).require_client(ClientTrust::AnyKey);
    assert!(matches!(server.client_trust, Some(ClientTrust::AnyKey)));
    // What a dialler takes: trust, or a source of it.
    let _dialler: ClientTls = Trust::by_address().into();
    let _dialler: ClientTls = TrustSource::from_trust(Trust::by_address()).into();
}
