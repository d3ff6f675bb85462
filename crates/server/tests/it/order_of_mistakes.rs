//! Which of several mistakes a command tells of, and mistakes in what it has no use for.

#![allow(clippy::unwrap_used)]

use pando_bson::{Bson, Document, doc};
use pando_testserver::{World, run};

/// The code of a command's error, or of its first write error; 0 for none.
fn code(reply: &Document) -> i64 {
    let number = |d: &Document| d.get("code").and_then(Bson::as_i64);
    let writes = reply.get("writeErrors").and_then(Bson::as_array).and_then(|l| l.first()?.as_doc());
    number(reply).or_else(|| writes.and_then(number)).unwrap_or(0)
}

#[test]
fn updates_tell_of_array_filters_then_of_the_update_then_of_the_query() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": [1] }] }).await;
        let bad_query = || doc! { "$and": Bson::Array(Vec::new()) };
        let bad_filters = || Bson::Array(vec![doc! { "e": { "$bitsAllSet": [-1] } }.into()]);
        let all = Document::new;
        let set = || doc! { "$set": { "x": 1 } };
        let pipeline = || Bson::Array(vec![set().into()]);
        let cases: Vec<(Document, i64)> = vec![
            (doc! { "q": bad_query(), "u": { "$nope": 1 } }, 9),
            (doc! { "q": bad_query(), "u": { "x": 1 }, "c": { "x": 1 } }, 51198),
            (doc! { "q": all(), "u": { "x": 1 }, "arrayFilters": bad_filters() }, 2),
            (doc! { "q": all(), "u": pipeline(), "arrayFilters": bad_filters() }, 2),
            (doc! { "q": all(), "u": pipeline(), "arrayFilters": [{ "e": 1 }] }, 9),
            (doc! { "q": all(), "u": pipeline(), "arrayFilters": Bson::Array(Vec::new()) }, 0),
            (doc! { "q": all(), "u": pipeline(), "c": { "": 1 } }, 9),
            (doc! { "q": all(), "u": pipeline(), "c": { "ROOT": 1 } }, 17275),
            (doc! { "q": all(), "u": pipeline(), "c": { "X": 1 } }, 0),
            (doc! { "q": bad_query(), "u": { "x": 1 }, "multi": true }, 9),
            (doc! { "q": { "_id": { "$eq": { "$gte": 0 } } }, "u": set(), "upsert": true }, 52),
            (doc! { "q": { "$expr": true }, "u": set(), "upsert": true }, 224),
            (doc! { "q": { "$or": [{ "$expr": true }] }, "u": set(), "upsert": true }, 224),
        ];
        for (statement, wanted) in cases {
            for coll in ["c", "nothing"] {
                let reply = c.run(doc! { "update": coll, "updates": [statement.clone()] }).await;
                assert_eq!(code(&reply), wanted, "{coll}: {statement:?}: {reply:?}");
            }
        }
    });
}

#[test]
fn write_commands_tell_of_their_own_arguments_first() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let none = || Bson::Array(Vec::new());
        for wrong in [
            ("writeConcern", doc! { "j": "x" }.into()),
            ("maxTimeMS", Bson::Int32(-1)),
            ("txnNumber", Bson::Double(1.5)),
        ] {
            for (name, list) in [("insert", "documents"), ("update", "updates"), ("delete", "deletes")] {
                let mut cmd = Document::new();
                cmd.push(name, "c");
                cmd.push(list, none());
                cmd.push(wrong.0, wrong.1.clone());
                assert_eq!(c.err(cmd).await.0, 16, "{name} {}", wrong.0);
            }
        }
        let deletes = |d: Document| doc! { "delete": "c", "deletes": [d] };
        assert_eq!(c.err(deletes(doc! { "limit": 2, "x": 1 })).await.0, 9);
        assert_eq!(c.err(deletes(doc! { "q": {}, "limit": 2, "collation": "x" })).await.0, 9);
        assert_eq!(c.err(deletes(doc! { "q": {}, "collation": "x", "limit": 2 })).await.0, 14);
    });
}

