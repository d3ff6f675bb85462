//! `lockInfo`: locks of databases and collections that somebody holds or waits for. Readers take none.

use super::prelude::*;
use pando_access::Holders;

pub(super) async fn run(server: &Server, _: &OpCtx, _: Request<'_>) -> Result<Reply> {
    let mut r = Reply::new();
    r.body.array("lockInfo", |a| {
        for (name, holders) in server.upkeep.maintenance.locks_in_use() {
            a.doc(|d| append(d, &name, holders));
        }
    });
    Ok(r)
}

/// Definitions of a database change one at a time (`X`); writers of a collection share its lock (`IX`).
fn append(d: &mut DocBuilder, name: &str, h: Holders) {
    let kind = if name.contains('.') { "Collection" } else { "Database" };
    d.str("resourceId", &format!("{{{kind}, {name}}}"));
    let modes = |d: &mut DocBuilder, field: &str, shared: usize, exclusive: usize| {
        d.array(field, |a| {
            let all = std::iter::repeat_n("IX", shared).chain(std::iter::repeat_n("X", exclusive));
            all.for_each(|mode| {
                a.doc(|d| {
                    d.str("mode", mode);
                });
            });
        });
    };
    modes(d, "granted", h.shared as usize, usize::from(h.exclusive));
    modes(d, "pending", h.waiting_shared, h.waiting_exclusive);
}
