//! Read and write concerns: what a client wants to be true of the data it reads and writes.

use crate::args::safe_i64;
use pando_base::{Error, ErrorCode, OpTime, Result, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};

/// Largest `w` a client may ask for: a replica set has at most 50 members.
pub const W_MAX: i64 = pando_base::limits::REPLSET_MEMBERS_MAX as i64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadLevel {
    Local,
    Available,
    Majority,
    Linearizable,
    Snapshot,
}

impl ReadLevel {
    pub fn text(self) -> &'static str {
        match self {
            ReadLevel::Local => "local",
            ReadLevel::Available => "available",
            ReadLevel::Majority => "majority",
            ReadLevel::Linearizable => "linearizable",
            ReadLevel::Snapshot => "snapshot",
        }
    }
    pub fn named(text: &str) -> Option<ReadLevel> {
        let all = [
            ReadLevel::Local,
            ReadLevel::Available,
            ReadLevel::Majority,
            ReadLevel::Linearizable,
            ReadLevel::Snapshot,
        ];
        all.into_iter().find(|level| level.text() == text)
    }
}

/// `readConcern`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadConcern {
    /// `None` = not given (local).
    pub level: Option<ReadLevel>,
    /// Read nothing older than this.
    pub after_cluster_time: Option<Timestamp>,
    /// Read nothing older than this entry, of that very term (between members).
    pub after_op_time: Option<OpTime>,
    /// Read exactly this snapshot.
    pub at_cluster_time: Option<Timestamp>,
    /// The field was present in the command.
    pub given: bool,
    /// The level is the cluster-wide default (`setDefaultRWConcern`).
    pub by_default: bool,
}

impl ReadConcern {
    pub fn level(&self) -> ReadLevel {
        self.level.unwrap_or(ReadLevel::Local)
    }
    pub fn provenance(&self) -> Provenance {
        match (self.given, self.by_default) {
            (_, true) => Provenance::CustomDefault,
            (true, _) => Provenance::ClientSupplied,
            (false, false) => Provenance::ImplicitDefault,
        }
    }
    /// Takes the cluster-wide default over where the command says nothing (R-DWC-1). Who names a time and no level reads locally.
    pub(crate) fn or_default(&mut self, default: impl FnOnce() -> Option<ReadLevel>) {
        let silent =
            self.level.is_none() && self.after_cluster_time.is_none() && self.after_op_time.is_none();
        if silent && let Some(level) = default() {
            (self.level, self.by_default) = (Some(level), true);
        }
    }
    /// The node may have to wait before it can read so.
    #[inline]
    pub fn may_wait(&self) -> bool {
        let plain = matches!(self.level, None | Some(ReadLevel::Local | ReadLevel::Available));
        !plain || self.after_cluster_time.is_some() || self.after_op_time.is_some()
    }
    pub fn parse(v: &Value<'_>) -> Result<ReadConcern> {
        let Value::Document(doc) = v else {
            return Err(Error::failed_to_parse("readConcern field should be an object"));
        };
        let mut rc = ReadConcern { given: true, ..ReadConcern::default() };
        for e in doc.iter() {
            match (e.name(), e.value()) {
                ("level", Value::String(s)) => {
                    let unknown = || {
                        Error::failed_to_parse(
                            "readConcern.level must be either 'local', 'majority', 'linearizable', \
                             'available', or 'snapshot'",
                        )
                    };
                    rc.level = Some(ReadLevel::named(s).ok_or_else(unknown)?);
                }
                ("afterClusterTime", Value::Timestamp(t)) => rc.after_cluster_time = Some(t),
                ("atClusterTime", Value::Timestamp(t)) => rc.at_cluster_time = Some(t),
                ("afterOpTime", Value::Document(d)) => rc.after_op_time = Some(op_time(d)?),
                ("afterOpTime", v) => return Err(had_wrong_type("afterOpTime", "object", &v)),
                ("provenance", Value::Null | Value::Undefined) => {}
                ("provenance", v) => {
                    check_provenance("ReadConcernArgs::parse", &v)?;
                    // A router says what it takes where the client says nothing.
                    let is = |p: Provenance| v.as_str() == Some(p.text());
                    rc.by_default = is(Provenance::CustomDefault);
                    rc.given = !rc.by_default && !is(Provenance::ImplicitDefault);
                }
                ("allowTransactionTableSnapshot", _) => {}
                ("level", v) => return Err(had_wrong_type("level", "string", &v)),
                (name @ ("afterClusterTime" | "atClusterTime"), v) => {
                    return Err(had_wrong_type(name, "timestamp", &v));
                }
                (name, _) => {
                    return Err(Error::new(
                        ErrorCode::InvalidOptions,
                        format!("Unrecognized option in readConcern: {name}"),
                    ));
                }
            }
        }
        rc.check()?;
        Ok(rc)
    }
    fn check(&self) -> Result<()> {
        let invalid = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
        if self.after_cluster_time.is_some_and(Timestamp::is_zero) {
            return invalid("afterClusterTime cannot be a null timestamp");
        }
        if self.at_cluster_time.is_some_and(|ts| ts.secs() == 0) {
            return invalid("atClusterTime cannot be a null timestamp");
        }
        if self.at_cluster_time.is_some() {
            if self.after_cluster_time.is_some() {
                return invalid(
                    "Specifying a timestamp for readConcern snapshot in a causally consistent session is not allowed. See https://docs.mongodb.com/manual/core/read-isolation-consistency-recency/#causal-consistency",
                );
            }
            if self.level() != ReadLevel::Snapshot {
                return invalid("atClusterTime field can be set only if level is equal to snapshot");
            }
        }
        let causal = matches!(self.level(), ReadLevel::Local | ReadLevel::Majority | ReadLevel::Snapshot);
        if self.after_cluster_time.is_some() && !causal {
            return invalid(
                "afterClusterTime field can be set only if level is equal to majority, local, or snapshot",
            );
        }
        Ok(())
    }
    /// `{ readConcern: { level: "majority", provenance: "clientSupplied" } }`, as messages print it.
    pub fn shell_text(&self) -> String {
        let mut parts = Vec::new();
        if let Some(level) = self.level {
            parts.push(format!("level: \"{}\"", level.text()));
        }
        if let Some(t) = self.after_cluster_time {
            parts.push(format!("afterClusterTime: {t}"));
        }
        if let Some(t) = self.at_cluster_time {
            parts.push(format!("atClusterTime: {t}"));
        }
        parts.push("provenance: \"clientSupplied\"".to_owned());
        format!("{{ readConcern: {{ {} }} }}", parts.join(", "))
    }
}

