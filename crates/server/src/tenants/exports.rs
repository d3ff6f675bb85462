//! Tenants' data that this primary holds still as of one time, for a set that takes them over (SV-MIG).
//!
//! ```text
//!   _tenantSnapshot ─► what sessions have done until now ─► S ─► one reader at S ─► S is on a majority ─► told
//!                                                                    ├─► _tenantDocuments: as of S
//!                                                                    └─► _tenantSessions: up to S
//! ```
//! In memory: they end with the office, when another one of the same migration begins, when told, and when nobody has asked for long.

use super::Tenants;
use crate::lifecycle::Lifecycle;
use crate::sessions::moving::MovingHistory;
use pando_access::TenantExport;
use pando_base::panics::poisoned;
use pando_base::{Error, ErrorCode, Result, Uuid, limits};
use pando_env::Env;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// One tenant's data.
pub(crate) struct Export {
    pub(crate) data: TenantExport,
    history: Mutex<MovingHistory>,
}

impl Export {
    pub(crate) fn new(data: TenantExport, history: MovingHistory) -> Export {
        Export { data, history: Mutex::new(history) }
    }
    pub(crate) fn history(&self) -> MutexGuard<'_, MovingHistory> {
        self.history.lock().unwrap_or_else(poisoned)
    }
}

struct Held {
    export: Arc<Export>,
    /// When somebody has asked for it last.
    used: Duration,
}

/// All that are held, by the migrations that they are for.
#[derive(Default)]
pub(crate) struct Exports(Mutex<BTreeMap<Uuid, Held>>);

impl Exports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Uuid, Held>> {
        self.0.lock().unwrap_or_else(poisoned)
    }
    /// In place of the migration's earlier one.
    ///
    /// # Errors
    /// 117 where there are as many as may be.
    pub(crate) fn add(&self, migration: Uuid, export: Export, now: Duration) -> Result<Arc<Export>> {
        let mut all = self.lock();
        if all.len() >= limits::TENANT_EXPORTS_MAX && !all.contains_key(&migration) {
            let text = format!("{} tenants are held still here already", limits::TENANT_EXPORTS_MAX);
            return Err(Error::new(ErrorCode::ConflictingOperationInProgress, text));
        }
        let export = Arc::new(export);
        all.insert(migration, Held { export: export.clone(), used: now });
        Ok(export)
    }
    /// # Errors
    /// 94 where there is none: whoever copies begins anew.
    pub(crate) fn find(&self, migration: Uuid, now: Duration) -> Result<Arc<Export>> {
        let mut all = self.lock();
        let held = all.get_mut(&migration).ok_or_else(|| {
            let text = format!("no tenant is held still here for the migration {migration}");
            Error::new(ErrorCode::NotYetInitialized, text)
        })?;
        held.used = now;
        Ok(held.export.clone())
    }
    pub(crate) fn end(&self, migration: Uuid) {
        drop(self.lock().remove(&migration));
    }
    /// This node is primary no more.
    pub(crate) fn end_all(&self) {
        drop(std::mem::take(&mut *self.lock()));
    }
    fn expire(&self, now: Duration) {
        let idle = Duration::from_millis(limits::TENANT_EXPORT_IDLE_MS);
        self.lock().retain(|_, held| now.saturating_sub(held.used) < idle);
    }
}

/// Lets go what nobody has asked for during a long time.
pub(crate) async fn expire(tenants: Arc<Tenants>, env: Env, lifecycle: Arc<Lifecycle>) {
    while lifecycle.pause(Duration::from_millis(limits::TENANT_EXPORT_LOOK_MS)).await {
        tenants.exports.expire(env.clock.mono());
    }
    tenants.exports.end_all();
}
