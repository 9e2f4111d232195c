//! Every golden rejection, fired at a live peer. `[wire 25.3]`

use weida_core::codes;
use weida_protocol::{CreditHeader, CursorHeader, DataHeader, Hello, SubscriptionHeader};

use crate::raw::{Raw, data, frame, stopped};
use crate::subject::{Subject, Tuning};
use crate::world::{Case, Replying, World};
use crate::{both, everywhere};

everywhere! {
    golden_rejections_close_the_connection
    golden_negotiation_failures
    golden_oddities_are_accepted
}

both! {
    golden_rejections_fail_one_exchange_on_a_reply_half
    golden_oddities_are_replies
}

const REJECTED: &str = include_str!("../../../weida/protocol/tests/vectors/rejected.txt");

const ACCEPTED: &str = include_str!("../../../weida/protocol/tests/vectors/accepted.txt");

/// What is read although no encoder writes it: place and header.
fn accepted() -> impl Iterator<Item = (&'static str, Vec<u8>)> {
    let lines = ACCEPTED.lines();
    let lines = lines.filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| match line.split(" ; ").collect::<Vec<_>>()[..] {
        [_, place, header] => (place, hex(header)),
        _ => panic!("{line}"),
    })
}

/// One line: id, where the bytes stand, what is refused, what is not.
struct Vector {
    id: &'static str,
    place: &'static str,
    bad: Vec<u8>,
    good: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let lines = REJECTED.lines();
    let vectors: Vec<_> = lines
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let columns: Vec<_> = line.split(" ; ").collect();
            let [id, place, bad, good] = columns[..] else {
                panic!("{line}");
            };
            let (bad, good) = (hex(bad), hex(good));
            Vector {
                id,
                place,
                bad,
                good,
            }
        })
        .collect();
    for number in 1..=70 {
        let id = format!("R{number}");
        assert!(vectors.iter().any(|vector| vector.id == id), "{id}");
    }
    vectors
}

/// `57 00*3` is 57 00 00 00.
fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .flat_map(|word| {
            let (byte, times) = word.split_once('*').unwrap_or((word, "1"));
            let byte = u8::from_str_radix(byte, 16).unwrap();
            std::iter::repeat_n(byte, times.parse().unwrap())
        })
        .collect()
}

/// Asserts CLOSE(2), and that ours says what the codec says.
async fn violation(case: Case, raw: &Raw, vector: &Vector, why: Option<String>) {
    let (code, reason) = raw.closed().await;
    let id = vector.id;
    assert_eq!(code, codes::PROTOCOL_VIOLATION, "{id}: {reason}");
    if let (Subject::Ours, Some(why)) = (case.subject, why) {
        assert_eq!(reason, why, "{id}");
    }
}

async fn golden_rejections_close_the_connection(case: Case) {
    for vector in vectors() {
        let Vector { place, bad, .. } = &vector;
        if *place == "HELLO" {
            let world = World::silent(case, &Tuning::default()).await;
            world.raw.say(&frame(0, bad)).await;
            violation(case, &world.raw, &vector, None).await;
            continue;
        }
        if *place == "ERROR" {
            // Of a reply half only; see below.
            continue;
        }
        let mut world = World::greeted(case).await;
        let raw = &world.raw;
        let why = match *place {
            "preamble" => {
                let _open = raw.uni(bad).await;
                violation(case, raw, &vector, None).await;
                continue;
            }
            "uni stream" => {
                raw.say(bad).await;
                None
            }
            "bidi stream" => {
                let _open = raw.exchange(bad).await;
                violation(case, raw, &vector, None).await;
                continue;
            }
            "DATA" => {
                raw.say(&frame(1, bad)).await;
                DataHeader::decode(bad).err()
            }
            "SUBSCRIBE" => {
                raw.say(&frame(3, &vector.good)).await;
                world.survives().await;
                world.raw.say(&frame(3, bad)).await;
                SubscriptionHeader::decode(bad).err()
            }
            "CREDIT" => {
                raw.say(&frame(5, &vector.good)).await;
                world.survives().await;
                world.raw.say(&frame(5, bad)).await;
                CreditHeader::decode(bad).err()
            }
            "CURSOR" => {
                raw.say(&frame(6, &vector.good)).await;
                world.survives().await;
                world.raw.say(&frame(6, bad)).await;
                CursorHeader::decode(bad).err()
            }
            "FLOW" => {
                raw.say(&frame(7, bad)).await;
                None
            }
            "cursor records" => {
                // No report was ordered, so the id is unknown, whatever records
                // follow. [wire 17]
                let bytes = [frame(6, &[0xA1, 0x00, 0x01]), bad.clone()].concat();
                let cursor = raw.uni(&bytes).await;
                stopped(&cursor, 3).await;
                world.survives().await;
                continue;
            }
            "report records" => {
                raw.say(&[frame(8, &[0xA0]), bad.clone()].concat()).await;
                None
            }
            other => panic!("no place {other:?}"),
        };
        let why = why.map(|error| error.to_string());
        violation(case, &world.raw, &vector, why).await;
    }
}

