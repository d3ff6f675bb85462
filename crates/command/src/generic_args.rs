//! The arguments every command accepts: one walk over the body before the handler runs.

use crate::client_metadata;
use crate::cluster_time::Signature;
use crate::concern::{ReadConcern, WriteConcern, had_wrong_type};
use crate::on_behalf_of::OnBehalfOf;
use crate::request::{missing, unknown, wrong_type};
use pando_base::session_id::NO_USER_DIGEST;
use pando_base::{Error, ErrorCode, Result, Timestamp, limits};
use pando_bson::fields::Names;
use pando_bson::shape::{Field, Shape, check_fields};
use pando_bson::{Bson, DocBuf, RawDoc, Value};
use pando_routing::{ChunkVersion, DatabaseVersion, Generation, Placement};

pub use pando_base::SessionId;

/// `$readPreference.mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReadMode {
    #[default]
    Primary,
    PrimaryPreferred,
    Secondary,
    SecondaryPreferred,
    Nearest,
}

/// `apiVersion` and friends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ApiParams {
    /// `apiVersion: "1"` was given (no other version exists).
    pub v1: bool,
    pub strict: bool,
    pub deprecation_errors: bool,
}

/// What the pipeline understood of the command's envelope.
#[derive(Clone, Debug, Default)]
pub struct GenericArgs {
    pub read_concern: ReadConcern,
    /// `None` = not given: the default applies.
    pub write_concern: Option<WriteConcern>,
    /// `None` or 0 = no limit.
    pub max_time_ms: Option<i64>,
    pub lsid: Option<SessionId>,
    pub txn_number: Option<i64>,
    /// Only ever `Some(false)`: a statement of a transaction.
    pub autocommit: Option<bool>,
    pub start_transaction: bool,
    /// The newest cluster time the client has seen.
    pub cluster_time: Option<(Timestamp, Signature)>,
    pub read_mode: ReadMode,
    /// `$readPreference` was present.
    pub read_pref_given: bool,
    pub comment: Option<Bson>,
    pub api: ApiParams,
    /// `$client` metadata of another server's client, kept for logs.
    pub client: Option<DocBuf>,
    /// What is wrong with the time limit or a concern, or that a router means a shard, which this server is not. A command
    /// that reads its own arguments first tells of those before it tells of this.
    pub late: Option<Error>,
    /// What is wrong with the write concern: told late too, and only where the command takes one.
    pub wrong_write_concern: Option<Error>,
    /// `shardVersion`, `databaseVersion`: who owns what as the sender believes.
    pub shard_version: Option<ChunkVersion>,
    pub database_version: Option<DatabaseVersion>,
    /// `$configTime`, `$topologyTime`: what the sender has heard of the cluster's metadata.
    pub config_time: Option<Timestamp>,
    pub topology_time: Option<Timestamp>,
    /// `$audit`: from another server, on whose behalf it asks. Of anybody else it is looked at and not believed.
    pub on_behalf_of: Option<Box<OnBehalfOf>>,
    /// `mayBypassWriteBlocking`: from another server, whose client may write where users may not.
    pub may_bypass_write_blocking: Option<bool>,
    /// `$replData`: another member wants to know how this one is doing (R-META-1).
    pub wants_repl_data: bool,
    /// `$oplogQueryData`: the same, for one that follows this member's oplog (R-META-2).
    pub wants_oplog_query_data: bool,
}

impl GenericArgs {
    /// A statement of a multi-document transaction.
    pub fn in_txn(&self) -> bool {
        self.autocommit == Some(false)
    }
    /// A retryable write (number without a transaction).
    pub fn is_retryable_write(&self) -> bool {
        self.txn_number.is_some() && self.autocommit.is_none()
    }

    /// Reads all generic arguments of `body`; the first element (the command itself) is skipped. What is wrong with one of them `waits`
    /// until the command has looked at its own arguments, but for the version of the API.
    /// `of_server`: another server sent it.
    pub fn parse(body: &RawDoc, waits: bool, of_server: bool) -> Result<GenericArgs> {
        let twice = |name: &str| crate::request::duplicate("APIParametersFromClient", name);
        let mut reading = Reading { waits, of_server, ..Reading::default() };
        let mut names = Names::default();
        for (i, e) in body.iter().enumerate() {
            if !names.is_new(e.name_bytes()) {
                return Err(twice(e.name()));
            }
            if i == 0 || !is_generic(e.name_bytes()) {
                continue;
            }
            match reading.take(e.name(), e.value(), body) {
                Err(wrong) if waits && !e.name().starts_with("api") => {
                    reading.waiting.push((rank(e.name()), wrong))
                }
                // A name that comes twice is told before anything else.
                Err(wrong) => return Err(crate::request::doubled(body).map_or(wrong, twice)),
                Ok(()) => {}
            }
        }
        reading.finish()
    }