/// `{ts, t}`.
fn op_time(d: &RawDoc) -> Result<OpTime> {
    let missing = crate::generic_args::missing_expected;
    let ts = match d.get("ts").ok_or_else(|| missing("ts"))? {
        Value::Timestamp(ts) => ts,
        v => return Err(had_wrong_type("ts", "timestamp", &v)),
    };
    let t = d.get("t").ok_or_else(|| missing("t"))?;
    match safe_i64(&t) {
        Some(term) => Ok(OpTime::new(ts, term)),
        None => Err(Error::type_mismatch(format!(
            "Expected field \"t\" to have numeric type, but found {}",
            t.type_name()
        ))),
    }
}

/// How many members must have a write.
#[derive(Clone, PartialEq, Debug)]
pub enum W {
    Nodes(i32),
    Majority,
    /// A named mode from `settings.getLastErrorModes`.
    Mode(String),
    /// Tag counts, as given.
    Tags(DocBuf),
}

/// Where a write concern came from (`provenance`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provenance {
    ClientSupplied,
    ImplicitDefault,
    CustomDefault,
    GetLastErrorDefaults,
}

impl Provenance {
    pub fn text(self) -> &'static str {
        match self {
            Provenance::ClientSupplied => "clientSupplied",
            Provenance::ImplicitDefault => "implicitDefault",
            Provenance::CustomDefault => "customDefault",
            Provenance::GetLastErrorDefaults => "getLastErrorDefaults",
        }
    }
}

/// `writeConcern`.
#[derive(Clone, PartialEq, Debug)]
pub struct WriteConcern {
    pub w: W,
    /// `w` was in the document (an empty document leaves it to the default).
    pub w_given: bool,
    pub j: Option<bool>,
    pub fsync: bool,
    /// 0 = wait for ever.
    pub wtimeout_ms: i64,
    pub provenance: Provenance,
}

