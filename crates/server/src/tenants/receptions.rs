//! What this primary was told of tenants that come: how far it is to follow their donor, and what the donor has decided. It is told again by the donor
//! when this node is primary no more: nothing of it is kept.

use pando_base::panics::poisoned;
use pando_base::{HashMap, Timestamp, Uuid};
use pando_env::sync::Notify;
use std::sync::{Mutex, MutexGuard};
use std::task::Poll;

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Told {
    /// The donor's time up to which everything is to be here.
    pub(crate) target: Option<Timestamp>,
    pub(crate) committed: bool,
    pub(crate) forgotten: bool,
}

#[derive(Default)]
pub(crate) struct Receptions {
    told: Mutex<HashMap<Uuid, Told>>,
    changed: Notify,
}

impl Receptions {
    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Told>> {
        self.told.lock().unwrap_or_else(poisoned)
    }
    pub(crate) fn tell(&self, id: Uuid, say: impl FnOnce(&mut Told)) {
        say(self.lock().entry(id).or_default());
        self.changed.bump();
    }
    pub(crate) fn told(&self, id: &Uuid) -> Told {
        self.lock().get(id).copied().unwrap_or_default()
    }
    /// Carries on until something more is told; `None` then.
    pub(crate) async fn until_told<T>(&self, seen: u64, work: impl Future<Output = T> + Send) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let mut told = std::pin::pin!(self.changed.changed(seen));
        std::future::poll_fn(move |cx| match work.as_mut().poll(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => told.as_mut().poll(cx).map(|_| None),
        })
        .await
    }
    pub(crate) fn version(&self) -> u64 {
        self.changed.version()
    }
    /// Its document is gone.
    pub(crate) fn forget(&self, id: &Uuid) {
        self.lock().remove(id);
    }
    /// This node is primary no more.
    pub(crate) fn step_down(&self) {
        self.lock().clear();
        self.changed.bump();
    }
}
