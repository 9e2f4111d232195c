//! Keep-alive and the handshake deadline. [mqtt 8.3] [mqtt 3.1]

use std::time::Duration;

use bytes::BytesMut;
use weida_mqtt::codec::{Connect, Packet, ReasonCode, Version, Violation};
use weida_mqtt::state::{Admission, Connection, Event, KeepAlive, Terms, ZeroKeepAlive};

use crate::kit::{connect, connected_with, start};

fn asking(version: Version, keep_alive_secs: u16) -> Connect {
    Connect {
        keep_alive_secs,
        ..connect(version)
    }
}

#[test]
fn mqtt_8_3_one_and_a_half_times_in_milliseconds() {
    let now = start();
    let clock = KeepAlive::new(1, now);
    assert_eq!(clock.deadline(), Some(now + Duration::from_millis(1500)));
    assert!(!clock.is_expired(now + Duration::from_millis(1499)));
    assert!(clock.is_expired(now + Duration::from_millis(1500)));
    assert_eq!(KeepAlive::new(0, now).deadline(), None);
    assert_eq!(
        KeepAlive::new(u16::MAX, now).deadline(),
        Some(now + Duration::from_millis(98_302_500))
    );
}

#[test]
fn mqtt_8_3_only_whole_packets_from_the_client_count() {
    let now = start();
    let mut connection = connected_with(Terms::default(), asking(Version::V5, 10), now);
    let late = now + Duration::from_secs(14);
    let mut half = BytesMut::from(&[0xc0][..]);
    assert_eq!(connection.receive(&mut half, late), Ok(None));
    assert_eq!(
        connection.next_deadline(),
        Some(now + Duration::from_secs(15)),
        "half a packet"
    );
    half.extend_from_slice(&[0]);
    assert_eq!(
        connection.receive(&mut half, late),
        Ok(Some(Event::Answer(Packet::Pingresp)))
    );
    assert_eq!(
        connection.next_deadline(),
        Some(late + Duration::from_secs(15))
    );
    assert_eq!(connection.on_timeout(late + Duration::from_secs(14)), None);
    let violation = connection
        .on_timeout(late + Duration::from_secs(15))
        .unwrap();
    assert_eq!(violation, Violation::KeepAliveTimeout);
    let Some(Packet::Disconnect(last)) = connection.close(violation.reason_code()) else {
        panic!()
    };
    assert_eq!(last.reason, ReasonCode::KeepAliveTimeout);
    assert_eq!(connection.next_deadline(), None);
}

#[test]
fn mqtt_8_3_server_keep_alive_replaces_none_and_too_long() {
    let now = start();
    let allow = Terms {
        keep_alive_zero: ZeroKeepAlive::Allow,
        ..Terms::default()
    };
    let short = Terms {
        keep_alive_max_secs: 60,
        ..Terms::default()
    };
    for (terms, version, asked, announced, silence_secs) in [
        (Terms::default(), Version::V5, 0, Some(1200), Some(1800)),
        (allow, Version::V5, 0, None, None),
        (short, Version::V5, 120, Some(60), Some(90)),
        (short, Version::V5, 60, None, Some(90)),
        (short, Version::V311, 120, None, Some(180)),
        // Cannot be told: the idle limit of one hour holds.
        (Terms::default(), Version::V311, 0, None, Some(3600)),
    ] {
        let mut connection = Connection::new(terms, now);
        let packet = Packet::Connect(Box::new(asking(version, asked)));
        let mut wire = BytesMut::new();
        weida_mqtt::codec::Encoder::new(version)
            .encode(&packet, &mut wire)
            .unwrap();
        connection.receive(&mut wire, now).unwrap();
        let Packet::Connack(connack) = connection.accept(Admission::default(), now) else {
            panic!()
        };
        assert_eq!(
            connack.properties.server_keep_alive_secs, announced,
            "{version:?} {asked}"
        );
        let deadline = silence_secs.map(|secs| now + Duration::from_secs(secs));
        assert_eq!(connection.next_deadline(), deadline, "{version:?} {asked}");
    }
}

#[test]
fn mqtt_3_1_no_connect_in_time_is_a_close_without_a_word() {
    let now = start();
    let deadline = now + Duration::from_secs(5);
    let mut connection = Connection::new(Terms::default(), deadline);
    let mut drip = BytesMut::from(&[0x10][..]);
    assert_eq!(connection.receive(&mut drip, now), Ok(None));
    assert_eq!(
        connection.next_deadline(),
        Some(deadline),
        "bytes do not move it"
    );
    assert_eq!(connection.on_timeout(now), None);
    let violation = connection.on_timeout(deadline).unwrap();
    assert_eq!(violation, Violation::ConnectTimeout);
    assert_eq!(connection.close(violation.reason_code()), None);
}