#[test]
fn concerns_and_collations_are_looked_at_where_they_change_nothing() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": Bson::Array(Vec::new()) }).await;
        let series = doc! { "timeField": "t", "metaField": "m" };
        c.ok(doc! { "create": "ts", "timeseries": series }).await;
        let at = doc! { "t": Bson::DateTime(0), "m": "A", "s": "Ä" };
        c.ok(doc! { "insert": "ts", "documents": [at] }).await;
        assert_eq!(c.err(doc! { "count": "c", "collation": { "locale": "xx" } }).await.0, 2);
        assert_eq!(c.err(doc! { "count": "c", "readConcern": { "level": "snapshot" } }).await.0, 72);
        let available = || doc! { "level": "available" };
        assert_eq!(c.err(doc! { "insert": "c", "documents": [{}], "readConcern": available() }).await.0, 72);
        assert_eq!(c.err(doc! { "listIndexes": "c", "readConcern": available() }).await.0, 72);
        c.ok(doc! { "find": "c", "readConcern": available() }).await;
        for option in ["allowPartialResults", "readOnce"] {
            let mut cmd = doc! { "find": "v" };
            cmd.push(option, true);
            assert_eq!(c.err(cmd).await.0, 168, "{option}");
        }
        // A time series takes any collation, a view only its own.
        let sv = || doc! { "locale": "sv", "strength": 1 };
        assert_eq!(c.err(doc! { "count": "v", "collation": sv() }).await.0, 167);
        for (query, n) in [(doc! { "m": "a" }, 1), (doc! { "s": "ä" }, 1), (doc! { "s": "a" }, 0)] {
            let reply = c.ok(doc! { "count": "ts", "query": query.clone(), "collation": sv() }).await;
            assert_eq!(reply.get("n"), Some(&Bson::Int32(n)), "{query:?}");
        }
        assert_eq!(c.ok(doc! { "count": "ts", "query": { "m": "a" } }).await.get("n"), Some(&Bson::Int32(0)));
    });
}

#[test]
fn stages_know_only_what_is_theirs() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "x": "s", "ao": [{ "k": 1 }] }, { "_id": 2, "x": -1 }] }).await;
        let of = |stages: Vec<Document>| {
            let stages: Vec<Bson> = stages.into_iter().map(Bson::from).collect();
            doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }
        };
        let set = doc! { "$set": { "a": "$$KEEP" } };
        assert_eq!(c.err(of(vec![doc! { "$redact": "$$KEEP" }, set])).await.0, 17276);
        c.ok(of(vec![doc! { "$redact": { "$cond": [true, "$$KEEP", "$$PRUNE"] } }])).await;
        assert_eq!(c.err(of(vec![doc! { "$limit": 1 }, doc! { "$currentOp": {} }])).await.0, 73);
        let auto = |id: i32| {
            let by = doc! { "groupBy": "$x", "buckets": 2, "granularity": "R5" };
            of(vec![doc! { "$sort": { "_id": id } }, doc! { "$bucketAuto": by }])
        };
        assert_eq!(c.err(auto(1)).await.0, 40258);
        assert_eq!(c.err(auto(-1)).await.0, 40260);
        let n = doc! { "z": { "$firstN": { "input": "$_id", "n": "$i" } } };
        let by = doc! { "groupBy": "$x", "buckets": 2, "output": n };
        assert_eq!(c.err(of(vec![doc! { "$bucketAuto": by }])).await.0, 4544714);
        // A path does not lead into arrays where gaps are filled.
        let range = doc! { "step": 1, "bounds": "full" };
        c.ok(of(vec![doc! { "$densify": { "field": "ao.k", "range": range } }])).await;
        assert_eq!(c.err(of(vec![doc! { "$sample": { "size": f64::NEG_INFINITY } }])).await.0, 28747);
    });
}

