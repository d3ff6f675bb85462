//! `settings` of a configuration: reading and writing them. What they say of periods is read in `periods`.

use crate::config::{Field, invalid};
use pando_base::Result;
use pando_bson::{Bson, DocBuilder, Document, ElementType, ObjectId, RawDoc, Value};

/// `settings`.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    pub chaining_allowed: bool,
    pub heartbeat_interval_ms: i64,
    pub heartbeat_timeout_secs: i64,
    pub election_timeout_ms: i64,
    /// -1 = no limit.
    pub catch_up_timeout_ms: i64,
    /// -1 = no takeover.
    pub catch_up_takeover_delay_ms: i64,
    pub get_last_error_modes: Document,
    pub get_last_error_defaults: Document,
    pub replica_set_id: Option<ObjectId>,
}

impl Default for Settings {
    fn default() -> Settings {
        let mut defaults = Document::new();
        defaults.push("w", 1);
        defaults.push("wtimeout", 0);
        Settings {
            chaining_allowed: true,
            heartbeat_interval_ms: 2000,
            heartbeat_timeout_secs: 10,
            election_timeout_ms: 10_000,
            catch_up_timeout_ms: -1,
            catch_up_takeover_delay_ms: 30_000,
            get_last_error_modes: Document::new(),
            get_last_error_defaults: defaults,
            replica_set_id: None,
        }
    }
}

impl Settings {
    pub(crate) fn parse(doc: &RawDoc) -> Result<Settings> {
        const OWNER: &str = "ReplSetConfigSettings";
        let mut s = Settings::default();
        for e in doc.iter().filter(|e| !matches!(e.ty, ElementType::Null | ElementType::Undefined)) {
            let f = Field { owner: OWNER, e };
            match e.name() {
                "chainingAllowed" => s.chaining_allowed = f.boolish()?,
                "heartbeatIntervalMillis" => s.heartbeat_interval_ms = f.more_than_zero()?,
                "heartbeatTimeoutSecs" => s.heartbeat_timeout_secs = f.more_than_zero()?,
                "electionTimeoutMillis" => s.election_timeout_ms = f.more_than_zero()?,
                "catchUpTimeoutMillis" => s.catch_up_timeout_ms = f.at_least(-1)?,
                "catchUpTakeoverDelayMillis" => s.catch_up_takeover_delay_ms = f.at_least(-1)?,
                "getLastErrorModes" => s.get_last_error_modes = Document::from(f.doc()?),
                "getLastErrorDefaults" => s.get_last_error_defaults = last_error_defaults(f.doc()?)?,
                "replicaSetId" => match e.value() {
                    Value::ObjectId(id) => s.replica_set_id = Some(id),
                    _ => return Err(f.wrong(&["objectId"])),
                },
                // MongoDB accepts unknown settings so that older members can read newer documents.
                _ => {}
            }
        }
        Ok(s)
    }

    pub(crate) fn append_to(&self, b: &mut DocBuilder) {
        b.bool("chainingAllowed", self.chaining_allowed);
        for (name, n) in [
            ("heartbeatIntervalMillis", self.heartbeat_interval_ms),
            ("heartbeatTimeoutSecs", self.heartbeat_timeout_secs),
            ("electionTimeoutMillis", self.election_timeout_ms),
            ("catchUpTimeoutMillis", self.catch_up_timeout_ms),
            ("catchUpTakeoverDelayMillis", self.catch_up_takeover_delay_ms),
        ] {
            match i32::try_from(n) {
                Ok(n) => b.i32(name, n),
                Err(_) => b.i64(name, n),
            };
        }
        b.doc("getLastErrorModes", |d| d.document(&self.get_last_error_modes));
        b.doc("getLastErrorDefaults", |d| d.document(&self.get_last_error_defaults));
        if let Some(id) = self.replica_set_id {
            b.object_id("replicaSetId", id);
        }
    }
}

/// Anything but the neutral default is refused since 5.0: defaults live in `setDefaultRWConcern`.
fn last_error_defaults(doc: &RawDoc) -> Result<Document> {
    let neutral = doc.iter().all(|e| match e.name() {
        "w" => e.value().as_i64() == Some(1),
        "wtimeout" => e.value().as_i64() == Some(0),
        "j" | "fsync" => !e.value().is_truthy(),
        _ => false,
    });
    if !neutral {
        return Err(invalid(
            "Failed to parse replica set config: 'getLastErrorDefaults' other than {w: 1, wtimeout: 0} is not \
             supported; use setDefaultRWConcern instead",
        ));
    }
    let mut d = Document::new();
    d.push("w", 1);
    d.push("wtimeout", Bson::Int32(0));
    Ok(d)
}
