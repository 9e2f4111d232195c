use std::sync::Arc;

use proptest::prelude::*;

use super::*;

fn roomy() -> MemoryStore {
    MemoryStore::new(10_000, 1 << 20)
}

#[cfg(feature = "test-util")]
#[tokio::test]
async fn the_memory_store_keeps_the_contract() {
    contract::check(roomy).await;
}

/// An engine that breaks the contract fails the suite: the suite is a test, not a formality.
#[cfg(feature = "test-util")]
#[tokio::test]
#[should_panic(expected = "absent was expected and found")]
async fn the_contract_catches_an_engine_that_never_swaps() {
    #[derive(Debug)]
    struct NeverSwaps(MemoryStore);
    impl Store for NeverSwaps {
        fn get(&self, key: Bytes) -> BoxFuture<'_, Result<Option<Bytes>, StoreError>> {
            self.0.get(key)
        }
        fn compare_and_set(
            &self,
            _: Bytes,
            _: Option<Bytes>,
            _: Option<Bytes>,
        ) -> BoxFuture<'_, Result<Swap, StoreError>> {
            Box::pin(std::future::ready(Ok(Swap::Differs(None))))
        }
        fn scan(
            &self,
            range: KeyRange,
            limit: usize,
        ) -> BoxFuture<'_, Result<Vec<(Bytes, Bytes)>, StoreError>> {
            self.0.scan(range, limit)
        }
        fn batch(&self, batch: Batch) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
            self.0.batch(batch)
        }
        fn commit(&self) -> BoxFuture<'_, Result<CommitToken, StoreError>> {
            self.0.commit()
        }
        fn stats(&self) -> BoxFuture<'_, Result<StoreStats, StoreError>> {
            self.0.stats()
        }
    }
    contract::check(|| NeverSwaps(roomy())).await;
}

#[test]
fn the_store_is_object_safe() {
    let store: Arc<dyn Store> = Arc::new(roomy());
    assert!(format!("{store:?}").starts_with("MemoryStore"));
}

#[tokio::test]
async fn a_full_store_refuses_whole_batches_and_takes_removals() {
    let store = MemoryStore::new(2, 10);
    store
        .batch(Batch::new().put("a", "1").put("b", "2"))
        .await
        .unwrap()
        .await
        .unwrap();
    let refused = store
        .batch(Batch::new().delete("x").put("a", "9").put("c", "3"))
        .await
        .unwrap_err();
    assert!(matches!(
        refused,
        StoreError::Full {
            needed: 3,
            bound: 2,
            unit: "entries"
        }
    ));
    assert_eq!(
        store.get("a".into()).await.unwrap().unwrap(),
        "1",
        "nothing of a refused batch is there"
    );
    let refused = store
        .put("a".into(), "1234567890".into())
        .await
        .unwrap_err();
    assert!(matches!(
        refused,
        StoreError::Full {
            needed: 13,
            bound: 10,
            unit: "bytes"
        }
    ));
    assert_eq!(refused.kind(), "full");
    // One goes and one comes: a full store is not a stuck one.
    store
        .batch(Batch::new().put("c", "3").delete("a"))
        .await
        .unwrap()
        .await
        .unwrap();
    assert_eq!(
        store.stats().await.unwrap(),
        StoreStats {
            entries: 2,
            bytes: 4
        }
    );
}

#[tokio::test]
async fn keys_are_bounded() {
    let store = MemoryStore::new(10, 1 << 20);
    let longest = Bytes::from(vec![b'k'; MemoryStore::MAX_KEY_BYTES]);
    assert!(store.put(longest.clone(), Bytes::new()).await.is_ok());
    let over = Bytes::from(vec![b'k'; MemoryStore::MAX_KEY_BYTES + 1]);
    let refused = store.put(over, Bytes::new()).await.unwrap_err();
    assert!(matches!(
        refused,
        StoreError::TooLarge {
            what: "key",
            got_bytes: 1025,
            max_bytes: 1024
        }
    ));
}

#[cfg(feature = "test-util")]
#[tokio::test(start_paused = true)]
async fn held_commits_resolve_when_released_though_reads_see_the_write() {
    let store = roomy();
    store.hold_commits();
    let mut token = store.put("k".into(), "v".into()).await.unwrap();
    assert_eq!(store.get("k".into()).await.unwrap().unwrap(), "v");
    let early = tokio::time::timeout(std::time::Duration::from_secs(60), &mut token).await;
    assert!(early.is_err());
    assert_eq!(store.held_commits(), 1);
    store.release_commits();
    token.await.unwrap();
    store
        .put("k".into(), "v".into())
        .await
        .unwrap()
        .await
        .unwrap();
}

