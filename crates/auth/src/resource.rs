//! What something is allowed on: a pattern in a role, and the one thing that a command touches.
//!
//! Which pattern fits what was asked of a real server: an empty name stands for every normal one. Collections are normal unless they begin with
//! `system.` (or, in `local`, with `replset.`); and `local` and `config` are no normal databases, so a pattern without a database
//! reaches into them only by a collection's name. A time series' buckets have patterns of their own.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Bson, Document, doc};

const BUCKETS: &str = "system.buckets.";

/// A pattern of a role.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Resource {
    /// `{anyResource: true}`
    Any,
    /// `{cluster: true}`
    Cluster,
    /// `{db, collection}`; either may be empty.
    Collection { db: String, collection: String },
    /// `{db, system_buckets}`, or without a database; either may be empty.
    Buckets { db: String, collection: String },
}

/// What a command touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target<'a> {
    Cluster,
    Database(&'a str),
    Collection(&'a str, &'a str),
}

impl Target<'_> {
    /// Whether what is allowed on all that is no system's is allowed here.
    pub(crate) fn is_normal(self) -> bool {
        match self {
            Target::Cluster => false,
            Target::Database(db) => is_normal_database(db),
            Target::Collection(db, name) => is_normal_database(db) && is_normal_collection(db, name),
        }
    }
}

impl Resource {
    /// `{db: "", collection: ""}`
    pub fn any_normal() -> Resource {
        Resource::collection("", "")
    }
    pub fn collection(db: impl Into<String>, collection: impl Into<String>) -> Resource {
        Resource::Collection { db: db.into(), collection: collection.into() }
    }

    /// Whether what is allowed on this is allowed there.
    pub fn covers(&self, target: Target<'_>) -> bool {
        match (self, target) {
            (Resource::Any, _) | (Resource::Cluster, Target::Cluster) => true,
            (Resource::Collection { db, collection }, Target::Database(name)) => {
                collection.is_empty() && (db == name || db.is_empty() && is_normal_database(name))
            }
            (Resource::Collection { db, collection }, Target::Collection(in_db, name)) => {
                match (db.is_empty(), collection.is_empty()) {
                    (true, true) => is_normal_database(in_db) && is_normal_collection(in_db, name),
                    (false, true) => db == in_db && is_normal_collection(in_db, name),
                    (true, false) => collection == name,
                    (false, false) => db == in_db && collection == name,
                }
            }
            (Resource::Buckets { db, collection }, Target::Collection(in_db, name)) => {
                let series = name.strip_prefix(BUCKETS);
                (db.is_empty() || db == in_db)
                    && series.is_some_and(|s| collection.is_empty() || collection == s)
            }
            _ => false,
        }
    }

    /// As a role writes it.
    pub fn document(&self) -> Document {
        match self {
            Resource::Any => doc! { "anyResource": true },
            Resource::Cluster => doc! { "cluster": true },
            Resource::Collection { db, collection } => {
                doc! { "db": db.as_str(), "collection": collection.as_str() }
            }
            Resource::Buckets { db, collection } if db.is_empty() => {
                doc! { "system_buckets": collection.as_str() }
            }
            Resource::Buckets { db, collection } => {
                doc! { "db": db.as_str(), "system_buckets": collection.as_str() }
            }
        }
    }

    /// Reads a role's `resource`. `Err` holds what is wrong with it, as servers say it: fields of a wrong type first.
    pub fn parse(d: &Document) -> Result<Resource> {
        let (cluster, any) = (flag(d, "cluster")?, flag(d, "anyResource")?);
        let (db, collection) = (text(d, "db")?, text(d, "collection")?);
        let buckets = text(d, "system_buckets")?;
        if buckets.is_some() && collection.is_some() {
            return Err(wrong("system_buckets and collection cannot both be set"));
        }
        if buckets.is_none() && db.is_some() != collection.is_some() {
            return Err(wrong("resource must set both db and collection or neither, but not exactly one."));
        }
        let named = db.is_some() || buckets.is_some();
        if usize::from(named) + usize::from(cluster.is_some()) + usize::from(any.is_some()) != 1 {
            return Err(wrong(
                "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set",
            ));
        }
        match (cluster, any) {
            (Some(false), _) => return Err(wrong("cluster must be true when specified")),
            (_, Some(false)) => return Err(wrong("anyResource must be true when specified")),
            (Some(true), _) => return Ok(Resource::Cluster),
            (_, Some(true)) => return Ok(Resource::Any),
            _ => {}
        }
        let (db, is_series) = (db.unwrap_or_default(), buckets.is_some());
        let collection = buckets.or(collection).unwrap_or_default();
        if !db.is_empty() && (db.contains(['.', '\0', '/', '\\', ' ', '"']) || db.len() > 63) {
            return Err(wrong(format!("{db} is not a valid database name")));
        }
        if !collection.is_empty() && (collection.starts_with('.') || collection.contains(['$', '\0'])) {
            return Err(wrong(format!("{collection} is not a valid collection name")));
        }
        Ok(match is_series {
            true => Resource::Buckets { db, collection },
            false => Resource::Collection { db, collection },
        })
    }

    /// Whether a role of this database may allow something on it: a role of `admin` on everything, another only within its database.
    pub fn is_within(&self, db: &str) -> bool {
        match self {
            Resource::Collection { db: in_db, .. } | Resource::Buckets { db: in_db, .. } => {
                db == "admin" || db == in_db
            }
            Resource::Any | Resource::Cluster => db == "admin",
        }
    }
}

fn is_normal_database(db: &str) -> bool {
    db != "local" && db != "config"
}

