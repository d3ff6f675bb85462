//! Whole commands: a form for those with arguments worth drawing, anything for the rest of the table.

use super::kind::{F, K, may, need};
use super::{Gen, Group, values};
use crate::data;
use pando_bson::{Bson, Document, doc};
use pando_command::COMMANDS;
use pando_request::declare::Arguments;
use pando_request::declare::table::arguments_of;

/// What a command may touch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Collections that stay as they are.
    Read,
    /// Documents of a scratch collection.
    Write,
    /// Collections of their own database.
    Ddl,
    /// The server itself, harmlessly.
    Server,
    /// The server or the set, so that others notice.
    Admin,
}

const CURSOR: K = K::Spec(&[may!("batchSize", K::CInt)]);
const BOOL: K = K::CBool;
const HINTED: K = K::Hint;

const AGGREGATE: &[F] = &[
    need!("pipeline", K::Pipeline),
    need!("cursor", CURSOR),
    may!("collation", K::Collation),
    may!("allowDiskUse", BOOL),
];
const AGGREGATE_RARE: &[F] = &[
    may!("let", K::Lets),
    may!("hint", HINTED),
    may!("readConcern", K::ReadConcern),
    may!("bypassDocumentValidation", BOOL),
    may!("maxTimeMS", K::CNum),
    may!("comment", K::CAny),
    may!("collectionUUID", K::CUuid),
];
const FIND: &[F] = &[
    may!("filter", K::Filter),
    may!("filter", K::Filter),
    may!("sort", K::Sort),
    may!("projection", K::Projection),
    may!("skip", K::CInt),
    may!("limit", K::CInt),
    may!("collation", K::Collation),
];
const FIND_RARE: &[F] = &[
    may!("hint", HINTED),
    may!("batchSize", K::CInt),
    may!("singleBatch", BOOL),
    may!("comment", K::CAny),
    may!("maxTimeMS", K::CNum),
    may!("readConcern", K::ReadConcern),
    may!("max", K::IndexKey),
    may!("min", K::IndexKey),
    may!("returnKey", BOOL),
    may!("showRecordId", BOOL),
    may!("tailable", BOOL),
    may!("awaitData", BOOL),
    may!("noCursorTimeout", BOOL),
    may!("allowPartialResults", BOOL),
    may!("allowDiskUse", BOOL),
    may!("let", K::Lets),
    may!("collectionUUID", K::CUuid),
];
const COUNT: &[F] = &[
    may!("query", K::Filter),
    may!("limit", K::CInt),
    may!("skip", K::CInt),
    may!("hint", HINTED),
    may!("collation", K::Collation),
    may!("fields", K::CObj),
];
const DISTINCT: &[F] = &[need!("key", K::Path), may!("query", K::Filter), may!("collation", K::Collation)];
const UPDATES: K = K::List(&K::Spec(&[
    need!("q", K::Filter),
    need!("u", K::Update),
    may!("multi", BOOL),
    may!("upsert", BOOL),
    may!("arrayFilters", K::List(&K::Spec(&[need!("e", K::FieldFilter)]))),
    may!("collation", K::Collation),
    may!("hint", HINTED),
    may!("c", K::CObj),
]));
const UPDATE: &[F] = &[need!("updates", UPDATES), may!("ordered", BOOL)];
const WRITE_RARE: &[F] = &[
    may!("writeConcern", K::WriteConcern),
    may!("bypassDocumentValidation", BOOL),
    may!("let", K::Lets),
    may!("maxTimeMS", K::CNum),
    may!("comment", K::CAny),
    may!("lsid", K::SessionId),
    may!("txnNumber", K::CNum),
    may!("stmtId", K::CInt),
    may!("collectionUUID", K::CUuid),
];
const DELETE: &[F] = &[
    need!(
        "deletes",
        K::List(&K::Spec(&[
            need!("q", K::Filter),
            need!("limit", K::OneOf(&[K::N(0), K::N(1), K::N(1), K::CInt])),
            may!("collation", K::Collation),
            may!("hint", HINTED),
        ])),
    ),
    may!("ordered", BOOL),
];
const INSERT: &[F] = &[need!("documents", K::List(&K::Doc)), may!("ordered", BOOL)];
const FIND_AND_MODIFY: &[F] = &[
    need!("query", K::Filter),
    need!("sort", K::Sort),
    need!("update", K::Update),
    may!("new", BOOL),
    may!("upsert", BOOL),
    may!("fields", K::Projection),
    may!("arrayFilters", K::List(&K::Spec(&[need!("e", K::FieldFilter)]))),
    may!("collation", K::Collation),
    may!("hint", HINTED),
];
const FIND_AND_REMOVE: &[F] = &[
    need!("query", K::Filter),
    need!("sort", K::Sort),
    need!("remove", BOOL),
    may!("fields", K::Projection),
];
const OPERATIONS: K = K::List(&K::OneOf(&[
    K::Spec(&[need!("insert", K::CInt), need!("document", K::Doc)]),
    K::Spec(&[
        need!("update", K::CInt),
        need!("filter", K::Filter),
        need!("updateMods", K::Update),
        may!("multi", BOOL),
    ]),
    K::Spec(&[need!("delete", K::CInt), need!("filter", K::Filter), may!("multi", BOOL)]),
]));
const BULK: &[F] = &[
    need!("ops", OPERATIONS),
    need!("nsInfo", K::List(&K::Spec(&[need!("ns", K::Ns)]))),
    may!("ordered", BOOL),
    may!("errorsOnly", BOOL),
];
pub(super) const INDEX: K = K::Spec(&[
    need!("key", K::IndexKey),
    need!("name", K::IndexName),
    may!("unique", BOOL),
    may!("sparse", BOOL),
    may!("hidden", BOOL),
    may!("background", BOOL),
    may!("expireAfterSeconds", K::CNum),
    may!("partialFilterExpression", K::Filter),
    may!("collation", K::Collation),
    may!("wildcardProjection", K::Projection),
    may!("weights", K::Map(&K::CNum)),
    may!("default_language", K::CStr),
    may!("language_override", K::CStr),
    may!("textIndexVersion", K::CNum),
    may!("2dsphereIndexVersion", K::CNum),
    may!("bits", K::CNum),
    may!("min", K::CNum),
    may!("max", K::CNum),
    may!("v", K::CNum),
    may!("storageEngine", K::CObj),
    may!("prepareUnique", BOOL),
]);
const USERS: K = K::OneOf(&[
    K::N(1),
    K::CStr,
    K::Spec(&[need!("user", K::CStr), need!("db", K::Db)]),
    K::Spec(&[need!("forAllDBs", BOOL)]),
    K::List(&K::OneOf(&[K::CStr, K::Spec(&[need!("user", K::CStr), need!("db", K::Db)])])),
]);
const ROLE: K = K::Word(&["read", "root", "x", ""]);
const ROLES: K = K::OneOf(&[
    K::N(1),
    ROLE,
    K::List(&K::OneOf(&[ROLE, K::Spec(&[need!("role", ROLE), need!("db", K::Db)])])),
]);
const PARAMETER: K = K::Word(&["changeStreamOptions", "*", "x"]);
const PARAMETERS: K = K::OneOf(&[PARAMETER, K::List(&PARAMETER)]);

