//! Guarantee sets as HELLO writes them: a map of what is not core. [wire 9.1]

use weida_core::{
    Acknowledgement, Backpressure, Deduplication, DeliveryLevel, Durability, GuaranteeSet,
    OrderingMode, ProducerNaming,
};

use super::Out;
use crate::{
    cbor::{Reader, Writer},
    error::DecodeError,
};

/// Reads the set that is the value of `hello_key`. Unknown dimensions are skipped.
pub(super) fn read(reader: &mut Reader<'_>, hello_key: u64) -> Result<GuaranteeSet, DecodeError> {
    let mut keys = reader.value_map(hello_key)?;
    let mut set = GuaranteeSet::CORE;
    while let Some(key) = reader.key(&mut keys)? {
        if key > 9 {
            reader.skip(key)?;
            continue;
        }
        let value = reader.uint(key)?;
        match key {
            0 => set.delivery = level(DeliveryLevel::from_wire(value), "delivery", value)?,
            1 => {
                set.acknowledgement =
                    level(Acknowledgement::from_wire(value), "acknowledgement", value)?;
            }
            2 => set.durability = Some(level(Durability::from_wire(value), "durability", value)?),
            3 => set.replicas = Some(value),
            4 => set.ordering = level(OrderingMode::from_wire(value), "ordering", value)?,
            5 => {
                set.deduplication = level(Deduplication::from_wire(value), "deduplication", value)?;
            }
            6 => set.dedup_window_ms = Some(value),
            7 => set.backpressure = level(Backpressure::from_wire(value), "backpressure", value)?,
            8 => {
                set.producer_naming =
                    level(ProducerNaming::from_wire(value), "producer_naming", value)?;
            }
            _ => set.control_isolated = level(flag(value), "control_isolated", value)?,
        }
    }
    set.check_wire().map_err(DecodeError::InvalidGuarantees)?;
    Ok(set)
}

/// Appends the dimensions of `set` that are not core.
pub(super) fn write<B: Out>(set: &GuaranteeSet, map: &mut Writer<'_, B>) {
    let core = GuaranteeSet::CORE;
    let differs = |value: u64, core: u64| (value != core).then_some(value);
    let dimensions = [
        differs(set.delivery.to_wire(), core.delivery.to_wire()),
        differs(
            set.acknowledgement.to_wire(),
            core.acknowledgement.to_wire(),
        ),
        set.durability.map(Durability::to_wire),
        set.replicas,
        differs(set.ordering.to_wire(), core.ordering.to_wire()),
        differs(set.deduplication.to_wire(), core.deduplication.to_wire()),
        set.dedup_window_ms,
        differs(set.backpressure.to_wire(), core.backpressure.to_wire()),
        differs(
            set.producer_naming.to_wire(),
            core.producer_naming.to_wire(),
        ),
        set.control_isolated.then_some(1),
    ];
    map.map(dimensions.iter().flatten().count());
    for (key, value) in (0..).zip(dimensions) {
        if let Some(value) = value {
            map.uint_key(key, value);
        }
    }
}

fn level<T>(found: Option<T>, dimension: &'static str, value: u64) -> Result<T, DecodeError> {
    found.ok_or(DecodeError::UnknownLevel { dimension, value })
}

const fn flag(value: u64) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}
