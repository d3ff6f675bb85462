//! Commands that change the server or the set: typed fields with the ends of their ranges.

use super::kind::{F, K, may, need};
use super::{Gen, Group, values};
use pando_base::Timestamp;
use pando_bson::{Bson, Document, doc};
use pando_command::COMMANDS;
use pando_command::fail_point;
use pando_command::params::Params;
use pando_request::declare::table::arguments_of;
use pando_request::session::sessions::Listed;

const BOOL: K = K::CBool;
const NUM: K = K::CNum;
const OP_TIME: K = K::Spec(&[need!("ts", K::CTs), need!("t", NUM)]);
const MEMBER: K = K::Spec(&[
    need!("_id", NUM),
    need!("host", K::Word(&["127.0.0.1:1", "x", "", "127.0.0.1:99999", "a:b:c"])),
    may!("priority", NUM),
    may!("votes", NUM),
    may!("arbiterOnly", BOOL),
    may!("hidden", BOOL),
    may!("buildIndexes", BOOL),
    may!("secondaryDelaySecs", NUM),
    may!("tags", K::CObj),
]);
const SETTINGS: K = K::Spec(&[
    may!("heartbeatIntervalMillis", NUM),
    may!("electionTimeoutMillis", NUM),
    may!("catchUpTimeoutMillis", NUM),
    may!("catchUpTakeoverDelayMillis", NUM),
    may!("chainingAllowed", BOOL),
    may!("getLastErrorModes", K::CObj),
    may!("getLastErrorDefaults", K::WriteConcern),
    may!("replicaSetId", K::CAny),
    may!("heartbeatTimeoutSecs", NUM),
]);
const CONFIG: K = K::Spec(&[
    need!("_id", K::Word(&["rs", "rs", "x", ""])),
    need!("version", NUM),
    may!("term", NUM),
    need!("members", K::List(&MEMBER)),
    may!("protocolVersion", NUM),
    may!("settings", SETTINGS),
    may!("configsvr", BOOL),
    may!("writeConcernMajorityJournalDefault", BOOL),
]);
const POSITIONS: K = K::List(&K::Spec(&[
    need!("memberId", NUM),
    need!("durableOpTime", OP_TIME),
    may!("durableWallTime", K::CDate),
    need!("appliedOpTime", OP_TIME),
    may!("appliedWallTime", K::CDate),
    may!("cfgver", NUM),
]));
/// Command, first argument, arguments; those that the server declares as a table are drawn from there beside.
#[rustfmt::skip]
const FORMS: &[(&str, K, &[F])] = &[
    ("replSetHeartbeat", K::Word(&["rs", "rs", "x"]), &[
        may!("configVersion", NUM), may!("configTerm", NUM), may!("hbv", NUM), may!("from", K::Word(&["127.0.0.1:1", "", "x:y"])),
        may!("fromId", NUM), may!("term", NUM), may!("primaryId", NUM), may!("lostPrimary", NUM), may!("checkEmpty", BOOL),
    ]),
    ("replSetRequestVotes", K::N(1), &[
        need!("setName", K::Word(&["rs", "rs", "x"])), may!("dryRun", BOOL), need!("term", NUM), need!("candidateIndex", NUM),
        need!("configVersion", NUM), may!("configTerm", NUM), need!("lastAppliedOpTime", OP_TIME), may!("lastWrittenOpTime", OP_TIME),
    ]),
    ("replSetUpdatePosition", K::N(1), &[need!("optimes", POSITIONS), may!("$replData", K::CObj)]),
    ("replSetStepDown", NUM, &[may!("secondaryCatchUpPeriodSecs", NUM), may!("force", BOOL)]),
    ("replSetStepUp", K::N(1), &[may!("skipDryRun", BOOL)]),
    ("replSetFreeze", NUM, &[]),
    ("replSetMaintenance", K::CAny, &[]),
    ("replSetReconfig", CONFIG, &[may!("force", BOOL), may!("maxTimeMS", K::N(100))]),
    ("replSetInitiate", CONFIG, &[]),
    ("replSetSyncFrom", K::CStr, &[]),
    ("replSetResizeOplog", K::N(1), &[may!("size", NUM), may!("minRetentionHours", NUM)]),
    ("replSetGetConfig", K::N(1), &[may!("commitmentStatus", BOOL), may!("$_internalIncludeNewlyAdded", BOOL)]),
    ("replSetGetStatus", K::N(1), &[may!("initialSync", NUM)]),
    ("replSetAbortPrimaryCatchUp", K::N(1), &[]),
    ("appendOplogNote", K::N(1), &[need!("data", K::CObj), may!("maxClusterTime", K::CTs)]),
    ("fsync", K::N(1), &[may!("lock", BOOL), may!("async", BOOL), may!("fsyncLockAcquisitionTimeoutMillis", NUM)]),
    ("profile", NUM, &[]),
    ("killOp", K::N(1), &[]),
    ("killSessions", K::N(1), &[]),
    ("endSessions", K::N(1), &[]),
    ("refreshSessions", K::N(1), &[]),
    ("killAllSessions", K::N(1), &[]),
    ("killAllSessionsByPattern", K::N(1), &[]),
    ("commitTransaction", K::N(1), &[need!("lsid", K::SessionId), need!("txnNumber", NUM), need!("autocommit", BOOL)] ),
    ("abortTransaction", K::N(1), &[need!("lsid", K::SessionId), need!("txnNumber", NUM), need!("autocommit", BOOL)]),
    ("prepareTransaction", K::N(1), &[need!("lsid", K::SessionId), need!("txnNumber", NUM), need!("autocommit", BOOL)]),
    ("setDefaultRWConcern", K::N(1), &[may!("defaultReadConcern", K::ReadConcern), may!("defaultWriteConcern", K::WriteConcern), may!("comment", K::CAny)]),
    ("setFeatureCompatibilityVersion", K::Word(&["7.0", "6.0", "5.0", "latest", ""]), &[]),
    ("logRotate", K::OneOf(&[K::N(1), K::Word(&["server", "audit", "x"])]), &[may!("comment", K::CAny)]),
    ("_openBackup", K::N(1), &[may!("backup", K::CAny), may!("timeout", NUM)]),
    ("_readBackup", K::OneOf(&[NUM, K::CAny]), &[need!("file", K::Word(&["", "../x", "/etc/passwd", "tables", "log"])), need!("offset", NUM), may!("length", NUM)]),
    ("_closeBackup", K::CAny, &[]),
    ("_keptSessions", K::N(1), &[may!("after", K::CAny), may!("batchSize", NUM)]),
    ("_takeInCollections", K::CUuid, &[need!("donor", K::CStr), need!("backup", NUM)]),
    ("_importCollections", K::CUuid, &[]),
    ("_forgetImport", K::CUuid, &[need!("upto", K::CTs)]),
    ("_demoWorkflow", K::Word(&["start", "nudge", "await", "x"]), &[may!("to", NUM), may!("id", K::CAny)]),
    ("dropConnections", K::N(1), &[need!("hostAndPort", K::List(&K::CStr))]),
    ("applyOps", K::List(&K::CObj), &[]),
    ("setIndexCommitQuorum", K::Coll, &[need!("indexNames", K::List(&K::IndexName)), need!("commitQuorum", K::OneOf(&[NUM, K::CStr]))]),
    ("voteAbortIndexBuild", K::CUuid, &[need!("hostAndPort", K::CStr), need!("reason", K::CStr)]),
    ("voteCommitIndexBuild", K::CUuid, &[need!("hostAndPort", K::CStr)]),
    ("setClusterParameter", K::Map(&K::CObj), &[]),
    ("setUserWriteBlockMode", K::N(1), &[]),
    ("setCommittedSnapshot", K::CTs, &[]),
    ("hello", K::N(1), &[may!("topologyVersion", K::Spec(&[need!("processId", K::CAny), need!("counter", NUM)])), may!("maxAwaitTimeMS", K::N(1)), may!("hostInfo", K::CAny), may!("client", K::CObj), may!("compression", K::CArr), may!("loadBalanced", BOOL)]),
    ("isMaster", K::N(1), &[may!("helloOk", K::CAny), may!("saslSupportedMechs", K::CAny), may!("speculativeAuthenticate", K::CObj)]),
    ("waitForFailPoint", K::Word(&["failCommand", "x"]), &[need!("timesEntered", NUM), need!("maxTimeMS", K::N(5))]),
    ("sleep", K::N(1), &[need!("millis", K::OneOf(&[K::N(1), K::N(3)])), may!("lock", K::Word(&["r", "w", "none", "x"]))]),
];