impl WriteConcern {
    /// Nothing but `w`.
    pub fn of(w: W, provenance: Provenance) -> WriteConcern {
        WriteConcern { w, w_given: true, j: None, fsync: false, wtimeout_ms: 0, provenance }
    }
    /// The client does not want to hear about the outcome.
    pub fn is_unacknowledged(&self) -> bool {
        self.w == W::Nodes(0) && !self.fsync && self.j != Some(true)
    }
    pub fn parse(v: &Value<'_>) -> Result<WriteConcern> {
        let Value::Document(doc) = v else {
            return Err(had_wrong_type("writeConcern", "object", v));
        };
        let mut wc = WriteConcern::of(W::Nodes(1), Provenance::ClientSupplied);
        wc.w_given = false;
        const OWNER: &str = "WriteConcernOptions";
        if let Some(twice) = crate::request::doubled(doc) {
            return Err(crate::request::duplicate(OWNER, twice));
        }
        for e in doc.iter() {
            let v = e.value();
            match e.name() {
                "w" => {
                    wc.w = parse_w(&v)?;
                    wc.w_given = true;
                }
                "j" | "fsync" | "provenance" if matches!(v, Value::Null | Value::Undefined) => {}
                "j" => wc.j = Some(option_bool("j", &v)?),
                "fsync" => wc.fsync = option_bool("fsync", &v)?,
                "wtimeout" => {
                    wc.wtimeout_ms = match safe_i64(&v) {
                        Some(n) if n > i64::from(i32::MAX) => {
                            return Err(Error::failed_to_parse("wtimeout must be a 32-bit integer"));
                        }
                        Some(n) => n.max(0),
                        None => 0,
                    };
                }
                "provenance" => check_provenance(OWNER, &v)?,
                "wElectionId" | "wOpTime" | "getLastError" | "getlasterror" => {}
                name => return Err(crate::request::unknown(OWNER, name)),
            }
        }
        if wc.fsync && wc.j == Some(true) {
            return Err(Error::failed_to_parse("fsync and j options cannot be used together"));
        }
        Ok(wc)
    }
    /// `{w, wtimeout, provenance}` as `errInfo.writeConcern` carries it.
    pub fn append_to(&self, b: &mut DocBuilder) {
        match &self.w {
            W::Nodes(n) => b.i32("w", *n),
            W::Majority => b.str("w", "majority"),
            W::Mode(s) => b.str("w", s),
            W::Tags(tags) => b.doc("w", |d| {
                for e in tags.iter() {
                    d.i64(e.name(), safe_i64(&e.value()).unwrap_or(0));
                }
            }),
        };
        if let Some(j) = self.j {
            b.bool("j", j);
        }
        b.i32("wtimeout", self.wtimeout_ms as i32);
        b.str("provenance", self.provenance.text());
    }
}

fn parse_w(v: &Value<'_>) -> Result<W> {
    Ok(match v {
        Value::String("majority") => W::Majority,
        Value::String(s) => W::Mode((*s).to_owned()),
        // MongoDB takes null for a mode without a name.
        Value::Null | Value::Undefined => W::Mode(String::new()),
        Value::Document(tags) => parse_tags(tags)?,
        v if v.is_number() => {
            let n = safe_i64(v).unwrap_or(-1);
            if !(0..=W_MAX).contains(&n) {
                return Err(Error::failed_to_parse(format!(
                    "w has to be a non-negative number and not greater than {W_MAX}; found: {n}"
                )));
            }
            W::Nodes(n as i32)
        }
        v => {
            return Err(Error::failed_to_parse(format!(
                "w has to be a number, string, or object; found: {}",
                v.type_name()
            )));
        }
    })
}

/// Who set the concern: servers tell each other, and clients may say it too.
fn check_provenance(owner: &str, v: &Value<'_>) -> Result<()> {
    const KNOWN: [&str; 4] = ["clientSupplied", "implicitDefault", "customDefault", "getLastErrorDefaults"];
    match v {
        Value::String(s) if KNOWN.contains(s) => Ok(()),
        Value::String(s) => Err(Error::bad_value(format!(
            "Enumeration value '{s}' for field '{owner}.provenance' is not a valid value."
        ))),
        v => Err(crate::request::wrong_type(owner, "provenance", v, &["string"])),
    }
}