    fn check_session_fields(&mut self, start: Option<bool>) -> Result<()> {
        let invalid = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
        if self.txn_number.is_some() && self.lsid.is_none() {
            return invalid("Transaction number requires a session ID to also be specified");
        }
        if self.txn_number.is_some_and(|n| n < 0) {
            return invalid("Transaction number cannot be negative");
        }
        if self.autocommit.is_some() && self.txn_number.is_none() {
            return invalid("'autocommit' field requires a transaction number to also be specified");
        }
        if self.autocommit == Some(true) {
            return invalid("Specifying autocommit=true is not allowed.");
        }
        if start.is_some() && self.autocommit.is_none() {
            return invalid("'startTransaction' field requires 'autocommit' field to also be specified");
        }
        if start == Some(false) {
            return invalid("Specifying startTransaction=false is not allowed.");
        }
        self.start_transaction = start == Some(true);
        Ok(())
    }
}

/// True for names that belong to the envelope of every command.
pub fn is_generic(name: &[u8]) -> bool {
    matches!(
        name,
        b"$db"
            | b"lsid"
            | b"$clusterTime"
            | b"txnNumber"
            | b"autocommit"
            | b"startTransaction"
            | b"stmtId"
            | b"stmtIds"
            | b"readConcern"
            | b"writeConcern"
            | b"maxTimeMS"
            | b"maxTimeMSOpOnly"
            | b"$readPreference"
            | b"comment"
            | b"apiVersion"
            | b"apiStrict"
            | b"apiDeprecationErrors"
            | b"$audit"
            | b"$client"
            | b"$configServerState"
            | b"$configTime"
            | b"$topologyTime"
            | b"$queryOptions"
            | b"$replData"
            | b"$oplogQueryData"
            | b"$gleStats"
            | b"allowImplicitCollectionCreation"
            | b"clientOperationKey"
            | b"coordinator"
            | b"databaseVersion"
            | b"mayBypassWriteBlocking"
            | b"operationTime"
            | b"shardVersion"
            | b"tracking_info"
            | b"txnRetryCounter"
    )
}

/// The order in which fields of the envelope that are wrong are told.
fn rank(name: &str) -> u8 {
    match name {
        "$readPreference" => 0,
        "lsid" | "txnNumber" | "autocommit" | "startTransaction" | "coordinator" => 2,
        _ => 1,
    }
}

/// What has been read so far, and what is wrong with it that is told later.
#[derive(Default)]
struct Reading {
    args: GenericArgs,
    api: ApiSeen,
    /// `startTransaction`, as given.
    start: Option<bool>,
    wrong_txn_number: Option<Error>,
    /// What is wrong with other fields waits, too: each has its rank.
    waits: bool,
    of_server: bool,
    waiting: Vec<(u8, Error)>,
    wrong_limit: Option<Error>,
    wrong_read_concern: Option<Error>,
}

impl Reading {
    fn take(&mut self, name: &str, v: Value<'_>, body: &RawDoc) -> Result<()> {
        match name {
            "lsid" | "txnNumber" | "autocommit" | "startTransaction" | "coordinator" => {
                self.session(name, v)?
            }
            "$clusterTime" => self.args.cluster_time = Some(parse_cluster_time(&v)?),
            "readConcern" | "writeConcern" | "maxTimeMS" => self.told_late(name, v, body),
            // How long the server waits that has sent it, whose client may wait longer.
            "maxTimeMSOpOnly" if self.of_server => self.args.max_time_ms = Some(parse_max_time_ms(&v)?),
            "maxTimeMSOpOnly" => {
                return Err(Error::new(
                    ErrorCode::InvalidOptions,
                    "Can not specify maxTimeMSOpOnly for non internal clients",
                ));
            }
            "$readPreference" => {
                self.args.read_mode = parse_read_preference(&v)?;
                self.args.read_pref_given = true;
            }
            "comment" => self.args.comment = Some(v.into()),
            "apiVersion" | "apiStrict" | "apiDeprecationErrors" => self.api.take(name, v)?,
            _ => self.of_servers(name, v)?,
        }
        Ok(())
    }