/// Command, class, first argument, arguments, arguments drawn now and then. Where the server declares a command's arguments as a
/// table, they are drawn from there, and here stands what every command may carry.
type Row = (&'static str, Class, K, &'static [F], &'static [F]);

#[rustfmt::skip]
const FORMS: &[Row] = &[
    ("aggregate", Class::Read, K::Coll, AGGREGATE, AGGREGATE_RARE),
    ("find", Class::Read, K::Coll, FIND, FIND_RARE),
    ("count", Class::Read, K::Coll, COUNT, &[may!("readConcern", K::ReadConcern), may!("maxTimeMS", K::CNum)]),
    ("distinct", Class::Read, K::Coll, DISTINCT, &[may!("readConcern", K::ReadConcern), may!("hint", HINTED), may!("maxTimeMS", K::CNum)]),
    ("explain", Class::Read, K::Command, &[], &[may!("maxTimeMS", K::CNum)]),
    ("mapReduce", Class::Read, K::Coll, &[], &[may!("maxTimeMS", K::CNum)]),
    ("listIndexes", Class::Read, K::Coll, &[], &[may!("maxTimeMS", K::CNum)]),
    ("listCollections", Class::Read, K::N(1), &[], &[may!("maxTimeMS", K::CNum)]),
    ("listDatabases", Class::Read, K::N(1), &[], &[may!("maxTimeMS", K::CNum)]),
    ("getMore", Class::Read, K::CNum, &[need!("collection", K::Coll), may!("batchSize", K::CInt), may!("maxTimeMS", K::CNum), may!("term", K::CNum)], &[]),
    ("killCursors", Class::Read, K::Coll, &[], &[]),
    ("collStats", Class::Read, K::Coll, &[], &[]),
    ("dbStats", Class::Read, K::N(1), &[], &[]),
    ("dataSize", Class::Read, K::Ns, &[], &[]),
    ("dbHash", Class::Read, K::N(1), &[may!("collections", K::List(&K::Coll))], &[]),
    ("validate", Class::Read, K::Coll, &[], &[may!("checkBSONConformance", BOOL)]),
    ("planCacheClear", Class::Read, K::Coll, &[], &[]),
    ("planCacheListFilters", Class::Read, K::Coll, &[], &[]),
    ("planCacheSetFilter", Class::Read, K::Fresh, &[], &[]),
    ("planCacheClearFilters", Class::Read, K::Fresh, &[], &[]),
    ("insert", Class::Write, K::Scratch, INSERT, WRITE_RARE),
    ("update", Class::Write, K::Scratch, UPDATE, WRITE_RARE),
    ("delete", Class::Write, K::Scratch, DELETE, WRITE_RARE),
    ("findAndModify", Class::Write, K::Scratch, FIND_AND_MODIFY, WRITE_RARE),
    ("bulkWrite", Class::Write, K::N(1), BULK, WRITE_RARE),
    ("create", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("createIndexes", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("collMod", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("drop", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("dropDatabase", Class::Ddl, K::N(1), &[], &[may!("writeConcern", K::WriteConcern)]),
    ("dropIndexes", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("renameCollection", Class::Ddl, K::Ns, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("convertToCapped", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("cloneCollectionAsCapped", Class::Ddl, K::Fresh, &[], &[may!("writeConcern", K::WriteConcern)]),
    ("compact", Class::Ddl, K::Fresh, &[], &[]),
    ("reIndex", Class::Ddl, K::Fresh, &[], &[]),
    ("filemd5", Class::Server, K::CAny, &[], &[]),
    ("splitVector", Class::Server, K::Ns, &[], &[may!("maxTimeMS", K::CNum)]),
    ("usersInfo", Class::Server, USERS, &[], &[]),
    ("rolesInfo", Class::Server, ROLES, &[], &[]),
    ("getClusterParameter", Class::Server, PARAMETERS, &[], &[]),
];

/// Commands that only [`crate::admin`] draws: they change the server, the set or what others see.
#[rustfmt::skip]
const ADMIN: &[&str] = &[
    "_closeBackup", "_demoWorkflow", "_forgetImport", "_importCollections", "_keptSessions", "_openBackup", "_readBackup", "_takeInCollections", "abortTransaction", "appendOplogNote",
    "applyOps", "clearLog", "commitTransaction", "configureFailPoint", "coordinateCommitTransaction",
    "dropConnections", "endSessions", "fsync", "fsyncUnlock", "killAllSessions", "killAllSessionsByPattern", "killOp", "killSessions",
    "logRotate", "prepareTransaction", "profile", "refreshLogicalSessionCacheNow", "refreshSessions", "replSetAbortPrimaryCatchUp",
    "replSetFreeze", "replSetGetConfig", "replSetGetRBID", "replSetGetStatus", "replSetHeartbeat", "replSetInitiate",
    "replSetMaintenance", "replSetReconfig", "replSetRequestVotes", "replSetResizeOplog", "replSetStepDown", "replSetStepUp",
    "replSetSyncFrom", "replSetUpdatePosition", "resync", "setClusterParameter", "setCommittedSnapshot", "setDefaultRWConcern",
    "setFeatureCompatibilityVersion", "setIndexCommitQuorum", "setParameter", "setUserWriteBlockMode", "shutdown", "sleep",
    "startSession", "voteAbortIndexBuild", "voteCommitIndexBuild", "waitForFailPoint", "logout", "setProfilingFilterGlobally", "hello", "isMaster",
];

pub(super) fn is_admin(name: &str) -> bool {
    class_of(name) == Class::Admin
}

fn class_of(name: &str) -> Class {
    match FORMS.iter().find(|row| row.0 == name) {
        Some(row) => row.1,
        None if ADMIN.contains(&name) => Class::Admin,
        None => Class::Server,
    }
}

/// Names in the tables here that no command has.
pub fn unknown_commands() -> Vec<&'static str> {
    let names = FORMS.iter().map(|row| row.0).chain(ADMIN.iter().copied());
    names.filter(|n| !COMMANDS.iter().any(|c| c.name == *n)).collect()
}

/// A command of a class; the database it runs in is the caller's affair.
pub fn command(g: &mut Gen, class: Class) -> Document {
    match class {
        Class::Server => {
            let rows: Vec<_> = COMMANDS.iter().filter(|c| class_of(c.name) == Class::Server).collect();
            let name = rows[g.rng.below(rows.len())].name;
            g.named(name)
        }
        Class::Admin => g.admin_command(),
        _ => {
            let name = g.name_of(class);
            g.named(name)
        }
    }
}

impl Gen {
    fn name_of(&mut self, class: Class) -> &'static str {
        let often: &[&str] = match class {
            Class::Read => {
                &["aggregate", "aggregate", "aggregate", "aggregate", "find", "find", "count", "distinct"]
            }
            Class::Write => &["update", "update", "update", "findAndModify", "insert", "delete"],
            _ => &["create", "createIndexes", "collMod"],
        };
        if self.rng.percent(90) {
            return self.rng.pick(often);
        }
        let rows: Vec<&Row> = FORMS.iter().filter(|row| row.1 == class).collect();
        rows[self.rng.below(rows.len())].0
    }

    /// A command by its form.
    pub(super) fn named(&mut self, name: &'static str) -> Document {
        self.drawn.push((Group::Command, name));
        let Some((_, class, first, fields, rare)) = FORMS.iter().find(|row| row.0 == name).copied() else {
            return match arguments_of(name) {
                Some(table) if self.rng.percent(60) => self.with_declared(name, table),
                _ => self.anything(name),
            };
        };
        let depth = self.rng.pick(&[1, 2, 2, 3]);
        let mut d = Document::new();
        let first = self.value(first, depth);
        d.push(name, first);
        let fields = match name == "findAndModify" && self.rng.once_in(5) {
            true => FIND_AND_REMOVE,
            false => fields,
        };
        let body = match arguments_of(name) {
            Some(table) => self.declared(table, matches!(class, Class::Ddl | Class::Server), depth).into(),
            None if class == Class::Ddl => self.few_of(fields, depth),
            None => self.form(fields, depth),
        };
        for (k, v) in body.as_doc().cloned().unwrap_or_default() {
            if !d.contains(&k) {
                d.push(k, v);
            }
        }
        if name == "insert" {
            let n = self.rng.pick(&[1, 1, 1, 2, 3]);
            let docs: Vec<Bson> = (0..n).map(|_| self.new_document().into()).collect();
            d.set("documents", docs);
        }
        self.rare(&mut d, rare);
        d
    }

    fn rare(&mut self, d: &mut Document, rare: &'static [F]) {
        if rare.is_empty() || !self.rng.once_in(6) {
            return;
        }
        let f = self.rng.pick(rare);
        if !d.contains(f.name) {
            let v = self.value(f.kind, 1);
            d.push(f.name, v);
        }
    }

    /// What is needed and one or two of the rest.
    fn few_of(&mut self, fields: &'static [F], depth: u32) -> Bson {
        let mut d = Document::new();
        for f in fields.iter().filter(|f| f.needed) {
            let v = self.value(f.kind, depth);
            d.push(f.name, v);
        }
        let others: Vec<&F> = fields.iter().filter(|f| !f.needed).collect();
        for _ in 0..self.rng.pick(&[0, 1, 1, 1, 2, 2, 3]) {
            if others.is_empty() {
                break;
            }
            let f = others[self.rng.below(others.len())];
            if !d.contains(f.name) {
                let v = self.value(f.kind, depth);
                d.push(f.name, v);
            }
        }
        Bson::Document(d)
    }

    /// A name of the table with arguments that it knows.
    fn with_declared(&mut self, name: &'static str, table: &'static Arguments) -> Document {
        let first = match self.rng.percent(70) {
            true => Bson::Int32(1),
            false => values::any(&mut self.rng, 1),
        };
        let mut d = Document::from(vec![(name.to_owned(), first)]);
        for (k, v) in self.declared(table, true, 1) {
            d.push(k, v);
        }
        d
    }

    /// A name of the table with anything behind it.
    pub(super) fn anything(&mut self, name: &'static str) -> Document {
        let first = match self.rng.below(3) {
            0 => Bson::Int32(1),
            1 => self.value(K::Coll, 0),
            _ => values::any(&mut self.rng, 1),
        };
        let mut d = Document::from(vec![(name.to_owned(), first)]);
        for _ in 0..self.rng.below(3) {
            let field = self
                .rng
                .pick(&["filter", "query", "scale", "cursor", "force", "host", "arg", "comment", "x"]);
            if !d.contains(field) {
                d.push(field, values::any(&mut self.rng, 2));
            }
        }
        d
    }

    /// The parts that only commands have.
    pub(super) fn command_part(&mut self, kind: K, depth: u32) -> Bson {
        let r = &mut self.rng;
        match kind {
            K::Coll => Bson::from(r.pick(data::READ)),
            K::Scratch => Bson::from(r.pick(data::SCRATCH)),
            K::Fresh => Bson::from(r.pick(&["x", "x", "x", "y", "z", "system.views", "", "a$b", ".x"])),
            K::Db => Bson::from(r.pick(&[data::DB, data::DB, data::DDL_DB, "", "a.b", "no such"])),
            K::Ns => Bson::from(r.pick(&[
                "dd.x",
                "dd.x",
                "dd.y",
                "dd.z",
                "df.w_plain",
                "df",
                "",
                ".",
                "dd.",
                "local.x",
            ])),
            K::IndexName => Bson::from(r.pick(&["a_1", "b_1", "_id_", "x", "", "*", "a_1_b_-1"])),
            K::Collation => self.collation(),
            K::Hint => match r.below(4) {
                0 => doc! { "$natural": r.pick(&[1, -1, 2]) }.into(),
                1 => doc! { "_id": 1 }.into(),
                2 => Bson::from(r.pick(&["_id_", "i_s", "a", "n", "nope"])),
                _ => self.index_key().into(),
            },
            K::IndexKey => self.index_key().into(),
            K::ReadConcern => self.read_concern(),
            K::WriteConcern => self.write_concern(),
            K::Command => {
                let name = self.rng.pick(&[
                    "aggregate",
                    "find",
                    "count",
                    "distinct",
                    "update",
                    "delete",
                    "findAndModify",
                ]);
                self.named(name).into()
            }
            K::SessionId => {
                doc! { "id": Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![9; 16] }) }.into()
            }
            _ => values::any(&mut self.rng, depth.min(2)),
        }
    }

    pub(super) fn index_key(&mut self) -> Document {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 2, 3]) {
            let path = match self.rng.below(10) {
                0 => self.rng.pick(&["$**", "a.$**", "_id", "$**.a"]).to_owned(),
                1 => self.field().replace('\0', ""),
                _ => self.rng.pick(&["a", "b", "n", "i", "s", "g", "p", "o.x"]).to_owned(),
            };
            let way = match self.rng.below(12) {
                0 => Bson::from(self.rng.pick(&["hashed", "text", "2d", "2dsphere", "x", "", "columnstore"])),
                1 => self.value(K::CNum, 0),
                2 => self.value(K::CAny, 0),
                n if n % 2 == 0 => Bson::Int32(-1),
                _ => Bson::Int32(1),
            };
            if !d.contains(&path) {
                d.push(path, way);
            }
        }
        d
    }

    fn collation(&mut self) -> Bson {
        let r = &mut self.rng;
        let mut d = doc! { "locale": r.pick(&["en", "simple", "fr", "de", "sv", "xx"]) };
        if r.percent(60) {
            d.push("strength", r.pick(&[1, 2, 3, 5, 6]));
        }
        if r.percent(15) {
            d.push("caseLevel", r.percent(50));
        }
        if r.percent(15) {
            d.push("numericOrdering", r.percent(50));
        }
        if r.percent(10) {
            d.push("alternate", r.pick(&["shifted", "non-ignorable", "x"]));
        }
        if r.percent(10) {
            d.push("caseFirst", r.pick(&["upper", "lower", "off", "x"]));
        }
        if r.percent(5) {
            d.push("backwards", r.percent(50));
        }
        Bson::Document(d)
    }

    fn read_concern(&mut self) -> Bson {
        let mut d = Document::new();
        let level = self.rng.pick(&["local", "majority", "available", "linearizable", "snapshot", "x"]);
        d.push("level", level);
        if self.rng.once_in(6) {
            d.push(self.rng.pick(&["afterClusterTime", "atClusterTime", "x"]), values::any(&mut self.rng, 0));
        }
        Bson::Document(d)
    }

    fn write_concern(&mut self) -> Bson {
        let mut d = Document::new();
        let w = match self.rng.below(6) {
            0 => Bson::from(self.rng.pick(&["majority", "majority", "x", ""])),
            1 => values::any(&mut self.rng, 1),
            _ => Bson::Int32(self.rng.pick(&[1, 1, 0, 2])),
        };
        d.push("w", w);
        if self.rng.percent(30) {
            d.push("j", values::any(&mut self.rng, 0));
        }
        // Nobody waits for members that there are not.
        let wait = match self.rng.once_in(4) {
            true => values::any(&mut self.rng, 0),
            false => Bson::Int32(1),
        };
        d.push("wtimeout", if matches!(wait, Bson::Int32(n) if n <= 0) { Bson::Int32(1) } else { wait });
        Bson::Document(d)
    }
}