/// As mongod 6.0.5 tells them: fields in the order they stand in, then what is missing, then the name, then the concerns, then
/// what the fields mean together, then what they mean for what exists.
#[test]
fn definitions_tell_of_their_fields_then_of_their_name_then_of_what_fields_mean_together() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "a": 1 }] }).await;
        let unmet = || Bson::Int32(50);
        let index = |key: Document| Bson::Array(vec![doc! { "key": key, "name": "x" }.into()]);
        let half = || doc! { "timeField": "t", "bucketMaxSpanSeconds": 5 };
        let cases: Vec<(Document, i64)> = vec![
            // Names behind the arguments.
            (doc! { "create": "", "size": 0 }, 51024),
            (doc! { "create": 5, "zzz": 1 }, 40415),
            (doc! { "create": 5, "writeConcern": { "zz": 1 } }, 2),
            (doc! { "createIndexes": 5, "zzz": 1 }, 40415),
            (doc! { "createIndexes": 5, "commitQuorum": "majority" }, 40414),
            (doc! { "createIndexes": "", "indexes": Bson::Array(Vec::new()) }, 73),
            (doc! { "dropIndexes": "", "index": true }, 14),
            (doc! { "listIndexes": "", "cursor": { "batchSize": -1 } }, 51024),
            (doc! { "killCursors": "", "cursors": [5] }, 14),
            (doc! { "mapReduce": "", "zzz": 1 }, 40415),
            (doc! { "mapReduce": "c", "shardedFirstPass": false }, 40415),
            (doc! { "dropDatabase": Bson::Null, "zzz": 1 }, 40415),
            // Commit quorums behind specifications and names.
            (
                doc! { "createIndexes": "c", "indexes": index(doc! { "a": "foo" }), "commitQuorum": unmet() },
                67,
            ),
            (doc! { "createIndexes": "$x", "indexes": index(doc! { "a": 1 }), "commitQuorum": unmet() }, 73),
            (doc! { "createIndexes": "c", "indexes": index(doc! { "a": 1 }), "commitQuorum": unmet() }, 278),
            (
                doc! { "createIndexes": "c", "indexes": index(doc! { "a": 1 }), "commitQuorum": 51, "zzz": 1 },
                9,
            ),
            (doc! { "createIndexes": "system.foo", "indexes": Bson::Array(Vec::new()) }, 73),
            // What fields mean, behind all of them.
            (doc! { "create": "n", "timeseries": half(), "zzz": 1 }, 40415),
            (doc! { "create": "n", "timeseries": half(), "temp": true }, 72),
            (doc! { "create": "n", "storageEngine": { "x": 1 }, "clusteredIndex": true }, 5_979_703),
            (
                doc! { "create": "n", "idIndex": { "key": { "_id": 1 }, "name": "_id_" }, "clusteredIndex": true },
                5_979_703,
            ),
            (
                doc! { "create": "n", "capped": true, "clusteredIndex": true, "encryptedFields": { "fields": Bson::Array(Vec::new()) } },
                6_049_201,
            ),
            // Where a command is of the older kind, concerns come first.
            (doc! { "collMod": "c", "zzz": 1, "maxTimeMS": -1 }, 2),
            (doc! { "collMod": "c", "zzz": 1 }, 40415),
            (doc! { "endSessions": "x", "readConcern": 5 }, 14),
            (doc! { "convertToCapped": "nope", "size": -1 }, 26),
            // The command within an explain says when its arguments are looked at.
            (doc! { "explain": { "update": "c", "zz": 1 }, "maxTimeMS": -1 }, 40415),
            (doc! { "explain": { "find": "c", "zz": 1 }, "maxTimeMS": -1 }, 2),
            (doc! { "explain": { "count": "$x", "zz": 1 } }, 40415),
        ];
        for (command, wanted) in cases {
            let reply = c.run(command.clone()).await;
            assert_eq!(code(&reply), wanted, "{command:?}: {reply:?}");
        }
    });
}