    fn session(&mut self, name: &str, v: Value<'_>) -> Result<()> {
        const OWNER: &str = "OperationSessionInfo";
        match (name, v) {
            (_, Value::Null | Value::Undefined) => {}
            ("lsid", v) => self.args.lsid = Some(parse_lsid(&v)?),
            ("txnNumber", Value::Int64(n)) => self.args.txn_number = Some(n),
            ("txnNumber", v) if self.waits => return Err(wrong_type(OWNER, name, &v, &["long"])),
            ("txnNumber", v) => self.wrong_txn_number = Some(wrong_type(OWNER, name, &v, &["long"])),
            ("autocommit", Value::Boolean(b)) => self.args.autocommit = Some(b),
            ("startTransaction", Value::Boolean(b)) => self.start = Some(b),
            (_, v) => Shape::Bool.check(&format!("{OWNER}.{name}"), &v)?,
        }
        Ok(())
    }

    /// What is wrong here waits until the command has looked at its own arguments.
    fn told_late(&mut self, name: &str, v: Value<'_>, body: &RawDoc) {
        match name {
            "readConcern" => match ReadConcern::parse(&v) {
                Ok(rc) => self.args.read_concern = rc,
                Err(e) => self.wrong_read_concern = Some(e),
            },
            "writeConcern" => match parse_write_concern(&v, body) {
                Ok(wc) => self.args.write_concern = Some(wc),
                Err(e) => self.args.wrong_write_concern = Some(e),
            },
            _ => match parse_max_time_ms(&v) {
                Ok(ms) => self.args.max_time_ms = Some(ms),
                Err(e) => {
                    let is_get_more = body.first().is_some_and(|e| e.name() == "getMore");
                    let of_its_own = is_get_more && !v.is_number() && is_given(&v);
                    let told = || wrong_type("getMore", "maxTimeMS", &v, crate::args::NUMBERS);
                    self.wrong_limit = Some(if of_its_own { told() } else { e });
                }
            },
        }
    }

