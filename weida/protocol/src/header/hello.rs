//! HELLO: what one side speaks, offers and requires. [wire 8.1]

use weida_core::GuaranteeSet;

use super::{FrameHeader, Out, count, guarantees, require};
use crate::{
    VERSION, caps,
    cbor::{Reader, Writer},
    error::{DecodeError, EncodeError},
};

/// Negotiation input of one side. It names no peer, no session, no other connection. [weida S8-7]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Key 0: versions spoken, at most 64. An empty list is legal and fails negotiation.
    pub versions: Vec<u64>,
    /// Key 1: largest header accepted, in bytes.
    pub max_header_bytes: u64,
    /// Key 2: inbound transfers served at once; advisory.
    pub max_transfers: u64,
    /// Key 3: capabilities supported, at most 64.
    pub capabilities: Vec<u64>,
    /// Key 4: capabilities the peer must support, at most 64.
    pub required_capabilities: Vec<u64>,
    /// Key 5: what this side can honour; core is not written.
    pub offered: GuaranteeSet,
    /// Key 6: what the peer must honour, reached by `offered`; core is not written.
    pub required: GuaranteeSet,
}

impl Hello {
    /// Version 0, no capability, core.
    pub fn v0(max_header_bytes: u64, max_transfers: u64) -> Self {
        Self {
            versions: vec![VERSION],
            max_header_bytes,
            max_transfers,
            capabilities: Vec::new(),
            required_capabilities: Vec::new(),
            offered: GuaranteeSet::CORE,
            required: GuaranteeSet::CORE,
        }
    }

    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`DecodeError`], a violation; also when it requires more than it offers.
    pub fn decode(header: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(header);
        let mut keys = reader.header_map()?;
        let (mut versions, mut max_header_bytes, mut max_transfers) = (None, None, None);
        let (mut capabilities, mut required_capabilities) = (None, None);
        let (mut offered, mut required) = (GuaranteeSet::CORE, GuaranteeSet::CORE);
        while let Some(key) = reader.key(&mut keys)? {
            match key {
                0 => versions = Some(reader.uints(key, caps::MAX_LIST_ITEMS)?),
                1 => max_header_bytes = Some(reader.uint(key)?),
                2 => max_transfers = Some(reader.uint(key)?),
                3 => capabilities = Some(reader.uints(key, caps::MAX_LIST_ITEMS)?),
                4 => required_capabilities = Some(reader.uints(key, caps::MAX_LIST_ITEMS)?),
                5 => offered = guarantees::read(&mut reader, key)?,
                6 => required = guarantees::read(&mut reader, key)?,
                _ => reader.skip(key)?,
            }
        }
        reader.end()?;
        let hello = Self {
            versions: require(versions, 0)?,
            max_header_bytes: require(max_header_bytes, 1)?,
            max_transfers: require(max_transfers, 2)?,
            capabilities: require(capabilities, 3)?,
            required_capabilities: require(required_capabilities, 4)?,
            offered,
            required,
        };
        if !hello.offered.reaches(&hello.required) {
            return Err(DecodeError::RequiredExceedsOffered);
        }
        Ok(hello)
    }
}

impl FrameHeader for Hello {
    fn check(&self) -> Result<(), EncodeError> {
        let lists = [
            ("versions", &self.versions),
            ("capabilities", &self.capabilities),
            ("required capabilities", &self.required_capabilities),
        ];
        for (field, list) in lists {
            if list.len() > caps::MAX_LIST_ITEMS {
                let (got, max) = (list.len(), caps::MAX_LIST_ITEMS);
                return Err(EncodeError::TooMany { field, got, max });
            }
        }
        for set in [&self.offered, &self.required] {
            set.check_wire().map_err(EncodeError::InvalidGuarantees)?;
        }
        if self.offered.reaches(&self.required) {
            Ok(())
        } else {
            Err(EncodeError::RequiredExceedsOffered)
        }
    }

    fn write<B: Out>(&self, out: &mut B) {
        let sets = [(5, &self.offered), (6, &self.required)];
        let mut map = Writer::new(out);
        map.map(count(&sets.map(|(_, set)| !set.is_core())).saturating_add(5));
        list(&mut map, 0, &self.versions);
        map.uint_key(1, self.max_header_bytes);
        map.uint_key(2, self.max_transfers);
        list(&mut map, 3, &self.capabilities);
        list(&mut map, 4, &self.required_capabilities);
        for (key, set) in sets {
            if !set.is_core() {
                map.uint(key);
                guarantees::write(set, &mut map);
            }
        }
    }
}

fn list<B: Out>(map: &mut Writer<'_, B>, key: u64, values: &[u64]) {
    map.uint(key);
    map.array(values.len());
    values.iter().for_each(|value| map.uint(*value));
}
