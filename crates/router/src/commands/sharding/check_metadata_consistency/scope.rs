//! What is looked at: the cluster, databases, or collections of them; and how the config servers' documents of that are asked for.

use super::wrong::namespace;
use pando_base::Namespace;
use pando_bson::{DocBuf, DocBuilder};
use std::collections::{BTreeMap, BTreeSet};

/// Collections of a database by their names; nothing stands for all.
pub(super) type Names = Option<BTreeSet<String>>;

pub(super) enum Scope {
    Cluster,
    Databases(BTreeMap<String, Names>),
}

impl Scope {
    pub(super) fn database(db: &str) -> Scope {
        Scope::Databases(BTreeMap::from([(db.to_owned(), None)]))
    }
    pub(super) fn collection(ns: &Namespace) -> Scope {
        let names = BTreeSet::from([ns.coll().to_owned()]);
        Scope::Databases(BTreeMap::from([(ns.db().to_owned(), Some(names))]))
    }
    /// The collections that something was found of.
    pub(super) fn of(found: &[DocBuf]) -> Scope {
        let mut all: BTreeMap<String, Names> = BTreeMap::new();
        for (db, coll) in found.iter().filter_map(|f| namespace(f).split_once('.')) {
            all.entry(db.to_owned()).or_default().get_or_insert_default().insert(coll.to_owned());
        }
        Scope::Databases(all)
    }
    pub(super) fn names(&self, db: &str) -> Names {
        match self {
            Scope::Cluster => None,
            Scope::Databases(all) => all.get(db).cloned().flatten(),
        }
    }
    /// The filter for `config.databases`.
    pub(super) fn databases(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        if let Scope::Databases(all) = self {
            b.doc("_id", |d| {
                d.array("$in", |a| all.keys().for_each(|db| _ = a.str(db)));
            });
        }
        b.finish()
    }
    /// The filter for `config.collections`: by what their names are, or begin with.
    pub(super) fn collections(&self) -> DocBuf {
        let mut b = DocBuilder::new();
        let Scope::Databases(all) = self else { return b.finish() };
        b.array("$or", |a| {
            for (db, names) in all {
                a.doc(|d| {
                    d.doc("_id", |d| match names {
                        Some(names) => {
                            let all = names.iter().map(|name| format!("{db}.{name}"));
                            d.array("$in", |a| all.for_each(|ns| _ = a.str(&ns)));
                        }
                        // No character is between the two.
                        None => _ = d.str("$gte", &format!("{db}.")).str("$lt", &format!("{db}/")),
                    });
                });
            }
        });
        b.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::wrong::wrong;
    use super::*;

    #[test]
    fn a_scope_asks_for_its_own_and_nothing_else() {
        assert_eq!(Scope::Cluster.databases().to_string(), "{}");
        assert_eq!(Scope::Cluster.collections().to_string(), "{}");
        let db = Scope::database("db");
        assert_eq!(db.databases().to_string(), r#"{ _id: { $in: [ "db" ] } }"#);
        assert_eq!(db.collections().to_string(), r#"{ $or: [ { _id: { $gte: "db.", $lt: "db/" } } ] }"#);
        assert_eq!(db.names("db"), None);
        let coll = Scope::collection(&Namespace::unchecked("db", "a.b"));
        assert_eq!(coll.collections().to_string(), r#"{ $or: [ { _id: { $in: [ "db.a.b" ] } } ] }"#);
        assert_eq!(coll.names("db"), Some(BTreeSet::from(["a.b".to_owned()])));
    }

    #[test]
    fn what_is_found_is_looked_at_again_by_the_names_of_its_collections() {
        let found = ["x.a", "y.b.c", "x.d", "x.a"].map(|ns| wrong("T", "t", ns, |_| {}));
        let scope = Scope::of(&found);
        assert_eq!(scope.databases().to_string(), r#"{ _id: { $in: [ "x", "y" ] } }"#);
        assert_eq!(
            scope.collections().to_string(),
            r#"{ $or: [ { _id: { $in: [ "x.a", "x.d" ] } }, { _id: { $in: [ "y.b.c" ] } } ] }"#
        );
    }
}