    /// What servers say to each other.
    fn of_servers(&mut self, name: &str, v: Value<'_>) -> Result<()> {
        match name {
            "$replData" => self.args.wants_repl_data = true,
            "$oplogQueryData" => self.args.wants_oplog_query_data = true,
            "$client" => self.args.client = Some(client_metadata::check(v)?.0.to_buf()),
            "databaseVersion" | "shardVersion" => {
                check_version(name, &v)?;
                match name {
                    "shardVersion" => self.args.shard_version = Some(shard_version(&v)?),
                    _ => self.args.database_version = Some(DatabaseVersion::parse_argument(&v)?),
                }
            }
            "$configTime" => self.args.config_time = timestamp(&v),
            "$topologyTime" => self.args.topology_time = timestamp(&v),
            "mayBypassWriteBlocking" => match v {
                Value::Boolean(b) => self.args.may_bypass_write_blocking = Some(b),
                _ => {
                    let found = v.type_name();
                    let text = format!("wrong type for field (mayBypassWriteBlocking) {found} != bool");
                    return Err(Error::location(13111, text));
                }
            },
            "$audit" => {
                check_audit(&v)?;
                if self.of_server {
                    self.args.on_behalf_of = v.as_doc().and_then(OnBehalfOf::parse).map(Box::new);
                }
            }
            "$queryOptions" if !matches!(v, Value::Document(_)) => {
                return Err(Error::type_mismatch("Expected field $queryOptionsto be of type object"));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<GenericArgs> {
        let Reading { mut args, api, start, mut wrong_txn_number, mut waiting, .. } = self;
        // What makes a transaction cannot wait until the command has looked at its own arguments.
        if let Some(e) = wrong_txn_number.take_if(|_| args.autocommit.is_some() || start.is_some()) {
            return Err(e);
        }
        args.api = api.check()?;
        waiting.sort_by_key(|(rank, _)| *rank);
        let wrong_session = match waiting.into_iter().next() {
            Some((_, e)) => Some(e),
            None => args.check_session_fields(start).err(),
        };
        if wrong_session.is_some() {
            // Nothing is done for a session that is not well described.
            (args.txn_number, args.autocommit) = (None, None);
        }
        args.late = wrong_session.or(wrong_txn_number).or(self.wrong_limit).or(self.wrong_read_concern);
        Ok(args)
    }
}

#[derive(Default)]
struct ApiSeen {
    version: Option<String>,
    strict: Option<bool>,
    deprecation_errors: Option<bool>,
}

impl ApiSeen {
    fn take(&mut self, name: &str, v: Value<'_>) -> Result<()> {
        match (name, v) {
            (_, Value::Null | Value::Undefined) => {}
            ("apiVersion", Value::String(s)) => self.version = Some(s.to_owned()),
            ("apiVersion", v) => return Err(api_type(name, &v, "string")),
            ("apiStrict", Value::Boolean(b)) => self.strict = Some(b),
            (_, Value::Boolean(b)) => self.deprecation_errors = Some(b),
            (_, v) => return Err(api_type(name, &v, "bool")),
        }
        Ok(())
    }
    fn check(self) -> Result<ApiParams> {
        match self.version.as_deref() {
            None if self.strict.is_some() || self.deprecation_errors.is_some() => Err(Error::location(
                4_886_600,
                "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion",
            )),
            None => Ok(ApiParams::default()),
            Some("1") => Ok(ApiParams {
                v1: true,
                strict: self.strict == Some(true),
                deprecation_errors: self.deprecation_errors == Some(true),
            }),
            Some(other) => match other.parse::<i32>() {
                Ok(n) => {
                    Err(Error::new(ErrorCode::APIVersionError, format!("Cannot accept API version {n}")))
                }
                Err(_) => Err(Error::new(ErrorCode::APIVersionError, "API version must be \"1\"")),
            },
        }
    }
}

fn api_type(name: &str, v: &Value<'_>, expected: &str) -> Error {
    wrong_type("APIParametersFromClient", name, v, &[expected])
}

const LSID: &[Field] = &[
    Field::required("id", Shape::Uuid),
    Field::optional("uid", Shape::Digest),
    Field::optional("txnNumber", Shape::Long),
    Field::optional("txnUUID", Shape::Uuid),
];

/// Two commands tell a wrong type in the words of their other arguments.
fn parse_write_concern(v: &Value<'_>, body: &RawDoc) -> Result<WriteConcern> {
    let owner = match body.first().map(|e| e.name()) {
        Some("aggregate") => "aggregate",
        Some("findAndModify" | "findandmodify") => "findAndModify",
        _ => return WriteConcern::parse(v),
    };
    match v {
        Value::Document(_) => WriteConcern::parse(v),
        v => Err(wrong_type(owner, "writeConcern", v, &["object"])),
    }
}

/// `{id: <UUID>}`, as every driver sends it with every command: nothing is to be checked of it.
fn plain_lsid(doc: &RawDoc) -> Option<[u8; 16]> {
    let mut fields = doc.iter();
    let only = fields.next().filter(|e| e.name_bytes() == b"id" && fields.next().is_none())?;
    match only.value() {
        Value::Binary { subtype: 4, bytes } => bytes.try_into().ok(),
        _ => None,
    }
}

fn parse_lsid(v: &Value<'_>) -> Result<SessionId> {
    const OWNER: &str = "OperationSessionInfo.lsid";
    let Value::Document(doc) = v else {
        return Err(wrong_type("OperationSessionInfo", "lsid", v, &["object"]));
    };
    if let Some(id) = plain_lsid(doc) {
        return Ok(SessionId::of_user(id, NO_USER_DIGEST));
    }
    check_fields(LSID, OWNER, doc)?;
    let given = |name: &str| doc.get(name).is_some_and(|v| !matches!(v, Value::Null | Value::Undefined));
    let invalid = |text: &'static str| Err(Error::new(ErrorCode::InvalidOptions, text));
    match (given("txnNumber"), given("txnUUID")) {
        (true, false) => return invalid("Cannot specify txnNumber in lsid without specifying txnUUID"),
        (_, true) => return invalid("Internal sessions are not supported outside of transactions"),
        (false, false) => {}
    }
    let uid = match doc.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().unwrap_or(NO_USER_DIGEST),
        _ => NO_USER_DIGEST,
    };
    match doc.get("id") {
        Some(Value::Binary { bytes, .. }) => match bytes.try_into() {
            Ok(id) => Ok(SessionId::of_user(id, uid)),
            Err(_) => Err(missing(OWNER, "id")),
        },
        _ => Err(missing(OWNER, "id")),
    }
}

fn timestamp(v: &Value<'_>) -> Option<Timestamp> {
    match v {
        Value::Timestamp(t) => Some(*t),
        _ => None,
    }
}

/// A `$clusterTime`, in a request or in another node's reply.
pub fn parse_cluster_time(v: &Value<'_>) -> Result<(Timestamp, Signature)> {
    let (Value::Document(doc) | Value::Array(doc)) = v else {
        return Err(not_an_object("$clusterTime"));
    };
    let time = match doc.get("clusterTime") {
        Some(Value::Timestamp(t)) => t,
        Some(v) => return Err(had_wrong_type("clusterTime", "timestamp", &v)),
        None => return Err(missing_expected("clusterTime")),
    };
    match doc.get("signature") {
        Some(Value::Document(d)) => Ok((time, Signature::parse(d))),
        Some(v) => Err(had_wrong_type("signature", "object", &v)),
        None => Err(missing_expected("signature")),
    }
}

fn not_an_object(field: &str) -> Error {
    Error::location(10065, format!("invalid parameter: expected an object ({field})"))
}

/// What a router says about the version of the database or of the collection's chunks that it means. No server takes it that is
/// not a shard; that it has the right form is looked at first.
fn check_version(name: &str, v: &Value<'_>) -> Result<()> {
    let (Value::Document(d) | Value::Array(d)) = v else { return Err(not_an_object(name)) };
    if name == "databaseVersion" {
        const OF: &str = "DatabaseVersion";
        if let Some(v) = d.get("uuid").filter(is_given) {
            check_uuid(OF, &v)?;
        }
        for (field, ty) in [("timestamp", "timestamp"), ("lastMod", "int")] {
            if let Some(v) = d.get(field).filter(is_given).filter(|v| v.type_name() != ty) {
                return Err(wrong_type(OF, field, &v, &[ty]));
            }
        }
        let absent = ["timestamp", "lastMod"].into_iter().find(|f| !d.get(f).is_some_and(|v| is_given(&v)));
        return absent.map_or(Ok(()), |field| Err(missing(OF, field)));
    }
    if d.is_empty() {
        return Err(Error::bad_value("Unexpected empty version array"));
    }
    if is_listed(v, d) {
        let mut parts = d.iter().map(|e| e.value());
        for (part, ty) in
            [("major and minor", "timestamp"), ("epoch", "objectId"), ("timestamp", "timestamp")]
        {
            let is = parts.next().map_or("missing", |v| v.type_name());
            if is != ty {
                return Err(Error::type_mismatch(format!("Invalid type {is} for version {part} part.")));
            }
        }
        return Ok(());
    }
    const OF: &str = "_parse60Format";
    for (field, ty) in [("e", "objectId"), ("t", "timestamp"), ("v", "timestamp")] {
        if let Some(v) = d.get(field).filter(is_given).filter(|v| v.type_name() != ty) {
            return Err(wrong_type(OF, field, &v, &[ty]));
        }
    }
    // Without its time the rest is not looked at.
    let order = match d.get("t").is_some_and(|v| is_given(&v)) || d.get("e").is_some() {
        true => ["e", "t", "v"],
        false => ["t", "e", "v"],
    };
    let absent = order.into_iter().find(|f| !d.get(f).is_some_and(|v| is_given(&v)));
    absent.map_or(Ok(()), |field| Err(missing(OF, field)))
}

/// As an older release told it: an array of three.
fn is_listed(v: &Value<'_>, d: &RawDoc) -> bool {
    matches!(v, Value::Array(_)) || d.first().is_some_and(|e| e.name() == "0")
}

/// The version that [`check_version`] has let pass, in either form.
fn shard_version(v: &Value<'_>) -> Result<ChunkVersion> {
    let (Value::Document(d) | Value::Array(d)) = v else { return Err(not_an_object("shardVersion")) };
    if !is_listed(v, d) {
        return ChunkVersion::parse(d);
    }
    let mut parts = d.iter().map(|e| e.value());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Value::Timestamp(v)), Some(Value::ObjectId(epoch)), Some(Value::Timestamp(timestamp))) => {
            Ok(ChunkVersion::new(Generation { epoch, timestamp }, Placement::from_timestamp(v)))
        }
        _ => ChunkVersion::parse(d),
    }
}

