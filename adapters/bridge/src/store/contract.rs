//! The test suite that every engine of [`Store`] passes.
//!
//! Each check takes a fresh, empty store. They panic with what is wrong, as tests do.

use bytes::Bytes;

use super::{Batch, KeyRange, Store, StoreError, Swap};

/// Runs every check, each on a store of its own from `fresh`.
///
/// # Panics
/// When the engine breaks the contract; the message says where.
pub async fn check<S: Store>(mut fresh: impl FnMut() -> S) {
    reads_its_writes(&fresh()).await;
    deletes(&fresh()).await;
    compares_and_sets(&fresh()).await;
    scans_in_byte_order(&fresh()).await;
    scans_on_from_a_key(&fresh()).await;
    a_batch_is_ordered_and_whole(&fresh()).await;
    commits_cover_what_was_written(&fresh()).await;
    takes_any_bytes(&fresh()).await;
    counts_what_it_holds(&fresh()).await;
    one_of_many_swaps_wins(&fresh()).await;
}

async fn reads_its_writes(store: &dyn Store) {
    assert_eq!(get(store, "k").await, None, "a fresh store is empty");
    put(store, "k", "1").await;
    assert_eq!(
        get(store, "k").await.as_deref(),
        Some(&b"1"[..]),
        "a written value is read"
    );
    put(store, "k", "2").await;
    assert_eq!(
        get(store, "k").await.as_deref(),
        Some(&b"2"[..]),
        "a second write replaces the first"
    );
}

async fn deletes(store: &dyn Store) {
    put(store, "k", "1").await;
    for _ in 0..2 {
        sync(store.delete(bytes("k")).await).await;
        assert_eq!(
            get(store, "k").await,
            None,
            "a removed key is gone, and removing it again is no error"
        );
    }
}

async fn compares_and_sets(store: &dyn Store) {
    let swap = |expected: Option<&'static str>, new: Option<&'static str>| {
        store.compare_and_set(bytes("k"), expected.map(bytes), new.map(bytes))
    };
    done(swap(None, Some("1")).await, "absent was expected and found").await;
    assert_eq!(
        differs(swap(None, Some("2")).await).as_deref(),
        Some(&b"1"[..])
    );
    assert_eq!(
        differs(swap(Some("2"), Some("3")).await).as_deref(),
        Some(&b"1"[..])
    );
    assert_eq!(
        get(store, "k").await.as_deref(),
        Some(&b"1"[..]),
        "a failed swap writes nothing"
    );
    done(
        swap(Some("1"), Some("2")).await,
        "the value was expected and found",
    )
    .await;
    assert_eq!(get(store, "k").await.as_deref(), Some(&b"2"[..]));
    done(swap(Some("2"), None).await, "a swap removes").await;
    assert_eq!(get(store, "k").await, None);
    assert_eq!(
        differs(swap(Some("2"), None).await),
        None,
        "absent is told as absent"
    );
    done(swap(None, Some("")).await, "an empty value is a value").await;
    assert_eq!(
        differs(swap(None, Some("x")).await).as_deref(),
        Some(&b""[..])
    );
}

async fn scans_in_byte_order(store: &dyn Store) {
    for key in ["b", "a", "ab", "c", "b\u{0}", "b\u{7f}"] {
        put(store, key, key).await;
    }
    let keys = |range, limit| keys(store, range, limit);
    assert_eq!(
        keys(KeyRange::all(), 100).await,
        ["a", "ab", "b", "b\0", "b\x7f", "c"]
    );
    assert_eq!(
        keys(KeyRange::prefix("b"), 100).await,
        ["b", "b\0", "b\x7f"]
    );
    assert_eq!(keys(KeyRange::prefix("x"), 100).await, [""; 0]);
    let range = KeyRange {
        start: bytes("ab"),
        end: Some(bytes("c")),
    };
    assert_eq!(
        keys(range, 100).await,
        ["ab", "b", "b\0", "b\x7f"],
        "the start is in, the end is not"
    );
    let backward = KeyRange {
        start: bytes("c"),
        end: Some(bytes("a")),
    };
    assert_eq!(
        keys(backward, 100).await,
        [""; 0],
        "a range that ends before it starts is empty"
    );
    assert_eq!(keys(KeyRange::all(), 0).await, [""; 0]);
}