/// Which mistake is told, and how: a real server's answers.
#[test]
fn commands_about_users_parameters_and_plans_tell_of_their_arguments_first() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1, "a": 1 }] }).await;
        let admin = |mut d: Document| {
            d.push("$db", "admin");
            d
        };
        let filter = |more: Document| {
            let mut cmd = doc! { "planCacheSetFilter": "c", "query": { "a": 1 }, "indexes": ["a_1"] };
            more.iter().for_each(|(k, v)| cmd.set(k, v.clone()));
            cmd
        };
        let ends = doc! { "splitVector": "test.c", "keyPattern": { "_id": 1 }, "min": { "x": 1 }, "max": { "_id": 9 } };
        let no_details = "Privilege or restriction details require exact-match usersInfo queries";
        for (cmd, code, text) in [
            (doc! { "usersInfo": {}, "foo": 1 }, 40415, "BSON field 'usersInfo.foo' is an unknown field."),
            (doc! { "usersInfo": {}, "maxTimeMS": -1 }, 2, "UserName must contain a field named: user"),
            (
                doc! { "usersInfo": [{ "user": 1 }] },
                2,
                "UserName must contain a string field named: user. But, has type int",
            ),
            (
                doc! { "usersInfo": { "user": "x", "z": 1 } },
                2,
                "UserName contains an unknown field named: 'z",
            ),
            (
                doc! { "usersInfo": { "forAllDBs": false } },
                2,
                "UserName contains an unknown field named: 'forAllDBs",
            ),
            (doc! { "usersInfo": "x", "filter": { "$x": 1 }, "showPrivileges": true }, 20, no_details),
            (
                doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "$_requestReshardingResumeToken": 1 },
                14,
                "Field '$_requestReshardingResumeToken' should be a boolean value, but found: int",
            ),
            (
                doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "$_requestReshardingResumeToken": true },
                9,
                "$_requestReshardingResumeToken must only be set for the oplog namespace, not test.c",
            ),
            (
                doc! { "find": "c", "$queryOptions": 1 },
                14,
                "Expected field $queryOptionsto be of type object",
            ),
            (
                doc! { "rolesInfo": "read", "foo": Bson::Null },
                40415,
                "BSON field 'rolesInfo.foo' is an unknown field.",
            ),
            (
                doc! { "rolesInfo": { "role": 1 }, "showBuiltinRoles": true },
                2,
                "RoleName must contain a string field named: role. But, has type int",
            ),
            (
                doc! { "rolesInfo": {}, "showPrivileges": "asUserFragment", "maxTimeMS": -1 },
                2,
                "RoleName must contain a field named: role",
            ),
            (
                admin(doc! { "getClusterParameter": ["a", 1] }),
                14,
                "BSON field 'getClusterParameter.getClusterParameter.1' is the wrong type 'int', expected type 'string'",
            ),
            (
                admin(doc! { "getClusterParameter": 1, "maxTimeMS": -1 }),
                14,
                "BSON field 'getClusterParameter.getClusterParameter' is the wrong type 'int', expected types '[string']",
            ),
            (
                admin(doc! { "setClusterParameter": { "nosuch": 1 }, "foo": 1 }),
                20,
                "Unknown Cluster Parameter nosuch",
            ),
            (
                admin(doc! { "setFeatureCompatibilityVersion": 1, "foo": 1 }),
                40415,
                "BSON field 'setFeatureCompatibilityVersion.foo' is an unknown field.",
            ),
            (doc! { "filemd5": 1, "root": 1, "maxTimeMS": -1 }, 73, "'root' must be of type String"),
            (filter(doc! { "query": 1, "indexes": 1 }), 2, "required field indexes must be an array"),
            (
                filter(doc! { "query": { "$x": 1 }, "collation": {} }),
                2,
                "optional field collation cannot be an empty object",
            ),
            (filter(doc! { "planCacheSetFilter": "nosuch", "query": 1 }), 2, "no such collection"),
            (ends, 16634, "field names of bound { x: 1 } do not match those of keyPattern { _id: 1 }"),
            (doc! { "splitVector": "test.nosuch", "keyPattern": { "_id": 1 } }, 26, "ns not found"),
        ] {
            assert_eq!(c.err(cmd.clone()).await, (code, text.to_owned()), "{cmd:?}");
        }
        // Nobody looks at a shape where there is no collection.
        c.ok(doc! { "planCacheClear": "nosuch", "query": 1 }).await;
        // Every number that is 1 as an integer asks for all.
        c.ok(doc! { "usersInfo": 1.9 }).await;
        // What is asked of nobody can be answered.
        c.ok(doc! { "rolesInfo": "nosuch", "showPrivileges": true }).await;
        let roles = c.ok(doc! { "rolesInfo": "read", "showPrivileges": true }).await;
        let role = roles.get("roles").and_then(|r| r.as_array()?.first()?.as_doc().cloned());
        let privileges = role.as_ref().and_then(|r| r.get("inheritedPrivileges")?.as_array());
        assert_eq!(privileges.map(<[Bson]>::len), Some(2));
        let both = ["userAdmin", "nosuch"].map(Bson::from).to_vec();
        let fragment = c.ok(doc! { "rolesInfo": both, "showPrivileges": "asUserFragment" }).await;
        let fragment = fragment.get("userFragment").and_then(Bson::as_doc);
        let count = |name: &str| fragment.and_then(|f| f.get(name)?.as_array()).map(<[Bson]>::len);
        assert_eq!(
            (count("roles"), count("inheritedRoles"), count("inheritedPrivileges")),
            (Some(2), Some(2), Some(1))
        );
        // `help` is for commands that do not know all of their arguments.
        assert!(c.ok(doc! { "filemd5": 1, "help": true }).await.get("help").is_some());
        assert_eq!(c.err(admin(doc! { "setUserWriteBlockMode": 1, "help": true })).await.0, 40415);
    });
}

