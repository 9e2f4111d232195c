//! What two other codecs make of our bytes: they read them, write what they read, and we read that to be what we
//! meant. So both directions are compared at once: ours is legal to them, and theirs is legal and equal to us.

use std::sync::Arc;

use bytes::BytesMut;
use mqtt_protocol_core::mqtt::packet as core;
use proptest::prelude::*;
use weida_mqtt::codec::{Encoder, Limits, Packet, PacketType, Role, Version};

use crate::generators::{any_traffic, connect, reader_of};
use crate::kit::{decode_first, decode_with, open_decoder};

fn encode(version: Version, packet: &Packet) -> BytesMut {
    let mut bytes = BytesMut::new();
    Encoder::new(version).encode(packet, &mut bytes).unwrap();
    bytes
}

/// Our bytes through `rmqtt-codec` and out again.
fn through_rmqtt(version: Version, mut bytes: BytesMut) -> Result<BytesMut, String> {
    use rmqtt_codec::{v3, v5};
    use tokio_util::codec::{Decoder as _, Encoder as _};
    let mut out = BytesMut::new();
    match version {
        Version::V311 => {
            let mut codec = v3::Codec::new(0);
            let (packet, _) = codec
                .decode(&mut bytes)
                .map_err(|e| e.to_string())?
                .ok_or("more?")?;
            codec.encode(packet, &mut out).map_err(|e| e.to_string())?;
        }
        Version::V5 => {
            let mut codec = v5::Codec::new(0, 0);
            let (packet, _) = codec
                .decode(&mut bytes)
                .map_err(|e| e.to_string())?
                .ok_or("more?")?;
            codec.encode(packet, &mut out).map_err(|e| e.to_string())?;
        }
    }
    if bytes.is_empty() {
        Ok(out)
    } else {
        Err(format!("{} bytes left", bytes.len()))
    }
}

/// Splits off the fixed header, as that library wants it.
fn body(bytes: &[u8]) -> (u8, &[u8]) {
    let header = 1 + bytes[1..].iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    (bytes[0] & 0x0f, &bytes[header..])
}

/// Our bytes through `mqtt-protocol-core` and out again.
fn through_core(version: Version, packet: PacketType, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (flags, body) = body(bytes);
    macro_rules! relay {
        ($module:ident :: $name:ident) => {{
            let (parsed, taken) =
                core::$module::$name::parse(body).map_err(|error| format!("{error:?}"))?;
            if taken != body.len() {
                return Err(format!("{taken} of {} bytes taken", body.len()));
            }
            parsed.to_continuous_buffer()
        }};
    }
    macro_rules! relay_publish {
        ($module:ident) => {{
            let (parsed, _) = core::$module::Publish::parse(flags, Arc::from(body))
                .map_err(|error| format!("{error:?}"))?;
            parsed.to_continuous_buffer()
        }};
    }
    Ok(match (version, packet) {
        (Version::V311, PacketType::Connect) => relay!(v3_1_1::Connect),
        (Version::V311, PacketType::Connack) => relay!(v3_1_1::Connack),
        (Version::V311, PacketType::Publish) => relay_publish!(v3_1_1),
        (Version::V311, PacketType::PubAck) => relay!(v3_1_1::Puback),
        (Version::V311, PacketType::PubRec) => relay!(v3_1_1::Pubrec),
        (Version::V311, PacketType::PubRel) => relay!(v3_1_1::Pubrel),
        (Version::V311, PacketType::PubComp) => relay!(v3_1_1::Pubcomp),
        (Version::V311, PacketType::Subscribe) => relay!(v3_1_1::Subscribe),
        (Version::V311, PacketType::Suback) => relay!(v3_1_1::Suback),
        (Version::V311, PacketType::Unsubscribe) => relay!(v3_1_1::Unsubscribe),
        (Version::V311, PacketType::Unsuback) => relay!(v3_1_1::Unsuback),
        (Version::V311, PacketType::Pingreq) => relay!(v3_1_1::Pingreq),
        (Version::V311, PacketType::Pingresp) => relay!(v3_1_1::Pingresp),
        (Version::V311, PacketType::Disconnect) => relay!(v3_1_1::Disconnect),
        (Version::V311, PacketType::Auth) => return Err("no AUTH in 3.1.1".into()),
        (Version::V5, PacketType::Connect) => relay!(v5_0::Connect),
        (Version::V5, PacketType::Connack) => relay!(v5_0::Connack),
        (Version::V5, PacketType::Publish) => relay_publish!(v5_0),
        (Version::V5, PacketType::PubAck) => relay!(v5_0::Puback),
        (Version::V5, PacketType::PubRec) => relay!(v5_0::Pubrec),
        (Version::V5, PacketType::PubRel) => relay!(v5_0::Pubrel),
        (Version::V5, PacketType::PubComp) => relay!(v5_0::Pubcomp),
        (Version::V5, PacketType::Subscribe) => relay!(v5_0::Subscribe),
        (Version::V5, PacketType::Suback) => relay!(v5_0::Suback),
        (Version::V5, PacketType::Unsubscribe) => relay!(v5_0::Unsubscribe),
        (Version::V5, PacketType::Unsuback) => relay!(v5_0::Unsuback),
        (Version::V5, PacketType::Pingreq) => relay!(v5_0::Pingreq),
        (Version::V5, PacketType::Pingresp) => relay!(v5_0::Pingresp),
        (Version::V5, PacketType::Disconnect) => relay!(v5_0::Disconnect),
        (Version::V5, PacketType::Auth) => relay!(v5_0::Auth),
    })
}