fn is_given(v: &Value<'_>) -> bool {
    !matches!(v, Value::Null | Value::Undefined)
}

fn check_uuid(of: &str, v: &Value<'_>) -> Result<()> {
    match v {
        Value::Binary { subtype: 4, bytes } if bytes.len() == 16 => Ok(()),
        Value::Binary { subtype: 4, .. } => Err(Error::new(
            ErrorCode::InvalidUUID,
            "uuid must be a 16-byte binary field with UUID (4) subtype",
        )),
        Value::Binary { .. } => Err(Error::type_mismatch(format!(
            "BSON field '{of}.uuid' is the wrong binData type 'general', expected type 'UUID'"
        ))),
        v => Err(wrong_type(of, "uuid", v, &["binData"])),
    }
}

/// What is wrong with `$audit`.
fn check_audit(v: &Value<'_>) -> Result<()> {
    const USERS: &str = "$impersonatedUsers";
    const ROLES: &str = "$impersonatedRoles";
    let Value::Document(d) = v else { return Ok(()) };
    if let Some(e) = d.iter().find(|e| ![USERS, ROLES, "$impersonatedUser"].contains(&e.name())) {
        return Err(unknown("$audit", e.name()));
    }
    if d.get(USERS).is_none() && d.get("$impersonatedUser").is_none() {
        return Err(missing("$audit", USERS));
    }
    Ok(())
}