/// The server would be gone, or its data.
const NOT_HERE: &[&str] = &["shutdown", "resync"];

impl Gen {
    /// One of the commands that ordinary programs leave alone, or one of theirs on this server.
    pub(super) fn admin_command(&mut self) -> Document {
        let names: Vec<&'static str> = COMMANDS
            .iter()
            .map(|c| c.name)
            .filter(|n| super::commands::is_admin(n) && !NOT_HERE.contains(n))
            .collect();
        let name = self.rng.pick(&names);
        self.admin_named(name)
    }

    pub(super) fn admin_named(&mut self, name: &'static str) -> Document {
        self.drawn.push((Group::Command, name));
        match name {
            "setParameter" => self.set_parameter(),
            "configureFailPoint" => self.fail_point(),
            _ => match FORMS.iter().find(|f| f.0 == name) {
                Some((_, first, fields)) if !self.rng.once_in(10) => {
                    let first = match Listed::ALL.iter().find(|l| l.command() == name) {
                        Some(list) => self.listed(list),
                        None => self.value(*first, 1),
                    };
                    let mut d = Document::from(vec![(name.to_owned(), first)]);
                    let own =
                        arguments_of(name).map(|table| self.declared(table, false, 1)).unwrap_or_default();
                    let form = self.form(fields, 1).as_doc().cloned().unwrap_or_default();
                    for (k, v) in own.into_iter().chain(form) {
                        if !d.contains(&k) {
                            d.push(k, v);
                        }
                    }
                    d
                }
                _ => self.anything(name),
            },
        }
    }

