//! Whoever builds indexes on tenants' collections and drops them: a split gives builds up, and none begins while it lasts. What
//! becomes of one index does not matter here, only that all members agree on it.

use super::caller::Caller;
use pando_bson::doc;

pub(in super::super) async fn run(mut c: Caller) {
    while !c.stopped() {
        let tenant = c.some_tenant();
        let body = match c.below(3) {
            0 => doc! { "dropIndexes": "c", "index": "*" },
            1 => doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            _ => doc! { "createIndexes": "lists", "indexes": [{ "key": { "l": 1 }, "name": "l" }] },
        };
        c.ask(tenant, &body).await;
        c.pause().await;
    }
}