/// `Missing expected field "x"` (code 4).
pub fn missing_expected(field: &str) -> Error {
    Error::new(ErrorCode::NoSuchKey, format!("Missing expected field \"{field}\""))
}

/// Milliseconds, 0 to 2^31-1; MongoDB's texts (code 2) otherwise.
pub fn parse_max_time_ms(v: &Value<'_>) -> Result<i64> {
    if !v.is_number() {
        return Err(Error::bad_value("maxTimeMS must be a number"));
    }
    let n = crate::args::safe_i64(v).unwrap_or(0);
    if matches!(v, Value::Double(d) if !d.is_infinite() && d.fract() != 0.0) {
        return Err(Error::bad_value("maxTimeMS has non-integral value"));
    }
    if !(0..=i64::from(i32::MAX)).contains(&n) {
        return Err(Error::bad_value(format!("{n} value for maxTimeMS is out of range")));
    }
    Ok(n)
}

/// `aggregate` has `maxTimeMS` among its own arguments, with the words of those.
pub fn check_max_time_of_aggregate(v: &Value<'_>) -> Result<()> {
    match crate::args::safe_i64(v) {
        None => Err(wrong_type("aggregate", "maxTimeMS", v, crate::args::NUMBERS)),
        Some(n) if n < 0 => Err(Error::location(
            51024,
            format!("BSON field 'maxTimeMS' value must be >= 0, actual value '{n}'"),
        )),
        Some(_) => Ok(()),
    }
}

fn parse_read_preference(v: &Value<'_>) -> Result<ReadMode> {
    let Value::Document(doc) = v else {
        return Err(Error::type_mismatch(format!(
            "$readPreference has incorrect type: expected object but got {}",
            v.type_name()
        )));
    };
    let mode = match doc.get("mode") {
        None => return Err(missing_expected("mode")),
        Some(Value::String(s)) => match s {
            "primary" => ReadMode::Primary,
            "primaryPreferred" => ReadMode::PrimaryPreferred,
            "secondary" => ReadMode::Secondary,
            "secondaryPreferred" => ReadMode::SecondaryPreferred,
            "nearest" => ReadMode::Nearest,
            other => {
                return Err(Error::bad_value(format!(
                    "Could not parse $readPreference mode '{other}'. Only the modes 'primary', \
                     'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported. :: \
                     caused by :: Enumeration value '{other}' for field 'mode' is not a valid value."
                )));
            }
        },
        Some(v) => return Err(had_wrong_type("mode", "string", &v)),
    };
    check_tags_and_hedge(mode, doc)?;
    if mode == ReadMode::Primary {
        let tags = doc.get("tags").and_then(|v| v.as_array());
        let harmless =
            tags.is_none_or(|t| t.iter().all(|e| e.value().as_doc().is_some_and(RawDoc::is_empty)));
        if !harmless {
            return Err(Error::bad_value("Only empty tags are allowed with primary read preference"));
        }
    }
    check_staleness(mode, doc)?;
    Ok(mode)
}