    fn set_parameter(&mut self) -> Document {
        let params = Params::new();
        let rows: Vec<_> = params.rows().collect();
        let row = rows[self.rng.below(rows.len())];
        let v = match self.rng.below(4) {
            // As it is: a value that fits.
            0 => params.get(&row),
            1 => values::any(&mut self.rng, 1),
            _ => self.extreme(),
        };
        let mut d = doc! { "setParameter": 1 };
        d.push(row.name, v);
        d
    }

    fn fail_point(&mut self) -> Document {
        let name = self.rng.pick(fail_point::NAMES);
        let mode = match self.rng.below(5) {
            0 => Bson::from(self.rng.pick(&["off", "alwaysOn", "x"])),
            1 => doc! { "times": self.extreme() }.into(),
            2 => doc! { "skip": self.extreme() }.into(),
            3 => doc! { "activationProbability": self.extreme() }.into(),
            _ => values::any(&mut self.rng, 1),
        };
        let mut d = doc! { "configureFailPoint": name, "mode": mode };
        if self.rng.percent(60) {
            let mut data = doc! { "failCommands": Bson::Array(vec!["ping".into()]) };
            for field in
                ["errorCode", "closeConnection", "blockConnection", "blockTimeMS", "errorLabels", "namespace"]
            {
                if self.rng.percent(25) {
                    let v = self.extreme();
                    data.push(field, if field == "blockTimeMS" { Bson::Int32(1) } else { v });
                }
            }
            d.push("data", data);
        }
        d
    }

    /// A number from the ends of ranges; a timestamp now and then.
    fn extreme(&mut self) -> Bson {
        match self.rng.below(12) {
            0 => Bson::Timestamp(Timestamp::new(u32::MAX, u32::MAX)),
            1 => values::any(&mut self.rng, 0),
            2 => Bson::Int64(i64::MAX),
            3 => Bson::Int64(i64::MIN),
            4 => Bson::Boolean(self.rng.percent(50)),
            _ => values::number(&mut self.rng),
        }
    }
}
