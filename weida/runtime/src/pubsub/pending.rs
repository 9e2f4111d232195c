//! Copies a publish took on and the transport does not have yet: what a drain
//! waits for before it waits for receipts. `[weida DR-2]`

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::sync::Notify;

/// How many finished copies of one runtime wait to be written.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    copies: AtomicUsize,
    /// A drain waits, so the last copy out says so.
    awaited: AtomicBool,
    none_left: Notify,
}

impl Pending {
    pub(super) fn add(&self) {
        self.copies.fetch_add(1, Ordering::AcqRel);
    }

    /// `copies` were written, lost or given up.
    pub(super) fn settle(&self, copies: usize) {
        let before = self.copies.fetch_sub(copies, Ordering::AcqRel);
        if before == copies && self.awaited.load(Ordering::Acquire) {
            self.none_left.notify_waiters();
        }
    }

    /// Copies not written now.
    pub(crate) fn count(&self) -> usize {
        self.copies.load(Ordering::Acquire)
    }

    /// Waits until there is none.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub(crate) async fn written(&self) {
        self.awaited.store(true, Ordering::Release);
        loop {
            let mut none_left = std::pin::pin!(self.none_left.notified());
            // Registered before looking, or the last copy could slip between.
            none_left.as_mut().enable();
            if self.count() == 0 {
                return;
            }
            none_left.await;
        }
    }
}
