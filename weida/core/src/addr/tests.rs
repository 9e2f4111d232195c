//! Address rules: boundary tables and the round-trip law.

use proptest::prelude::*;

use super::*;
use crate::identity::Fingerprint;

fn refused(input: &str) -> bool {
    matches!(Address::parse(input), Err(Error::InvalidAddress(_)))
}

fn quic(input: &str) -> EndpointAddr {
    match Address::parse(input) {
        Ok(Address::Quic(addr)) => addr,
        other => panic!("{input:?}: {other:?}"),
    }
}

#[test]
fn ad_1_path_boundaries() {
    let path = |len: usize| format!("/{}", "x".repeat(len - 1));
    assert!(validate_endpoint_path("/").is_ok());
    assert!(validate_endpoint_path(&path(512)).is_ok());
    for opaque in ["/*", "/..", "/%20", "/a/b", "/a%20b?x#y", "//", "/Ä"] {
        assert!(validate_endpoint_path(opaque).is_ok(), "{opaque:?}");
        assert_eq!(quic(&format!("weida://h{opaque}")).path, opaque);
    }
    for bad in ["", "x", "jobs", "/a\x1f", "/\n", &path(513)] {
        let got = validate_endpoint_path(bad);
        assert!(matches!(got, Err(Error::InvalidEndpointPath)), "{bad:?}");
    }
    let long = Address::parse(&format!("weida://h:1{}", path(513)));
    assert!(matches!(long, Err(Error::InvalidEndpointPath)));
}

#[test]
fn ad_4_a_bad_fingerprint_in_an_address_is_an_invalid_address() {
    let key = Fingerprint::of_spki(b"test");
    assert_eq!(quic(&format!("weida://{key}@host:1/p")).peer, Some(key));
    let upper = key.to_string().to_uppercase().replace("SHA256", "sha256");
    assert_eq!(quic(&format!("weida://{upper}@host/p")).peer, Some(key));
    for bad in [
        "sha256:00@host:1",
        "@host:1",
        "user@host:1",
        "SHA256:00@h",
        "a@sha256:00@h",
    ] {
        assert!(refused(&format!("weida://{bad}/p")), "{bad:?}");
    }
}

#[test]
fn ad_6_local_schemes_pin_no_key() {
    let key = Fingerprint::of_spki(b"test");
    for scheme in [SCHEME_UNIX, SCHEME_INPROC, SCHEME_PIPE] {
        assert!(Address::parse(&format!("{scheme}://name/p")).is_ok());
        assert!(refused(&format!("{scheme}://{key}@name/p")), "{scheme}");
        assert!(refused(&format!("{scheme}://@name/p")), "{scheme}");
    }
}

#[test]
fn ad_7_the_socket_budget_holds_after_decoding() {
    let max = MAX_SOCKET_PATH_BYTES;
    let Ok(Address::Unix(addr)) = Address::parse(&format!("weida+unix://{}/p", "%2F".repeat(max)))
    else {
        panic!("107 decoded bytes fit");
    };
    assert_eq!(addr.socket, "/".repeat(max));
    assert!(refused(&format!(
        "weida+unix://{}/p",
        "%2F".repeat(max + 1)
    )));
    assert!(refused(&format!("weida+unix://{}/p", "x".repeat(max + 1))));
}

#[test]
fn wire_4_quic_authorities() {
    let addr = quic("weida://[2001:db8::1]:7443/p");
    assert_eq!((addr.host.as_str(), addr.port), ("2001:db8::1", Some(7443)));
    assert_eq!(addr.to_string(), "weida://[2001:db8::1]:7443/p");
    assert_eq!(quic("weida://[::1]/p").to_string(), "weida://[::1]/p");
    let set = quic("weida://nodes.example/p");
    assert_eq!(
        (set.port, set.to_string().as_str()),
        (None, "weida://nodes.example/p")
    );
    assert_eq!(quic("weida://h:65535/p").port, Some(65_535));
    for bad in [
        "weida:///p",
        "weida://:1/p",
        "weida://h:0/p",
        "weida://h:65536/p",
        "weida://h:/p",
        "weida://h:+1/p",
        "weida://h:01/p",
        "weida://h:1x/p",
        "weida://::1/p",
        "weida://2001:db8::1:7443/p",
        "weida://[::1/p",
        "weida://[]/p",
        "weida://[h]:1/p",
        "weida://[::1]1/p",
        "weida://h\x01/p",
        "weida://h",
        "weida://h:1",
        "weida://",
        "weida:/h/p",
        "WEIDA://h/p",
        "http://h/p",
        "weida+tcp://h/p",
        "",
        "h:1/p",
    ] {
        assert!(refused(bad), "{bad:?}");
    }
}

