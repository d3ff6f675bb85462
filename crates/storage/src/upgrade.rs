//! Stores of earlier versions, brought to where rows are now looked for.
//!
//! Rows are copied first, then the checkpoint file says so (an earlier version refuses it), then what they leave goes. A
//! crash before the second step repeats the first; what the third leaves, nobody reads, and compactions drop it.

use crate::ident::Ident;
use crate::kv::{Gc, Kv, Tree};
use crate::meta::Meta;
use crate::row;
use pando_base::Result;
use pando_env::Disk;
use std::ops::Bound;

/// Trees that an earlier version did not have.
pub(crate) fn is_newer(tree: Tree) -> bool {
    matches!(tree, Tree::Records(n) if n > 0)
}

pub(crate) fn upgrade(kv: &dyn Kv, meta: &mut Meta, disk: &dyn Disk) -> Result<()> {
    if !meta.one_tree {
        return Ok(());
    }
    move_server_rows(kv)?;
    spread_records(kv, meta)?;
    meta.one_tree = false;
    meta.save(disk)?;
    kv.compact_all(Tree::Records(0), &Gc { below: 0, dead: meta.dead.clone() })
}

/// The catalog and the server's small rows lay among the records once.
fn move_server_rows(kv: &dyn Kv) -> Result<()> {
    let end = Ident::FIRST_FREE.to_be_bytes();
    let old = kv.range(Tree::Records(0), Bound::Unbounded, Bound::Excluded(&end), false);
    let rows = old.collect::<Result<Vec<_>>>()?;
    kv.write_run(Tree::Indexes, &mut rows.iter().map(|(k, v)| Ok((k.clone(), Some(v.clone())))))?;
    kv.write_run(Tree::Records(0), &mut rows.into_iter().map(|(k, _)| Ok((k, None))))
}

/// All records lay in the first tree.
fn spread_records(kv: &dyn Kv, meta: &Meta) -> Result<()> {
    let idents = idents_of(kv, Tree::Records(0))?;
    for tree in Tree::records().filter(|t| is_newer(*t)) {
        let mut rows = kv.bulk(tree)?;
        for ident in idents.iter().filter(|i| Tree::of(**i) == tree && !meta.dead.contains(i)) {
            let low = ident.to_be_bytes();
            let high = row::ident_end(*ident);
            let upper = high.as_ref().map_or(Bound::Unbounded, |h| Bound::Excluded(&h[..]));
            for row in kv.range(Tree::Records(0), Bound::Included(&low), upper, false) {
                let (key, value) = row?;
                rows.push(key, value)?;
            }
        }
        rows.finish()?;
    }
    Ok(())
}

fn idents_of(kv: &dyn Kv, tree: Tree) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut from = Some(Ident::FIRST_FREE);
    while let Some(low) = from.map(u32::to_be_bytes) {
        let first = kv.range(tree, Bound::Included(&low), Bound::Unbounded, false).next();
        let Some((key, _)) = first.transpose()? else { break };
        let ident = row::ident_of(&key);
        found.push(ident);
        from = ident.checked_add(1);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::mem::MemKv;
    use crate::testing::FaultyDisk;
    use lsm_tree::Slice;
    use std::sync::Arc;

    fn keys(kv: &MemKv, tree: Tree) -> Vec<Slice> {
        kv.range(tree, Bound::Unbounded, Bound::Unbounded, false).map(|r| r.unwrap().0).collect()
    }

    #[test]
    fn rows_of_an_older_store_move_to_where_they_are_looked_for() {
        let disk = Arc::new(FaultyDisk::new(1));
        let kv = MemKv::open(disk.clone(), None).unwrap();
        let idents = [Ident::CATALOG.0, Ident::META.0, 40, 42, 44, 46, 48];
        let old = idents.map(|i| row::key(i, b"r"));
        let dead = row::key(50, b"r");
        let rows =
            old.iter().chain([&dead]).map(|k| Ok((k.clone(), Some(row::value(7, Some(&b"1"[..].into()))))));
        kv.write_run(Tree::Records(0), &mut rows.into_iter()).unwrap();
        let mut meta = Meta { one_tree: true, dead: [50].into(), ..Meta::default() };
        upgrade(&kv, &mut meta, &*disk).unwrap();
        for (ident, key) in idents.into_iter().zip(&old) {
            assert!(kv.get(Tree::of(ident), key).unwrap().is_some(), "{ident}");
        }
        let found: usize = Tree::ALL.into_iter().map(|t| keys(&kv, t).len()).sum();
        assert_eq!(found, old.len(), "each row lies in one place, the dead one nowhere");
        assert!(keys(&kv, Tree::Records(0)).len() < 3);
        let saved = Meta::load(&*disk).unwrap().unwrap();
        assert!(!saved.one_tree && !meta.one_tree);
    }

    #[test]
    fn records_lie_in_several_trees_whatever_the_step_between_collections() {
        for step in 1..30 {
            let trees: std::collections::BTreeSet<_> =
                (0..32).map(|n| Tree::of(Ident::FIRST_FREE + 2 * step * n).number()).collect();
            assert!(trees.len() >= 4, "{step}: {trees:?}");
        }
    }
}
