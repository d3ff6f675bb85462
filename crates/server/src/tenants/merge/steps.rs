//! What follows the copy of the files, on each member and on the primary.

use super::Taken;
use pando_access::{ImportOrder, Imported, Maintenance};
use pando_base::{Error, ErrorCode, Namespace, OpTime, Result, TenantId, Timestamp, Uuid};
use pando_env::Env;

fn is_of_tenant(ns: &Namespace) -> bool {
    TenantId::of(ns.db()).is_some()
}

/// On each member: tables of this node are made of the tenants' tables in the files that were fetched, and named, durably; from then on
/// the primary may be told so. The files go, also where they are refused. May be asked again.
pub(crate) async fn take_in(
    env: &Env,
    maintenance: &Maintenance,
    order: ImportOrder,
    taken: &Taken,
    go_on: impl FnMut() -> Result<()> + Send + 'static,
) -> Result<Imported> {
    let (maintenance, disk, taken, mut go_on) = (maintenance.clone(), env.disk.clone(), taken.clone(), go_on);
    let work = move || {
        let _taken = taken;
        let done = maintenance.take_in(&order, &is_of_tenant, &mut go_on);
        if done.is_err() {
            pando_storage::discard_foreign(&*disk)?;
        }
        done
    };
    env.offload(work).await.unwrap_or_else(|| Err(Error::internal("taking in another set's tables panicked")))
}

/// On the primary, once every member that bears data has told that it has the tables: the collections come into being, each by one entry of
/// the log. Those that an earlier primary has published are passed over. Returns how many there are, and where the last entry is (null: none was
/// written). What is not `wanted` is dropped when the import is forgotten. They are to be on a majority before anything follows from it.
pub(crate) async fn publish(
    maintenance: &Maintenance,
    import: Uuid,
    wanted: impl Fn(&Namespace) -> bool,
) -> Result<(usize, OpTime)> {
    let Some(imported) = maintenance.imported(import)? else {
        let text = format!("nothing was taken in under {import}");
        return Err(Error::new(ErrorCode::NoSuchTenantMigration, text));
    };
    let mut last = OpTime::NULL;
    for collection in imported.collections.iter().filter(|c| wanted(&c.ns)) {
        let made = maintenance.import_collection(import, collection.uuid).await?;
        last = made.unwrap_or(last);
    }
    Ok((imported.collections.len(), last))
}

/// On each member, once the merge is decided, in whatever way: `upto` is behind every entry that [`publish`] has written. False as long as
/// this member's tables do not stand there; a checkpoint brings them there once a majority has it.
pub(crate) fn forget(maintenance: &Maintenance, import: Uuid, upto: Timestamp) -> Result<bool> {
    maintenance.forget_import(import, upto)
}
