//! What is found is looked at again, and only what is found each time is told.
//!
//! Definitions and moves change one place after the other, so one look may see some places before and some after. A moment later that is
//! over, unless a definition of the collection or its database is still under way: then it is waited for. It is asked for before the
//! look, since one that ends between the two has left to the look what it ends with.

use super::look::Looker;
use super::scope::Scope;
use super::wrong::{namespace, text};
use pando_base::{Error, ErrorCode, Result, limits};
use pando_bson::{DocBuf, DocBuilder, RawDoc};
use std::collections::BTreeSet;
use std::time::Duration;

/// # Errors
/// 46 where a definition takes too long.
pub(super) async fn confirmed(looker: &Looker<'_>, found: Vec<DocBuf>) -> Result<Vec<DocBuf>> {
    let mut found = found;
    for _ in 0..limits::CONSISTENCY_LOOKS_MAX {
        if found.is_empty() {
            return Ok(found);
        }
        looker.ctx.sleep(Duration::from_millis(limits::CONSISTENCY_LOOK_PAUSE_MS)).await?;
        let under_way = under_way(looker).await?;
        let again = looker.look(&Scope::of(&found)).await?;
        keep_common(&mut found, &again);
        if !found.iter().any(|f| under_way.concerns(namespace(f))) {
            return Ok(found);
        }
    }
    let text =
        "a definition of what does not fit together has been under way for too long to tell whether it will";
    Err(Error::new(ErrorCode::LockBusy, text))
}

fn keep_common(found: &mut Vec<DocBuf>, again: &[DocBuf]) {
    let again: BTreeSet<&[u8]> = again.iter().map(|f| f.as_bytes()).collect();
    found.retain(|f| again.contains(f.as_bytes()));
}

/// The definitions that shards coordinate at the moment.
async fn under_way(looker: &Looker<'_>) -> Result<UnderWay> {
    let mut b = DocBuilder::new();
    b.str("find", "system.sharding_ddl_coordinators").str("$db", "config");
    let mut all = UnderWay::default();
    for (_, coordinators) in looker.of_each_shard(&b.finish()).await? {
        coordinators.iter().for_each(|doc| all.add(doc));
    }
    Ok(all)
}

/// Names of collections, and of databases as a whole.
#[derive(Default)]
struct UnderWay(BTreeSet<String>);

impl UnderWay {
    /// A coordinator's state document. A collection that gets another name has both.
    fn add(&mut self, coordinator: &RawDoc) {
        let within = |name: &str| coordinator.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        let names =
            [text(within("_id"), "namespace"), text(within("request"), "to"), text(coordinator, "to")];
        self.0.extend(names.into_iter().filter(|name| !name.is_empty()).map(str::to_owned));
    }
    fn concerns(&self, ns: &str) -> bool {
        let db = ns.split_once('.').map_or(ns, |(db, _)| db);
        self.0.contains(ns) || self.0.contains(db)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::doc;
    use super::super::wrong::wrong;
    use super::*;

    #[test]
    fn only_what_is_found_each_time_is_kept() {
        let [a, b, c] = ["x.a", "x.b", "x.c"].map(|ns| wrong("T", "t", ns, |_| {}));
        let other_b = wrong("T", "t", "x.b", |d| _ = d.i32("n", 2));
        let mut found = vec![a.clone(), b, c.clone()];
        keep_common(&mut found, &[c.clone(), other_b, a.clone()]);
        assert_eq!(found, [a, c]);
    }

    #[test]
    fn a_definition_concerns_its_collections_or_all_of_its_database() {
        let mut all = UnderWay::default();
        all.add(&doc(r#"{"_id": {"namespace": "moved", "operationType": "movePrimary"}}"#));
        all.add(&doc(r#"{"_id": {"namespace": "x.from"}, "request": {"to": "x.into"}}"#));
        all.add(&doc(r#"{"_id": {"namespace": "y.from"}, "to": "y.into"}"#));
        for concerned in ["moved.a", "moved.b.c", "x.from", "x.into", "y.from", "y.into"] {
            assert!(all.concerns(concerned), "{concerned}");
        }
        for not in ["x.other", "y.into.more", "move.a", "z.from"] {
            assert!(!all.concerns(not), "{not}");
        }
    }
}