fn parse_tags(tags: &RawDoc) -> Result<W> {
    if tags.is_empty() {
        return Err(Error::failed_to_parse("tagged write concern requires tags"));
    }
    if let Some(bad) = tags.iter().find(|e| !e.value().is_number()) {
        return Err(Error::failed_to_parse(format!(
            "tags must be a single level document with only number values; found: {}: {}",
            bad.name(),
            bad.value()
        )));
    }
    Ok(W::Tags(tags.to_buf()))
}

fn option_bool(name: &str, v: &Value<'_>) -> Result<bool> {
    match v {
        Value::Boolean(b) => Ok(*b),
        v if v.is_number() => Ok(v.is_truthy()),
        v => Err(crate::request::wrong_type(
            "WriteConcernOptions",
            name,
            v,
            &["bool", "long", "int", "decimal", "double"],
        )),
    }
}

/// `"f" had the wrong type. Expected string, found int` (code 14).
pub fn had_wrong_type(field: &str, expected: &str, found: &Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "\"{field}\" had the wrong type. Expected {expected}, found {}",
        found.type_name()
    ))
}

/// A write concern that could not be met: the write stays, the reply carries `writeConcernError`.
#[derive(Clone, Debug)]
pub struct WriteConcernError {
    pub code: ErrorCode,
    pub message: String,
    /// `errInfo` (usually `{writeConcern: ..}` and `wtimeout: true`).
    pub info: Option<DocBuf>,
}

impl WriteConcernError {
    /// `wtimeout` ended the wait.
    pub fn is_timeout(&self) -> bool {
        self.info.as_ref().is_some_and(|info| info.get("wtimeout").is_some_and(|v| v.is_truthy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Bson, Document, doc};

    fn wc(d: Document) -> Result<WriteConcern> {
        WriteConcern::parse(&Value::Document(&d.to_raw()))
    }
    fn rc(d: Document) -> Result<ReadConcern> {
        ReadConcern::parse(&Value::Document(&d.to_raw()))
    }

    #[test]
    fn bad_write_concerns_get_mongodb_codes() {
        for (d, code, text) in [
            (doc! { "w": 51 }, 9, "w has to be a non-negative number and not greater than 50; found: 51"),
            (doc! { "w": -1 }, 9, "w has to be a non-negative number and not greater than 50; found: -1"),
            (doc! { "w": true }, 9, "w has to be a number, string, or object; found: bool"),
            (doc! { "w": {} }, 9, "tagged write concern requires tags"),
            (doc! { "fsync": 1, "j": 1 }, 9, "fsync and j options cannot be used together"),
            (doc! { "foo": 1 }, 40415, "BSON field 'WriteConcernOptions.foo' is an unknown field."),
            (
                doc! { "provenance": "x" },
                2,
                "Enumeration value 'x' for field 'WriteConcernOptions.provenance' is not a valid value.",
            ),
            (
                doc! { "w": { "dc": "x" } },
                9,
                "tags must be a single level document with only number values; found: dc: \"x\"",
            ),
            (doc! { "wtimeout": 1_000_000_000_000i64 }, 9, "wtimeout must be a 32-bit integer"),
        ] {
            let e = wc(d).unwrap_err();
            assert_eq!((e.code.0, &*e.message), (code, text));
        }
        assert!(wc(doc! { "w": 0 }).unwrap().is_unacknowledged());
        assert!(!wc(doc! { "w": 0, "j": true }).unwrap().is_unacknowledged());
        assert_eq!(wc(doc! { "j": Bson::Null, "fsync": Bson::Null }).unwrap().j, None);
        assert_eq!(wc(doc! { "w": "majority" }).unwrap().w, W::Majority);
    }

    #[test]
    fn bad_read_concerns_get_mongodb_codes() {
        assert_eq!(rc(doc! { "level": "foo" }).unwrap_err().code, ErrorCode::FailedToParse);
        assert_eq!(rc(doc! { "level": 1 }).unwrap_err().code, ErrorCode::TypeMismatch);
        assert_eq!(rc(doc! { "foo": 1 }).unwrap_err().code, ErrorCode::InvalidOptions);
        let r = rc(doc! { "level": "majority" }).unwrap();
        assert_eq!(
            r.shell_text(),
            "{ readConcern: { level: \"majority\", provenance: \"clientSupplied\" } }"
        );
    }
}