fn is_normal_collection(db: &str, name: &str) -> bool {
    !(name.starts_with("system.") || db == "local" && name.starts_with("replset."))
}

fn flag(d: &Document, name: &str) -> Result<Option<bool>> {
    match d.get(name) {
        None => Ok(None),
        Some(Bson::Boolean(b)) => Ok(Some(*b)),
        Some(_) => Err(type_of(d, name, "boolean")),
    }
}

fn text(d: &Document, name: &str) -> Result<Option<String>> {
    match d.get(name) {
        None => Ok(None),
        Some(Bson::String(s)) => Ok(Some(s.clone())),
        Some(_) => Err(type_of(d, name, "string")),
    }
}

/// A field of a wrong type has another code than the rest: the whole privilege cannot be read.
fn type_of(d: &Document, name: &str, wanted: &str) -> Error {
    let shown = shown(name, d.get(name).unwrap_or(&Bson::Null));
    Error::bad_value(format!("wrong type for '{name}' field, expected {wanted}, found {shown}"))
}

/// `name: value`, as messages print it.
pub(crate) fn shown(name: &str, v: &Bson) -> String {
    let text = Document::from(vec![(name.to_owned(), v.clone())]).to_raw().to_string();
    text.trim_start_matches("{ ").trim_end_matches(" }").to_owned()
}

fn wrong(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::FailedToParse, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a user with `find` on each pattern may read, asked of a real server.
    #[test]
    fn patterns_fit_as_on_a_real_server() {
        let asked = [
            ("test", "a"),
            ("admin", "a"),
            ("local", "a"),
            ("config", "a"),
            ("local", "replset.minvalid"),
            ("local", "oplog.rs"),
            ("config", "system.sessions"),
            ("test", "system.views"),
            ("test", "system.buckets.a"),
            ("test", "systemx"),
        ];
        let answers = |r: Resource| -> String {
            asked.iter().map(|(db, c)| if r.covers(Target::Collection(db, c)) { 'y' } else { '-' }).collect()
        };
        let buckets = |db: &str, c: &str| Resource::Buckets { db: db.into(), collection: c.into() };
        assert_eq!(answers(Resource::any_normal()), "yy-------y");
        assert_eq!(answers(Resource::collection("test", "")), "y--------y");
        assert_eq!(answers(Resource::collection("", "a")), "yyyy------");
        assert_eq!(answers(Resource::collection("test", "a")), "y---------");
        assert_eq!(answers(Resource::collection("local", "")), "--y--y----");
        assert_eq!(answers(Resource::collection("config", "")), "---y------");
        assert_eq!(answers(Resource::collection("", "system.views")), "-------y--");
        assert_eq!(answers(Resource::collection("test", "system.buckets.a")), "--------y-");
        for r in [buckets("", ""), buckets("", "a"), buckets("test", "a"), buckets("test", "")] {
            assert_eq!(answers(r), "--------y-");
        }
        assert_eq!(answers(buckets("other", "")), "----------");
        assert_eq!(answers(Resource::Any), "yyyyyyyyyy");
        assert_eq!(answers(Resource::Cluster), "----------");
    }

    #[test]
    fn databases_are_covered_as_on_a_real_server() {
        let answers = |r: Resource| -> String {
            let dbs = ["test", "admin", "local", "config"];
            dbs.iter().map(|db| if r.covers(Target::Database(db)) { 'y' } else { '-' }).collect()
        };
        assert_eq!(answers(Resource::any_normal()), "yy--");
        assert_eq!(answers(Resource::collection("test", "")), "y---");
        assert_eq!(answers(Resource::collection("local", "")), "--y-");
        assert_eq!(answers(Resource::collection("", "a")), "----");
        assert_eq!(answers(Resource::Any), "yyyy");
        assert!(Resource::Cluster.covers(Target::Cluster) && !Resource::any_normal().covers(Target::Cluster));
    }

    #[test]
    fn what_is_no_resource_is_refused_as_on_a_real_server() {
        let why = |d: Document| {
            let e = Resource::parse(&d).unwrap_err();
            (e.code.0, e.message.to_string())
        };
        let exactly = "resource must have exactly db and collection set, or have only cluster set  or have only anyResource set";
        assert_eq!(why(doc! {}), (9, exactly.into()));
        assert_eq!(why(doc! { "anyResource": true, "cluster": true }), (9, exactly.into()));
        assert_eq!(why(doc! { "db": "", "collection": "", "cluster": false }), (9, exactly.into()));
        let both = "resource must set both db and collection or neither, but not exactly one.";
        assert_eq!(why(doc! { "db": "x" }), (9, both.into()));
        assert_eq!(why(doc! { "cluster": true, "db": "x" }), (9, both.into()));
        assert_eq!(why(doc! { "cluster": false }), (9, "cluster must be true when specified".into()));
        let kind = "wrong type for 'cluster' field, expected boolean, found cluster: 1";
        assert_eq!(why(doc! { "cluster": 1 }), (2, kind.into()));
        assert_eq!(
            why(doc! { "db": "a.b", "collection": "" }),
            (9, "a.b is not a valid database name".into())
        );
        assert_eq!(
            why(doc! { "db": "x", "collection": "a..b$" }),
            (9, "a..b$ is not a valid collection name".into())
        );
    }

    #[test]
    fn resources_survive_their_documents() {
        let series = |db: &str| Resource::Buckets { db: db.into(), collection: "a".into() };
        for r in [Resource::Any, Resource::Cluster, Resource::any_normal(), series(""), series("test")] {
            assert_eq!(Resource::parse(&r.document()).unwrap(), r);
        }
    }
}