/// Of several specifications each round looks at all: their form, when documents expire, collations, options together.
#[test]
fn specifications_are_looked_at_in_rounds() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let spec = |name: &str, more: Document| {
            let mut d = doc! { "key": { "a": 1 }, "name": name };
            more.iter().for_each(|(k, v)| d.set(k, v.clone()));
            d
        };
        // In the order of the rounds; what does not fit a key says so in its name.
        let rounds = [
            (spec("form", doc! { "v": 3 }), 67, "Invalid index specification"),
            (spec("expires", doc! { "expireAfterSeconds": "x" }), 67, "TTL index"),
            (spec("collation", doc! { "collation": { "locale": "xx" } }), 2, "failed to add collation"),
            (
                spec("options", doc! { "sparse": true, "partialFilterExpression": { "a": 1 } }),
                67,
                "cannot mix",
            ),
            (spec("kind", doc! { "key": { "a": "2d" }, "bits": 99 }), 72, "bits for hash"),
        ];
        for (i, (earlier, code, text)) in rounds.iter().enumerate() {
            for (later, ..) in &rounds[i + 1..] {
                for both in [[earlier.clone(), later.clone()], [later.clone(), earlier.clone()]] {
                    let both: Vec<Bson> = both.into_iter().map(Bson::Document).collect();
                    let told = c.err(doc! { "createIndexes": "c", "indexes": both.clone() }).await;
                    assert!(told.0 == *code && told.1.contains(text), "{told:?} of {both:?}");
                }
            }
        }
        for (wrong, text) in [
            (
                doc! { "key": { "$**": 1 }, "v": 1 },
                "'wildcard' index plugin is not allowed with index version v:1",
            ),
            (doc! { "v": 1, "collation": { "locale": "xx" } }, "with the 'collation' option and v=1"),
            (doc! { "collation": { "locale": "xx" } }, "Field 'locale' is invalid in: { locale: \"xx\" }"),
        ] {
            let wrong = spec("wrong", wrong);
            let told = c.err(doc! { "createIndexes": "c", "indexes": [wrong] }).await;
            assert!(told.1.ends_with(text), "{told:?}");
        }
        let clustered = doc! { "key": { "_id": 1 }, "name": "x", "clustered": true, "unique": true };
        for (coll, code) in [("nothing", 6_100_900), ("there", 6_243_700)] {
            if coll == "there" {
                c.ok(doc! { "create": coll }).await;
            }
            let told = c.err(doc! { "createIndexes": coll, "indexes": [clustered.clone()] }).await;
            assert_eq!(told.0, code, "{told:?}");
        }
    });
}

