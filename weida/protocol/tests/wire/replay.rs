//! The fuzz targets on their committed corpus and on seeded mutations of it.

use std::{fs, path::Path};

use weida_protocol::fuzzing;

use crate::vectors::{ACCEPTED, ENCODINGS, NEGOTIATION, REJECTED, all};

/// Mutations per target; seven targets make about 100 000 inputs.
const MUTATIONS: usize = 14_500;

/// SplitMix64: a few lines, the same inputs on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Bytes that matter to CBOR and to the grammars, rather than any of 256.
const INTERESTING: &[u8] = &[
    0x00, 0x01, 0x17, 0x18, 0x19, 0x1B, 0x1F, 0x20, 0x40, 0x57, 0x58, 0x5F, 0x60, 0x78, 0x7F, 0x80,
    0x81, 0x98, 0x9F, 0xA0, 0xA1, 0xB8, 0xBF, 0xC0, 0xF4, 0xF6, 0xF9, 0xFA, 0xFB, 0xFF, b'.', b'*',
    b'#', b'/', b'%', b'@', b':',
];

fn mutate(seed: &[u8], other: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let byte = if dice.below(2) == 0 {
            INTERESTING[dice.below(INTERESTING.len())]
        } else {
            dice.next() as u8
        };
        match dice.below(6) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            2 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            3 if at < bytes.len() => drop(bytes.remove(at)),
            4 => bytes.truncate(at),
            _ => {
                let from = dice.below(other.len() + 1);
                let to = from + dice.below(other.len() - from + 1);
                bytes.splice(at..at, other[from..to].iter().copied());
            }
        }
    }
    bytes
}

/// Runs `target` on every seed and on mutations; the input is shown when a law breaks.
fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../compat-tests/fuzz/corpus");
    let mut files: Vec<_> = fs::read_dir(corpus.join(name))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut seeds: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    assert!(!seeds.is_empty(), "{name} has a corpus");
    for (_, row) in [ENCODINGS, ACCEPTED, REJECTED, NEGOTIATION]
        .into_iter()
        .flat_map(all)
    {
        seeds.extend(row.bytes);
    }
    let mut dice = Dice(0x7765_6964_6100);
    let mutated: Vec<_> = (0..MUTATIONS)
        .map(|_| {
            let (seed, other) = (dice.below(seeds.len()), dice.below(seeds.len()));
            mutate(&seeds[seed], &seeds[other], &mut dice)
        })
        .collect();
    for input in seeds.iter().chain(&mutated) {
        let outcome = std::panic::catch_unwind(|| target(input));
        assert!(outcome.is_ok(), "{name} breaks on {input:02x?}");
    }
}

#[test]
fn replay_frame_head() {
    replay("frame_head", fuzzing::frame_head);
}

#[test]
fn replay_header() {
    replay("header", fuzzing::header);
}

#[test]
fn replay_negotiation() {
    replay("negotiation", fuzzing::negotiation);
}

#[test]
fn replay_cursor_records() {
    replay("cursor_records", fuzzing::cursor_records);
}

#[test]
fn replay_report_records() {
    replay("report_records", fuzzing::report_records);
}

#[test]
fn replay_address() {
    replay("address", fuzzing::address);
}

#[test]
fn replay_topic_filter() {
    replay("topic_filter", fuzzing::topic_filter);
}