/// Drivers and routers act on both; a server only checks them.
fn check_tags_and_hedge(mode: ReadMode, preference: &RawDoc) -> Result<()> {
    match preference.get("tags") {
        None | Some(Value::Array(_)) => {}
        Some(v) => return Err(had_wrong_type("tags", "array", &v)),
    }
    match preference.elem("hedge").map(|e| (e, e.value())) {
        None => Ok(()),
        Some((_, Value::Document(hedge))) => {
            let enabled = hedge.get("enabled").is_none_or(|v| v.is_truthy());
            if enabled && mode == ReadMode::Primary {
                let text = "cannot enable hedging for $readPreference mode \"primaryOnly\"";
                return Err(Error::new(ErrorCode::InvalidOptions, text));
            }
            Ok(())
        }
        Some((e, _)) => {
            Err(Error::type_mismatch(format!("hedge field must be of type object if provided; found {e:#}")))
        }
    }
}

/// Drivers choose members by it; a server only checks it.
fn check_staleness(mode: ReadMode, preference: &RawDoc) -> Result<()> {
    const NAME: &str = "maxStalenessSeconds";
    let Some(v) = preference.get(NAME) else { return Ok(()) };
    let Some(number) = v.as_f64() else {
        return Err(Error::type_mismatch(format!(
            "Expected field \"{NAME}\" to have numeric type, but found {}",
            v.type_name()
        )));
    };
    if number.fract() != 0.0 {
        return Err(Error::bad_value(format!(
            "Expected field \"{NAME}\" to have a value exactly representable as a 64-bit integer, but found {NAME}: \
             {number}"
        )));
    }
    if number < 0.0 {
        return Err(Error::bad_value("maxStalenessSeconds must be a non-negative integer"));
    }
    if number > 0.0 && number < limits::MAX_STALENESS_SECS_MIN as f64 {
        let text =
            format!("maxStalenessSeconds value can not be less than {}", limits::MAX_STALENESS_SECS_MIN);
        return Err(Error::new(ErrorCode::MaxStalenessOutOfRange, text));
    }
    if number > 0.0 && mode == ReadMode::Primary {
        return Err(Error::bad_value("maxStalenessSeconds can not be set for the primary mode"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::{Document, doc};

    fn fails(d: Document) -> (i32, String) {
        let mut all = doc! { "ping": 1 };
        for (k, v) in d {
            all.push(k, v);
        }
        let e = GenericArgs::parse(&all.to_raw(), false, false)
            .map(|args| args.late.unwrap())
            .unwrap_or_else(|e| e);
        (e.code.0, e.message.to_string())
    }

    #[test]
    fn envelope_mistakes_match_mongod() {
        let lsid = || {
            Bson::Document(Document::from(vec![(
                "id".to_owned(),
                Bson::Binary(pando_bson::Binary { subtype: 4, bytes: vec![1; 16] }),
            )]))
        };
        assert_eq!(fails(doc! { "maxTimeMS": -1 }), (2, "-1 value for maxTimeMS is out of range".to_owned()));
        assert_eq!(fails(doc! { "maxTimeMS": "x" }), (2, "maxTimeMS must be a number".to_owned()));
        assert_eq!(fails(doc! { "maxTimeMS": f64::INFINITY }).0, 2);
        let mut twice = doc! { "comment": 1 };
        twice.push("comment", 2);
        let text = "BSON field 'APIParametersFromClient.comment' is a duplicate field";
        assert_eq!(fails(twice), (40413, text.to_owned()));
        assert_eq!(fails(doc! { "mayBypassWriteBlocking": 1 }).0, 13111);
        assert_eq!(fails(doc! { "databaseVersion": 1 }).0, 10065);
        assert_eq!(fails(doc! { "databaseVersion": {} }).0, 40414);
        // Whether a server that is no shard refuses it is looked at later, once the form is right.
        let read = |name: &str, v: Bson| {
            let mut d = doc! { "ping": 1 };
            d.push(name, v);
            GenericArgs::parse(&d.to_raw(), false, false).unwrap()
        };
        let (t, e) = (Timestamp::new(5, 1), pando_bson::ObjectId([6; 12]));
        let id = |subtype, n: usize| Bson::Binary(pando_bson::Binary { subtype, bytes: vec![1; n] });
        let of_shard = |version: Bson| fails(doc! { "shardVersion": version });
        let of_db = |version: Document| fails(doc! { "databaseVersion": version });
        let version = ChunkVersion::new(
            Generation { epoch: e, timestamp: t },
            Placement::from_timestamp(Timestamp::new(7, 2)),
        );
        let v = Timestamp::new(7, 2);
        for form in [
            doc! { "e": e, "t": t, "v": v },
            doc! { "t": t, "e": e, "v": v },
            doc! { "v": v, "e": e, "t": t },
        ] {
            assert_eq!(read("shardVersion", form.into()).shard_version, Some(version));
        }
        let listed = vec![Bson::from(v), e.into(), t.into()];
        assert_eq!(read("shardVersion", listed.into()).shard_version, Some(version));
        assert_eq!(of_shard(doc! { "t": t }.into()).1, missing("_parse60Format", "e").message);
        assert_eq!(of_shard(doc! { "v": t }.into()).1, missing("_parse60Format", "t").message);
        assert_eq!(of_shard(doc! { "e": e, "t": 1, "v": t }.into()).0, 14);
        assert_eq!(of_shard(doc! {}.into()).0, 2);
        assert_eq!(of_shard("x".into()).0, 10065);
        let part = |n: usize| of_shard([Bson::from(t), e.into(), 1.into()][..n].to_vec().into()).1;
        assert_eq!(part(1), "Invalid type missing for version epoch part.");
        assert_eq!(part(3), "Invalid type int for version timestamp part.");
        let more = doc! { "uuid": id(4, 16), "timestamp": t, "lastMod": 1, "more": 1 };
        for form in [doc! { "timestamp": t, "lastMod": 1 }, more] {
            assert_eq!(read("databaseVersion", form.into()).database_version.unwrap().last_mod, 1);
        }
        assert_eq!(of_db(doc! { "uuid": id(4, 3), "timestamp": t, "lastMod": 1 }).0, 207);
        assert_eq!(of_db(doc! { "uuid": id(0, 16), "timestamp": t, "lastMod": 1 }).0, 14);
        assert_eq!(of_db(doc! { "timestamp": t, "lastMod": 1i64 }).0, 14);
        assert_eq!(of_db(doc! { "timestamp": t }).1, missing("DatabaseVersion", "lastMod").message);
        assert_eq!(fails(doc! { "$audit": { "a": 1 } }).0, 40415);
        assert_eq!(fails(doc! { "$client": {} }).0, 183);
        // Of several the time limit is told first, then the read concern.
        let several = doc! { "writeConcern": 1, "readConcern": { "level": "x" }, "maxTimeMS": "x" };
        assert_eq!(fails(several).1, "maxTimeMS must be a number");
        assert_eq!(fails(doc! { "txnNumber": 1i64 }).0, 72);
        assert_eq!(fails(doc! { "lsid": lsid(), "txnNumber": -1i64 }).0, 72);
        assert_eq!(fails(doc! { "lsid": lsid(), "txnNumber": 1 }).0, 14);
        assert_eq!(fails(doc! { "lsid": {} }).0, 40414);
        assert_eq!(fails(doc! { "lsid": { "id": 1 } }).0, 14);
        assert_eq!(fails(doc! { "apiVersion": "2" }), (322, "Cannot accept API version 2".to_owned()));
        assert_eq!(fails(doc! { "apiStrict": true }).0, 4_886_600);
        assert_eq!(fails(doc! { "$clusterTime": 1 }).0, 10065);
        assert_eq!(fails(doc! { "$clusterTime": {} }).0, 4);
        assert_eq!(fails(doc! { "$readPreference": { "mode": "foo" } }).0, 2);
        let stale = |mode: &str, secs: Bson| {
            let mut preference = doc! { "mode": mode };
            preference.push("maxStalenessSeconds", secs);
            fails(doc! { "$readPreference": preference }).0
        };
        assert_eq!(stale("secondary", Bson::Int32(89)), 160);
        assert_eq!(stale("primary", Bson::Int32(5)), 160);
        assert_eq!(stale("primary", Bson::Int32(100)), 2);
        assert_eq!(stale("nearest", Bson::Int32(-1)), 2);
        assert_eq!(stale("nearest", Bson::Double(99.5)), 2);
        assert_eq!(stale("nearest", Bson::from("x")), 14);
    }

    #[test]
    fn a_drivers_envelope_is_understood() {
        let d = doc! { "insert": "c", "ordered": true, "$db": "x", "maxTimeMS": 50.0, "comment": "hi",
        "$clusterTime": { "clusterTime": Timestamp::new(5, 1), "signature": { "keyId": 0i64 } } };
        let g = GenericArgs::parse(&d.to_raw(), false, false).unwrap();
        assert_eq!(g.cluster_time, Some((Timestamp::new(5, 1), Signature::default())));
        assert_eq!(g.max_time_ms, Some(50));
        assert_eq!(g.comment, Some(Bson::from("hi")));
        assert!(!g.in_txn() && !g.is_retryable_write());
    }
}