/// What an attack from outside found told otherwise than a real server tells it.
#[test]
fn single_mistakes_have_the_codes_of_a_real_server() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        c.ok(doc! { "create": "system.js" }).await;
        let cluster = doc! { "key": { "_id": 1 }, "unique": true, "name": "by_id" };
        c.ok(doc! { "create": "k", "clusteredIndex": cluster }).await;
        let uuid = || Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![7; 16] });
        let none = || Bson::Array(Vec::new());
        let stage = |s: Document| Bson::Array(vec![s.into()]);
        let text = || doc! { "$text": { "$search": "x" } };
        let near = || stage(doc! { "$geoNear": { "near": {}, "distanceField": "d" } });
        let cases: Vec<(Document, i64)> = vec![
            (doc! { "explain": { "find": uuid() } }, 73),
            (doc! { "explain": { "count": uuid() } }, 73),
            (doc! { "explain": { "distinct": 5, "key": "a" } }, 73),
            (doc! { "explain": { "aggregate": "c", "pipeline": none(), "explain": true } }, 9),
            (doc! { "explain": { "aggregate": "c", "pipeline": none(), "cursor": {}, "explain": false } }, 9),
            (doc! { "explain": { "aggregate": "c", "pipeline": 5, "explain": true } }, 14),
            (doc! { "collMod": "k", "index": { "name": "by_id", "hidden": true } }, 6_011_800),
            (doc! { "collMod": "k", "index": { "keyPattern": { "_id": 1 }, "hidden": false } }, 6_011_800),
            (doc! { "collMod": "k", "index": { "name": "_id_", "hidden": true } }, 27),
            (doc! { "collMod": "system.js", "validator": { "a": 1 } }, 72),
            (doc! { "collMod": "system.js", "validator": {} }, 0),
            (doc! { "collMod": "system.views", "validator": { "a": 1 } }, 72),
            (doc! { "create": "system.users", "validator": { "a": 1 } }, 72),
            (
                doc! { "aggregate": Bson::Decimal128("1".parse().unwrap()), "pipeline": none(), "cursor": {} },
                73,
            ),
            (
                doc! { "find": "c", "readConcern": { "level": "snapshot", "atClusterTime": pando_base::Timestamp::new(0, 5) } },
                72,
            ),
            (doc! { "getMore": 5i64, "collection": "c", "term": 1 }, 14),
            (doc! { "getMore": 5i64, "collection": "c", "term": 1.0 }, 14),
            (doc! { "getMore": 5i64, "collection": "c", "term": 1i64 }, 43),
            (doc! { "replSetReconfig": {}, "$db": "admin" }, 93),
            (
                doc! { "replSetReconfig": { "_id": "rs", "version": 2, "members": none() }, "$db": "admin" },
                103,
            ),
            (
                doc! { "replSetReconfig": { "_id": "rs", "version": 2, "members": none(), "x": 1 }, "$db": "admin" },
                93,
            ),
            (doc! { "setParameter": 1, "logLevel": -1, "$db": "admin" }, 2),
            (doc! { "setParameter": 1, "logLevel": 100, "$db": "admin" }, 0),
            (doc! { "setParameter": 1, "logLevel": 0, "$db": "admin" }, 0),
            (doc! { "create": "c", "collation": { "locale": "zz" } }, 48),
            (doc! { "create": "c", "viewOn": "x", "pipeline": stage(doc! { "$nope": 1 }) }, 48),
            (doc! { "create": "v", "viewOn": "x", "pipeline": stage(doc! { "$nope": 1 }) }, 48),
            (doc! { "create": "c", "clusteredIndex": { "key": { "a": 1 }, "unique": true } }, 48),
            (doc! { "create": "c", "storageEngine": { "nope": {} } }, 48),
            (doc! { "create": "c", "autoIndexId": false }, 48),
            (doc! { "create": "c", "expireAfterSeconds": 5 }, 72),
            (doc! { "create": "c" }, 0),
            (doc! { "aggregate": "c", "pipeline": near(), "cursor": {} }, 27),
            (doc! { "aggregate": "nothing", "pipeline": near(), "cursor": {} }, 26),
            (
                doc! { "aggregate": "c", "pipeline": stage(doc! { "$bucketAuto": { "groupBy": "$a", "buckets": 0, "granularity": "x" } }), "cursor": {} },
                40257,
            ),
            (
                doc! { "aggregate": "c", "pipeline": stage(doc! { "$bucketAuto": { "groupBy": "$a", "buckets": 0 } }), "cursor": {} },
                40243,
            ),
        ];
        for (command, wanted) in cases {
            let reply = c.run(command.clone()).await;
            assert_eq!(code(&reply), wanted, "{command:?}: {reply:?}");
        }
        for command in [
            doc! { "find": "v", "filter": text() },
            doc! { "distinct": "v", "key": "a", "query": text() },
            doc! { "explain": { "find": "v", "filter": text() } },
        ] {
            let (code, told) = c.err(command.clone()).await;
            assert_eq!(code, 27, "{command:?}");
            assert!(told.ends_with("(no such collection 'test.v')"), "{command:?}: {told}");
        }
        let uncoded = c.run(doc! { "replSetReconfig": 5, "$db": "admin" }).await;
        assert!(!uncoded.contains("code"), "{uncoded:?}");
        server.shut_down().await;
    });
}

/// Of two fields of one name a check might see another than the command does.
#[test]
fn a_field_that_stands_twice_in_a_statement_is_refused() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let twice = |name: &str, value: Bson| {
            let mut s = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } } };
            s.push(name, value.clone());
            s.push(name, value);
            s
        };
        let set = || Bson::from(doc! { "$set": { "a": 2 } });
        for (name, value) in [
            ("q", Bson::from(doc! {})),
            ("u", set()),
            ("upsert", Bson::Boolean(true)),
            ("multi", Bson::Boolean(false)),
            ("hint", Bson::from(doc! { "_id": 1 })),
            ("collation", Bson::from(doc! { "locale": "de" })),
            ("arrayFilters", Bson::Array(vec![])),
            ("c", Bson::from(doc! {})),
        ] {
            let text = format!("BSON field 'update.updates.{name}' is a duplicate field");
            let sent = doc! { "update": "c", "updates": [twice(name, value.clone())] };
            assert_eq!(c.err(sent).await, (40413, text.clone()));
            let good = doc! { "q": {}, "u": { "$set": { "a": 1 } } };
            let reply =
                c.run_with_sequence(doc! { "update": "c" }, "updates", &[good, twice(name, value)]).await;
            assert_eq!(reply.get("errmsg").and_then(Bson::as_str), Some(&*text));
        }
        for (name, value) in
            [("q", Bson::from(doc! {})), ("limit", Bson::Int32(0)), ("hint", Bson::from(doc! { "_id": 1 }))]
        {
            let mut s = doc! { "q": { "_id": 1 }, "limit": 1 };
            s.push(name, value.clone());
            s.push(name, value);
            let text = format!("BSON field 'delete.deletes.{name}' is a duplicate field");
            assert_eq!(c.err(doc! { "delete": "c", "deletes": [s] }).await, (40413, text));
        }
        // What is null is not there.
        let mut s = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": 1 } }, "upsert": Bson::Null };
        s.push("upsert", true);
        c.ok(doc! { "update": "c", "updates": [s] }).await;
    });
}