#[tokio::test]
async fn a_token_whose_store_ended_is_an_error_not_a_success() {
    let (promise, token) = CommitToken::pending();
    drop(promise);
    assert!(matches!(token.await, Err(StoreError::Closed)));
    let (promise, token) = CommitToken::pending();
    promise.resolve(Ok(()));
    assert!(token.await.is_ok());
}

/// The layout's hash keeps field borders apart, and is what it was. Vector of ours, checked with `sha256sum`.
#[test]
fn reconciled_5_key_hash_separates_fields() {
    assert_ne!(key_hash(&[b"ab", b"c"]), key_hash(&[b"a", b"bc"]));
    assert_ne!(key_hash(&[b"ab"]), key_hash(&[b"ab", b""]));
    let hex: String = key_hash(&[b"ab", b"c"])
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(hex, "f2939f903016e5bb29b1e4a61cdbd376");
}

#[test]
fn prefixes_end_where_the_next_prefix_begins() {
    let end = |prefix: &'static [u8]| KeyRange::prefix(prefix).end;
    assert_eq!(end(b"ab").unwrap(), &b"ac"[..]);
    assert_eq!(end(b"a\xff").unwrap(), &b"b"[..]);
    assert_eq!(end(b"\xff\xff"), None);
    assert_eq!(end(b""), None);
    assert_eq!(
        KeyRange::prefix("b").after(b"a").start,
        "b",
        "going on never leaves the range"
    );
}

#[derive(Debug, Clone)]
enum Op {
    Put(u8, u8),
    Delete(u8),
    Swap(u8, Option<u8>, Option<u8>),
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0u8..12;
    let value = 0u8..3;
    prop_oneof![
        (key.clone(), value.clone()).prop_map(|(key, value)| Op::Put(key, value)),
        key.clone().prop_map(Op::Delete),
        (
            key,
            prop::option::of(value.clone()),
            prop::option::of(value)
        )
            .prop_map(|(key, expected, new)| Op::Swap(key, expected, new)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any sequence of operations leaves what a plain map would hold, and counts its bytes right.
    #[test]
    fn the_memory_store_is_a_map_with_a_bound(ops in prop::collection::vec(op(), 0..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = MemoryStore::new(8, 1 << 20);
            let mut model = std::collections::BTreeMap::<u8, u8>::new();
            let one = |byte: u8| Bytes::copy_from_slice(&[byte]);
            for op in ops {
                match op {
                    Op::Put(key, value) => {
                        let fits = model.contains_key(&key) || model.len() < 8;
                        let written = store.put(one(key), one(value)).await;
                        prop_assert_eq!(written.is_ok(), fits);
                        if fits {
                            model.insert(key, value);
                        }
                    }
                    Op::Delete(key) => {
                        prop_assert!(store.delete(one(key)).await.is_ok());
                        model.remove(&key);
                    }
                    Op::Swap(key, expected, new) => {
                        let found = model.get(&key).copied();
                        let fits = new.is_none() || found.is_some() || model.len() < 8;
                        match store.compare_and_set(one(key), expected.map(one), new.map(one)).await {
                            Ok(Swap::Done(_)) => {
                                prop_assert!(found == expected && fits);
                                match new {
                                    Some(value) => model.insert(key, value),
                                    None => model.remove(&key),
                                };
                            }
                            Ok(Swap::Differs(seen)) => {
                                prop_assert!(found != expected);
                                prop_assert_eq!(seen, found.map(one));
                            }
                            Err(_) => prop_assert!(!fits && found == expected),
                        }
                    }
                }
            }
            let rows = store.scan(KeyRange::all(), usize::MAX).await.unwrap();
            let expected: Vec<_> = model.iter().map(|(key, value)| (one(*key), one(*value))).collect();
            prop_assert_eq!(rows, expected);
            let stats = store.stats().await.unwrap();
            prop_assert_eq!((stats.entries, stats.bytes), (model.len() as u64, model.len() as u64 * 2));
            Ok(())
        })?;
    }
}
