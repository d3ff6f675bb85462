//! While a tenant is copied from another set its copier defines collections here, as nobody else may. Documents say themselves that they
//! were copied; definitions are known by who makes them.

use pando_base::TenantId;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many definitions of which tenants are under way.
#[derive(Default)]
pub(crate) struct Defining(Mutex<BTreeMap<String, usize>>);

/// Until it is dropped the tenant's copier defines something.
#[must_use]
pub struct CopierDefines<'a> {
    all: &'a Defining,
    tenant: String,
}

impl Defining {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn begin(&self, tenant: &str) -> CopierDefines<'_> {
        *self.lock().entry(tenant.to_owned()).or_default() += 1;
        CopierDefines { all: self, tenant: tenant.to_owned() }
    }
    pub(crate) fn is_of(&self, db: &str) -> bool {
        TenantId::of(db).is_some_and(|tenant| self.lock().contains_key(tenant))
    }
}

impl Drop for CopierDefines<'_> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some(n) = all.get_mut(&self.tenant) {
            *n -= 1;
            if *n == 0 {
                all.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copier_defines_until_the_last_of_its_guards_is_gone() {
        let all = Defining::default();
        let (a, b) = (all.begin("acme"), all.begin("acme"));
        assert!(all.is_of("acme_db") && !all.is_of("acm_db") && !all.is_of("acme"));
        drop(a);
        assert!(all.is_of("acme_db"));
        drop(b);
        assert!(!all.is_of("acme_db"));
    }
}