/// Users whose credentials are elsewhere are of that database, and it has no collections. Texts of 6.0.5.
#[test]
fn the_database_of_external_users_has_no_collections() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let there = |mut command: Document| {
            command.push("$db", "$external");
            command
        };
        let no_write = (73, "Invalid namespace: $external.c".to_owned());
        for command in [
            doc! { "insert": "c", "documents": [{ "_id": 1 }] },
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "a": 1 }, "upsert": true }] },
            doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] },
            doc! { "findAndModify": "c", "query": {}, "update": { "a": 1 }, "upsert": true },
            doc! { "create": "c" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
        ] {
            assert_eq!(c.err(there(command)).await, no_write);
        }
        let no_read = (73, "Invalid collection name specified '$external.c".to_owned());
        for command in [doc! { "find": "c" }, doc! { "count": "c" }, doc! { "distinct": "c", "key": "a" }] {
            assert_eq!(c.err(there(command)).await, no_read);
        }
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let rename = doc! { "renameCollection": "test.c", "to": "$external.c", "$db": "admin" };
        let text = "error with target namespace: Invalid namespace: $external.c".to_owned();
        assert_eq!(c.err(rename).await, (20, text));
        let out = there(
            doc! { "aggregate": "c", "pipeline": [{ "$out": { "db": "$external", "coll": "d" } }], "cursor": {} },
        );
        assert_ne!(c.run(out).await.get("ok"), Some(&Bson::Double(1.0)));
        for stage in [
            doc! { "$out": { "db": "$external", "coll": "d" } },
            doc! { "$merge": { "into": { "db": "$external", "coll": "d" } } },
        ] {
            let reply = c.run(doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} }).await;
            assert_eq!(reply.get("code").and_then(|v| v.as_i64()), Some(73), "{reply:?}");
        }
    });
}

#[test]
fn a_name_with_a_nul_is_told_behind_the_arguments_of_commands_that_are_read_first() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let name = "a\0b";
        for (command, wanted) in [
            (doc! { "delete": name }, 40414),
            (doc! { "delete": name, "deletes": [{ "q": {}, "limit": 3 }] }, 9),
            (doc! { "delete": name, "deletes": [{ "q": {}, "limit": 1 }] }, 73),
            (doc! { "insert": name, "documents": [{ "_id": 1 }], "nope": 1 }, 40415),
            (doc! { "update": name }, 40414),
            (doc! { "create": name, "capped": "x" }, 14),
            (doc! { "create": name }, 73),
            (doc! { "drop": name, "nope": 1 }, 40415),
            (doc! { "createIndexes": name }, 40414),
            (doc! { "dropIndexes": name, "index": 4 }, 14),
            (doc! { "listIndexes": name, "cursor": 1 }, 14),
            (doc! { "killCursors": name }, 40414),
            (doc! { "findAndModify": name, "nope": 1 }, 40415),
            (doc! { "findAndModify": name, "remove": true }, 73),
            (doc! { "find": name, "nope": 1 }, 73),
            (doc! { "aggregate": name }, 73),
            (doc! { "distinct": name }, 73),
            (doc! { "collMod": name, "nope": 1 }, 73),
        ] {
            assert_eq!(code(&c.run(command.clone()).await), wanted, "{command:?}");
        }
    });
}