#[test]
fn wire_4_local_authorities() {
    let Ok(Address::Unix(addr)) = Address::parse("weida+unix://%2frun%2Fw.sock/jobs") else {
        panic!("either case of hex digit decodes");
    };
    assert_eq!(
        (addr.socket.as_str(), addr.path.as_str()),
        ("/run/w.sock", "/jobs")
    );
    assert_eq!(addr.to_string(), "weida+unix://%2Frun%2Fw.sock/jobs");
    let Ok(Address::Inproc(addr)) = Address::parse("weida+inproc://bus/p") else {
        panic!()
    };
    assert_eq!(addr.bus, "bus");
    let Ok(Address::Pipe(addr)) = Address::parse("weida+pipe://a%20b/p") else {
        panic!()
    };
    assert_eq!(addr.os_path(), r"\\.\pipe\a%20b");
    let (fits, over) = ("b".repeat(256), "b".repeat(257));
    for scheme in [SCHEME_INPROC, SCHEME_PIPE] {
        assert!(Address::parse(&format!("{scheme}://{fits}/p")).is_ok());
        assert!(refused(&format!("{scheme}://{over}/p")));
        assert!(refused(&format!("{scheme}://\x02/p")));
        assert!(refused(&format!("{scheme}:///p")));
    }
    for bad in ["%", "%2", "%2G", "%+F", "%00", "%FF", ""] {
        assert!(refused(&format!("weida+unix://{bad}/p")), "{bad:?}");
    }
    assert!(refused(r"weida+pipe://\\host\x/p"));
}

#[test]
fn a_hostile_text_is_printed_escaped_and_cut() {
    let error = Address::parse(&format!("weida://\n\x1b{}", "x".repeat(9000))).unwrap_err();
    let text = error.to_string();
    assert!(
        text.len() < 400 && !text.contains(['\n', '\u{1b}']),
        "{text}"
    );
}

fn any_path() -> impl Strategy<Value = String> {
    "/[^\\x00-\\x1f]{0,40}"
}

fn any_address() -> impl Strategy<Value = Address> {
    let host = prop_oneof![
        "[a-z0-9.-]{1,20}",
        any::<std::net::Ipv4Addr>().prop_map(|ip| ip.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|ip| ip.to_string()),
    ];
    let peer = any::<Option<[u8; 32]>>().prop_map(|key| key.map(Fingerprint::from_bytes));
    let port = proptest::option::of(1..=u16::MAX);
    prop_oneof![
        (host, port, any_path(), peer).prop_map(|(host, port, path, peer)| {
            Address::Quic(EndpointAddr {
                host,
                port,
                path,
                peer,
            })
        }),
        ("[^\\x00]{1,26}", any_path())
            .prop_map(|(socket, path)| Address::Unix(UnixAddr { socket, path })),
        ("[^\\x00-\\x1f/@]{1,64}", any_path())
            .prop_map(|(bus, path)| Address::Inproc(InprocAddr { bus, path })),
        ("[^\\x00-\\x1f/@\\\\]{1,64}", any_path())
            .prop_map(|(name, path)| Address::Pipe(PipeAddr { name, path })),
    ]
}

proptest! {
    /// Printing loses nothing that parsing reads.
    #[test]
    fn print_then_parse_is_identity(address in any_address()) {
        prop_assert_eq!(Address::parse(&address.to_string()).unwrap(), address);
    }

    /// Whatever parses prints to a text that parses to the same; nothing panics.
    #[test]
    fn parse_is_total_and_stable(
        input in "(weida(\\+unix|\\+pipe|\\+inproc)?://)?[@:/%a-f0-9\\[\\].]{0,40}",
    ) {
        if let Ok(address) = Address::parse(&input) {
            prop_assert_eq!(Address::parse(&address.to_string()).unwrap(), address);
        }
    }
}