async fn golden_rejections_fail_one_exchange_on_a_reply_half(subject: Subject) {
    let world = Replying::new(subject).await;
    for vector in vectors() {
        let kind = match vector.place {
            "DATA" => 1,
            "ERROR" => 2,
            _ => continue,
        };
        let good = world.answered(&frame(kind, &vector.good)).await;
        assert_ne!(good, Err("Protocol".into()), "{}", vector.id);
        let bad = world.answered(&frame(kind, &vector.bad)).await;
        assert_eq!(bad, Err("Protocol".into()), "{}", vector.id);
    }
    world.survives().await;
}

/// N1 to N3.
async fn golden_negotiation_failures(case: Case) {
    for hello in [
        "57 00 0E A5 00 81 01 01 19 40 00 02 01 03 80 04 80",
        "57 00 0F A5 00 81 00 01 19 40 00 02 01 03 80 04 81 07",
        "57 00 16 A7 00 81 00 01 19 40 00 02 01 03 80 04 80 05 A1 04 01 06 A1 04 01",
    ] {
        let mut world = World::greeted(case).await;
        world.survives().await;
        let world = World::silent(case, &Tuning::default()).await;
        world.raw.say(&data("/nobody")).await;
        world.raw.say(&hex(hello)).await;
        world.raw.closed_with(codes::NEGOTIATION_FAILED).await;
    }
}

/// [wire 25.2]
async fn golden_oddities_are_accepted(case: Case) {
    let mut world = World::greeted(case).await;
    let mut tried = 0;
    for (place, header) in accepted() {
        match place {
            "DATA" if DataHeader::decode(&header).unwrap().endpoint.is_some() => {
                let stream = world.raw.uni(&frame(1, &header)).await;
                stopped(&stream, 8).await;
            }
            "HELLO" => {
                let mut world = World::silent(case, &Tuning::default()).await;
                world.raw.say(&frame(0, &header)).await;
                if Hello::decode(&header).unwrap().versions.is_empty() {
                    // Legal to say, and nothing to agree on.
                    world.raw.closed_with(codes::NEGOTIATION_FAILED).await;
                    continue;
                }
                world.raw.hears_hello().await;
                if let Some(outcome) = world.dialled().await {
                    assert_eq!(outcome, Ok(()));
                }
                world.survives().await;
            }
            _ => continue,
        }
        tried += 1;
    }
    assert!(tried > 5, "{tried}");
    world.survives().await;
}

async fn golden_oddities_are_replies(subject: Subject) {
    let world = Replying::new(subject).await;
    for (_, header) in accepted().filter(|(place, _)| *place == "DATA") {
        let reply = [frame(1, &header), b"odd".to_vec()].concat();
        assert_eq!(world.answered(&reply).await, Ok(b"odd".to_vec()));
    }
    world.survives().await;
}