/// `rmqtt-codec` leaves out what equals the standard's default; the meaning is the same, the model is not.
fn without_spelled_out_defaults(packet: &Packet) -> Packet {
    let mut packet = packet.clone();
    let unless = |flag: &mut Option<bool>, default: bool| *flag = flag.filter(|f| *f != default);
    match &mut packet {
        Packet::Publish(publish) => unless(&mut publish.properties.message.payload_is_utf8, false),
        Packet::Connect(connect) => {
            if let Some(will) = &mut connect.will {
                unless(&mut will.properties.message.payload_is_utf8, false);
            }
            let properties = &mut connect.properties;
            unless(&mut properties.request_response_information, false);
            unless(&mut properties.request_problem_information, true);
            properties.session_expiry_secs = properties.session_expiry_secs.filter(|s| *s != 0);
            properties.topic_alias_maximum = properties.topic_alias_maximum.filter(|m| *m != 0);
            properties.receive_maximum = properties.receive_maximum.filter(|m| m.get() != u16::MAX);
        }
        Packet::Connack(connack) => {
            let properties = &mut connack.properties;
            unless(&mut properties.retain_available, true);
            unless(&mut properties.wildcard_subscription_available, true);
            unless(&mut properties.subscription_id_available, true);
            unless(&mut properties.shared_subscription_available, true);
            properties.topic_alias_maximum = properties.topic_alias_maximum.filter(|m| *m != 0);
            properties.receive_maximum = properties.receive_maximum.filter(|m| m.get() != u16::MAX);
        }
        _ => {}
    }
    packet
}

fn read_back(version: Version, sender: Role, bytes: &[u8]) -> Packet {
    let decoder = open_decoder(reader_of(sender), version, Limits::default());
    decode_with(decoder, bytes).unwrap()
}

proptest! {
    #[test]
    fn rmqtt_codec_agrees((version, sender, packets) in any_traffic(3)) {
        for packet in packets {
            let theirs = through_rmqtt(version, encode(version, &packet))
                .map_err(|why| TestCaseError::fail(format!("{why}: {packet:?}")))?;
            let read = without_spelled_out_defaults(&read_back(version, sender, &theirs));
            prop_assert_eq!(read, without_spelled_out_defaults(&packet));
        }
    }

    #[test]
    fn mqtt_protocol_core_agrees((version, sender, packets) in any_traffic(3)) {
        for packet in packets {
            let ours = encode(version, &packet);
            let theirs = through_core(version, packet.packet_type(), &ours)
                .map_err(|why| TestCaseError::fail(format!("{why}: {packet:?}")))?;
            prop_assert_eq!(read_back(version, sender, &theirs), packet);
        }
    }

    #[test]
    fn both_agree_on_connect(mut packet in prop_oneof![connect(Version::V311), connect(Version::V5)]) {
        let Packet::Connect(connect) = &mut packet else { unreachable!() };
        // Legal in 5.0 (the server assigns an id), but refused by one of the two.
        connect.clean_start |= connect.client_id.is_empty();
        let version = connect.version;
        let ours = encode(version, &packet);
        let rmqtt = through_rmqtt(version, ours.clone())
            .map_err(|why| TestCaseError::fail(format!("{why}: {packet:?}")))?;
        let read = without_spelled_out_defaults(&decode_first(&rmqtt).unwrap());
        prop_assert_eq!(&read, &without_spelled_out_defaults(&packet));
        let core = through_core(version, PacketType::Connect, &ours)
            .map_err(|why| TestCaseError::fail(format!("{why}: {packet:?}")))?;
        prop_assert_eq!(&decode_first(&core).unwrap(), &packet);
    }
}