#[test]
fn the_target_of_results_is_looked_for_before_places_of_stages_and_variables() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let merge = |on: &str| doc! { "$merge": { "into": "d", "on": on, "let": { "x": 1 }, "whenMatched": "replace" } };
        let within = |stage: Document| Bson::Array(vec![stage.into()]);
        let plain = || doc! { "$merge": { "into": "d", "on": "u" } };
        for (stages, wanted) in [
            (vec![merge("_id")], 51199),
            (vec![merge("u")], 51183),
            (vec![plain(), doc! { "$match": {} }], 51183),
            (vec![plain(), doc! { "$nope": {} }], 40324),
            (vec![doc! { "$out": "e" }, plain()], 51183),
            (vec![doc! { "$unionWith": { "coll": "c", "pipeline": within(plain()) } }], 51183),
            (vec![doc! { "$lookup": { "from": "c", "as": "x", "pipeline": within(plain()) } }], 51183),
            (vec![doc! { "$facet": { "f": within(plain()) } }], 51183),
            (vec![doc! { "$merge": { "into": "system.x", "on": "u" } }], 51183),
            (vec![doc! { "$merge": "system.x" }], 31319),
            (vec![doc! { "$out": "system.x" }], 17385),
        ] {
            let stages = Bson::Array(stages.into_iter().map(Bson::from).collect());
            let command = doc! { "aggregate": "c", "pipeline": stages, "cursor": {} };
            assert_eq!(code(&c.run(command.clone()).await), wanted, "{command:?}");
            assert_eq!(code(&c.run(doc! { "explain": command.clone() }).await), wanted, "{command:?}");
        }
    });
}

#[test]
fn roles_and_privileges_that_are_null_are_no_lists() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for (mut command, field) in [
            (doc! { "grantRolesToUser": "u" }, "roles"),
            (doc! { "revokeRolesFromRole": "u" }, "roles"),
            (doc! { "updateUser": "u" }, "roles"),
            (doc! { "grantPrivilegesToRole": "u" }, "privileges"),
        ] {
            command.push(field, Bson::Null);
            command.push("$db", "admin");
            let text = format!("invalid parameter: expected an object ({field})");
            assert_eq!(c.err(command).await, (10065, text));
        }
    });
}

#[test]
fn a_view_is_defined_by_what_only_fails_when_it_is_read() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        c.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let wrong = || Bson::Array(vec![doc! { "$project": { "a": { "$divide": [1, 0] } } }.into()]);
        c.ok(doc! { "create": "v", "viewOn": "c", "pipeline": wrong() }).await;
        assert_eq!(code(&c.run(doc! { "find": "v" }).await), 2);
        c.ok(doc! { "collMod": "v", "viewOn": "c", "pipeline": Bson::Array(Vec::new()) }).await;
        assert_eq!(code(&c.run(doc! { "find": "v" }).await), 0);
        let nope = Bson::Array(vec![doc! { "$project": { "a": "$$nope" } }.into()]);
        let text = "Invalid pipeline for view test.w :: caused by :: Invalid $project :: caused by :: Use of undefined variable: nope";
        let create = doc! { "create": "w", "viewOn": "c", "pipeline": nope };
        assert_eq!(c.err(create).await, (17276, text.to_owned()));
    });
}

#[test]
fn results_of_a_map_reduce_go_to_no_internal_database_and_no_special_collection() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        for (out, wanted) in [
            (doc! { "replace": "d", "db": "admin" }, 115),
            (doc! { "merge": "system.x", "db": "local" }, 115),
            (doc! { "merge": "system.x" }, 31319),
            (doc! { "replace": "system.x" }, 17385),
            (doc! { "reduce": "" }, 73),
        ] {
            let command =
                doc! { "mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": out };
            assert_eq!(code(&c.run(command.clone()).await), wanted, "{command:?}");
            assert_eq!(code(&c.run(doc! { "explain": command.clone() }).await), wanted, "{command:?}");
        }
        let on_admin = doc! { "mapReduce": "c", "map": "function() {}", "reduce": "function() {}", "out": "d", "$db": "admin" };
        assert_eq!(code(&c.run(on_admin).await), 31321);
    });
}

#[test]
fn a_get_more_looks_at_the_collection_in_its_turn() {
    run(async {
        let world = World::new();
        let server = world.start_set().await;
        let mut c = server.connect().await;
        let more = |fields: [(&str, &str); 2]| {
            let mut command = doc! { "getMore": 1_i64 };
            fields.into_iter().for_each(|(name, v)| command.push(name, v));
            command
        };
        for (name, v, wanted) in [("collection", "a\0b", 73), ("collection", "", 73), ("collection", ".", 73)]
        {
            assert_eq!(code(&c.run(more([(name, v), ("nope", "")])).await), wanted);
            assert_eq!(code(&c.run(more([("nope", ""), (name, v)])).await), 40415);
        }
    });
}