async fn scans_on_from_a_key(store: &dyn Store) {
    let mut batch = Batch::new();
    for number in 0u16..500 {
        batch = batch.put(number.to_be_bytes().to_vec(), number.to_be_bytes().to_vec());
    }
    sync(store.batch(batch).await).await;
    let (mut range, mut seen) = (KeyRange::prefix(vec![0]), Vec::new());
    loop {
        let rows = store.scan(range.clone(), 7).await.expect("the store scans");
        assert!(rows.len() <= 7, "a scan keeps its limit");
        let Some((last, _)) = rows.last() else { break };
        range = range.after(last);
        seen.extend(rows.iter().map(|(key, _)| key.clone()));
    }
    let expected: Vec<Bytes> = (0u16..256)
        .map(|number| number.to_be_bytes().to_vec().into())
        .collect();
    assert_eq!(seen, expected, "pages of a scan neither skip nor repeat");
}

async fn a_batch_is_ordered_and_whole(store: &dyn Store) {
    put(store, "gone", "x").await;
    let batch = Batch::new()
        .put("a", "1")
        .delete("gone")
        .put("b", "2")
        .put("a", "3")
        .delete("b");
    sync(store.batch(batch).await).await;
    assert_eq!(
        get(store, "a").await.as_deref(),
        Some(&b"3"[..]),
        "the later write of a batch wins"
    );
    assert_eq!(get(store, "b").await, None);
    assert_eq!(get(store, "gone").await, None);
    sync(store.batch(Batch::new()).await).await;
}

async fn commits_cover_what_was_written(store: &dyn Store) {
    let unawaited = store
        .put(bytes("k"), bytes("1"))
        .await
        .expect("the store writes");
    drop(unawaited);
    sync(store.commit().await).await;
    assert_eq!(
        get(store, "k").await.as_deref(),
        Some(&b"1"[..]),
        "a dropped token takes nothing back"
    );
}

async fn takes_any_bytes(store: &dyn Store) {
    let every: Vec<u8> = (0..=255).collect();
    sync(store.put(every.clone().into(), every.clone().into()).await).await;
    let found = store
        .get(every.clone().into())
        .await
        .expect("the store reads");
    assert_eq!(
        found.as_deref(),
        Some(&*every),
        "keys and values are bytes, not text"
    );
    sync(
        store
            .put(Bytes::from_static(&[0xff, 0xff]), bytes("x"))
            .await,
    )
    .await;
    let high = KeyRange::prefix(vec![0xff]);
    assert_eq!(
        store.scan(high, 9).await.expect("the store scans").len(),
        1,
        "the last prefix has no end"
    );
}

async fn counts_what_it_holds(store: &dyn Store) {
    put(store, "a", "12").await;
    put(store, "b", "345").await;
    put(store, "a", "1").await;
    let stats = store.stats().await.expect("the store counts");
    assert_eq!(stats.entries, 2);
    assert!(stats.bytes >= 6, "keys and values count");
    sync(store.batch(Batch::new().delete("a").delete("b")).await).await;
    assert_eq!(store.stats().await.expect("the store counts").entries, 0);
}

async fn one_of_many_swaps_wins(store: &dyn Store) {
    // All futures are made before one is awaited: an engine may start its work in either place.
    let swaps: Vec<_> = (0u8..16)
        .map(|who| {
            store.compare_and_set(bytes("owner"), None, Some(Bytes::copy_from_slice(&[who])))
        })
        .collect();
    let mut won = Vec::new();
    for (who, swap) in (0u8..).zip(swaps) {
        if let Swap::Done(token) = swap.await.expect("the store swaps") {
            token.await.expect("the store syncs");
            won.push(who);
        }
    }
    assert_eq!(won.len(), 1, "of many who expect the same, one wins");
    let owner = get(store, "owner").await;
    assert_eq!(owner.as_deref(), Some(&won[..]), "the winner's value stays");
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

async fn get(store: &dyn Store, key: &'static str) -> Option<Bytes> {
    store.get(bytes(key)).await.expect("the store reads")
}

async fn put(store: &dyn Store, key: &'static str, value: &'static str) {
    sync(store.put(bytes(key), bytes(value)).await).await;
}

async fn sync(written: Result<super::CommitToken, StoreError>) {
    written
        .expect("the store writes")
        .await
        .expect("the store syncs");
}

async fn done(swap: Result<Swap, StoreError>, why: &str) {
    match swap.expect("the store swaps") {
        Swap::Done(token) => token.await.expect("the store syncs"),
        Swap::Differs(found) => panic!("{why}, but the swap says {found:?}"),
    }
}

fn differs(swap: Result<Swap, StoreError>) -> Option<Bytes> {
    match swap.expect("the store swaps") {
        Swap::Differs(found) => found,
        Swap::Done(_) => panic!("another value was there, but the swap was done"),
    }
}

async fn keys(store: &dyn Store, range: KeyRange, limit: usize) -> Vec<String> {
    let rows = store.scan(range, limit).await.expect("the store scans");
    rows.into_iter()
        .map(|(key, _)| String::from_utf8_lossy(&key).into_owned())
        .collect()
}
