//! The replica set configuration document: reading, writing and checking it.
//!
//! The document is what `replSetInitiate` and `replSetReconfig` take, `replSetGetConfig` shows and
//! `local.system.replset` keeps. Every mistake is code 93 with MongoDB's text; a mistake inside a member is
//! prefixed with that member.

use crate::horizons;
use crate::periods::check_version;
pub use crate::settings::Settings;
use pando_base::{Error, ErrorCode, Result, Term};
use pando_bson::fields::{missing, safe_i64, unknown, wrong_type};
use pando_bson::{DocBuf, DocBuilder, Document, Elem, ElementType, RawDoc, Value};

/// Members of one set, voting or not.
pub const MEMBERS_MAX: usize = pando_base::limits::REPLSET_MEMBERS_MAX;
/// Members with a vote (R-CONF).
pub const VOTING_MEMBERS_MAX: usize = pando_base::limits::REPLSET_VOTING_MEMBERS_MAX;
const PRIORITY_MAX: f64 = pando_base::limits::REPLSET_PRIORITY_MAX;

/// One member.
#[derive(Clone, PartialEq, Debug)]
pub struct Member {
    pub id: i64,
    /// `host:port`.
    pub host: String,
    pub arbiter_only: bool,
    pub build_indexes: bool,
    pub hidden: bool,
    pub priority: f64,
    pub tags: Vec<(String, String)>,
    pub secondary_delay_secs: i64,
    pub votes: i64,
    /// `horizons` as given; none when absent.
    pub horizons: Option<Document>,
    /// Added by a reconfig and not yet synced: does not vote (R-CONF).
    pub newly_added: bool,
}

impl Member {
    /// A data-bearing voter with every default.
    pub fn new(id: i64, host: &str) -> Member {
        Member {
            id,
            host: host.to_owned(),
            arbiter_only: false,
            build_indexes: true,
            hidden: false,
            priority: 1.0,
            tags: Vec::new(),
            secondary_delay_secs: 0,
            votes: 1,
            horizons: None,
            newly_added: false,
        }
    }
    pub fn is_voter(&self) -> bool {
        self.votes != 0 && !self.newly_added
    }
    /// Counts for write concerns with a number (R-WC-8).
    pub fn is_data_bearing(&self) -> bool {
        !self.arbiter_only
    }
    pub fn is_electable(&self) -> bool {
        !self.arbiter_only && self.priority > 0.0 && self.is_voter()
    }
}

/// The whole configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplSetConfig {
    pub name: String,
    pub version: i64,
    /// -1 in documents written before terms existed.
    pub term: Term,
    pub configsvr: bool,
    pub members: Vec<Member>,
    pub write_concern_majority_journal_default: bool,
    pub settings: Settings,
    /// The configuration of the set that members without a vote leave this one for (SV-SPLIT-9).
    pub recipient_config: Option<Box<ReplSetConfig>>,
}

impl Eq for ReplSetConfig {}

/// What differs between two configurations of one set differs in these fields too, nearly always.
impl std::hash::Hash for ReplSetConfig {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.name, self.version, self.term, self.members.len()).hash(state);
    }
}

pub(crate) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::InvalidReplicaSetConfig, message)
}

fn as_invalid(e: Error) -> Error {
    invalid(e.message.clone())
}

pub(crate) fn range(name: &str, relation: &str, bound: &str, actual: impl std::fmt::Display) -> Error {
    invalid(format!("BSON field '{name}' value must be {relation} {bound}, actual value '{actual}'"))
}

/// Reads one element as the type asked for; errors name `<owner>.<field>`.
pub(crate) struct Field<'a> {
    pub(crate) owner: &'static str,
    pub(crate) e: Elem<'a>,
}

impl<'a> Field<'a> {
    pub(crate) fn wrong(&self, expected: &[&str]) -> Error {
        as_invalid(wrong_type(self.owner, self.e.name(), &self.e.value(), expected))
    }
    pub(crate) fn str(&self) -> Result<&'a str> {
        self.e.value().as_str().ok_or_else(|| self.wrong(&["string"]))
    }
    pub(crate) fn doc(&self) -> Result<&'a RawDoc> {
        self.e.value().as_doc().ok_or_else(|| self.wrong(&["object"]))
    }
    pub(crate) fn array(&self) -> Result<&'a RawDoc> {
        self.e.value().as_array().ok_or_else(|| self.wrong(&["array"]))
    }
    pub(crate) fn i64(&self) -> Result<i64> {
        safe_i64(&self.e.value()).ok_or_else(|| self.wrong(&["long", "int", "decimal", "double"]))
    }
    pub(crate) fn boolish(&self) -> Result<bool> {
        match self.e.value() {
            Value::Boolean(b) => Ok(b),
            v if v.is_number() => Ok(v.is_truthy()),
            _ => Err(self.wrong(&["bool", "long", "int", "decimal", "double"])),
        }
    }
    pub(crate) fn more_than_zero(&self) -> Result<i64> {
        match self.i64()? {
            n if n > 0 => Ok(n),
            n => Err(range(self.e.name(), ">", "0", n)),
        }
    }
    pub(crate) fn at_least(&self, min: i64) -> Result<i64> {
        match self.i64()? {
            n if n >= min => Ok(n),
            n => Err(range(self.e.name(), ">=", &min.to_string(), n)),
        }
    }
}

impl ReplSetConfig {
    /// The configuration that `replSetInitiate: {}` makes: this node alone.
    pub fn single(name: &str, host: &str) -> ReplSetConfig {
        ReplSetConfig {
            name: name.to_owned(),
            version: 1,
            term: 0,
            configsvr: false,
            members: vec![Member::new(0, host)],
            write_concern_majority_journal_default: true,
            settings: Settings::default(),
            recipient_config: None,
        }
    }

    /// Reads a document; types and single fields are checked here, the whole in [`ReplSetConfig::validate`].
    pub fn parse(doc: &RawDoc) -> Result<ReplSetConfig> {
        const OWNER: &str = "ReplSetConfig";
        let mut config = ReplSetConfig { members: Vec::new(), ..ReplSetConfig::single("", "") };
        config.term = -1;
        let (mut has_id, mut has_version, mut has_members) = (false, false, false);
        for e in doc.iter().filter(|e| !matches!(e.ty, ElementType::Null | ElementType::Undefined)) {
            let f = Field { owner: OWNER, e };
            match e.name() {
                "_id" => (config.name, has_id) = (f.str()?.to_owned(), true),
                "version" => (config.version, has_version) = (check_version(f.more_than_zero()?)?, true),
                "term" => config.term = f.at_least(-1)?,
                "protocolVersion" => match f.i64()? {
                    1 => {}
                    n if n < 1 => return Err(range("protocolVersion", ">=", "1", n)),
                    n => return Err(range("protocolVersion", "<=", "1", n)),
                },
                "configsvr" => config.configsvr = f.boolish()?,
                "writeConcernMajorityJournalDefault" => {
                    config.write_concern_majority_journal_default = f.boolish()?;
                }
                "members" => (config.members, has_members) = (Self::parse_members(f.array()?)?, true),
                "settings" => config.settings = Settings::parse(f.doc()?)?,
                "recipientConfig" => {
                    config.recipient_config = Some(Box::new(crate::split::parse_recipient(f.doc()?)?))
                }
                // Written by `--repair`: this member's data is not to be trusted.
                "repaired" => match e.value() {
                    Value::Boolean(false) => {}
                    Value::Boolean(true) => return Err(invalid("Replicated data has been repaired")),
                    v => {
                        let ty = v.type_name();
                        let text = format!("Field 'repaired' should be a boolean value, but found: {ty}");
                        return Err(invalid(text));
                    }
                },
                other => return Err(as_invalid(unknown(OWNER, other))),
            }
        }
        for (present, name) in [(has_id, "_id"), (has_version, "version"), (has_members, "members")] {
            if !present {
                return Err(as_invalid(missing(OWNER, name)));
            }
        }
        Ok(config)
    }

    fn parse_members(array: &RawDoc) -> Result<Vec<Member>> {
        let mut members = Vec::new();
        for e in array {
            let f = Field { owner: "ReplSetConfig", e };
            let Some(doc) = e.value().as_doc() else {
                let path = format!("members.{}", e.name());
                return Err(as_invalid(wrong_type(f.owner, &path, &e.value(), &["object"])));
            };
            // MongoDB reports this one without the member in front.
            let tags =
                doc.get("tags").and_then(|v| v.as_doc()).map(parse_tags).transpose()?.unwrap_or_default();
            let member = Member::parse(doc).map_err(|e| as_invalid(e.context(format!("member: {doc}"))))?;
            if member.arbiter_only && !tags.is_empty() {
                return Err(invalid(format!("member: {doc} :: caused by :: Cannot set tags on arbiters.")));
            }
            members.push(Member { tags, ..member });
            if members.len() > MEMBERS_MAX {
                // Keep counting only; the count is part of the message.
                return Err(too_many_members(array.count()));
            }
        }
        Ok(members)
    }

    /// The rules that concern several fields or members (R-CONF).
    pub fn validate(&self) -> Result<()> {
        if self.name.is_empty() {
            return Err(invalid("Replica set configuration must have non-empty _id field"));
        }
        if self.members.is_empty() || self.members.len() > MEMBERS_MAX {
            return Err(too_many_members(self.members.len()));
        }
        // By a forced change it leaps ahead.
        check_version(self.version)?;
        self.validate_distinct()?;
        horizons::check_all(&self.members)?;
        self.validate_tags()?;
        let local = self.members.iter().filter(|m| is_local_host(&m.host)).count();
        if local != 0 && local != self.members.len() {
            return Err(invalid(format!(
                "Either all host names in a replica set configuration must be localhost references, or none \
                 must be; found {local} out of {}",
                self.members.len()
            )));
        }
        let voters = self.voters();
        if voters == 0 || voters > VOTING_MEMBERS_MAX {
            return Err(invalid(format!(
                "Replica set configuration contains {voters} voting members, but must be at least 1 and no \
                 more than {VOTING_MEMBERS_MAX}"
            )));
        }
        if !self.members.iter().any(|m| !m.arbiter_only && m.priority > 0.0) {
            return Err(invalid(
                "Replica set configuration must contain at least one non-arbiter member with priority > 0",
            ));
        }
        self.validate_recipient()
    }

    fn validate_distinct(&self) -> Result<()> {
        for (j, b) in self.members.iter().enumerate() {
            for (i, a) in self.members[..j].iter().enumerate() {
                if a.id == b.id {
                    return Err(invalid(format!(
                        "Found two member configurations with same _id field, members.{i}._id == \
                         members.{j}._id == MemberId({})",
                        a.id
                    )));
                }
                if a.host == b.host {
                    return Err(invalid(format!(
                        "Found two member configurations with same host field, members.{i}.host == \
                         members.{j}.host == {}",
                        a.host
                    )));
                }
            }
        }
        Ok(())
    }

    fn validate_tags(&self) -> Result<()> {
        for (mode, wanted) in self.settings.get_last_error_modes.iter() {
            let Some(wanted) = wanted.as_doc() else {
                return Err(invalid(format!(
                    "Expected getLastErrorModes.{mode} to be of type object, not {}",
                    wanted.type_name()
                )));
            };
            for (key, _) in wanted.iter() {
                if !self.members.iter().any(|m| m.tags.iter().any(|(k, _)| k == key)) {
                    return Err(invalid(format!("No replica set tag key {key} in config")));
                }
            }
        }
        Ok(())
    }

    /// What `replSetInitiate` asks beyond [`ReplSetConfig::validate`]; returns this node's place in `members`. A node without a
    /// `set_name` learns it.
    pub fn check_initiate(&self, set_name: Option<&str>, is_self: impl Fn(&str) -> bool) -> Result<usize> {
        if let Some(set_name) = set_name
            && self.name != set_name
        {
            return Err(invalid(format!(
                "Rejecting initiate with a set name that differs from command line set name, initiate set \
                 name: {}, command line set name: {set_name}",
                self.name
            )));
        }
        self.validate()?;
        if self.recipient_config.is_some() {
            return Err(invalid("Cannot provide recipientConfig field during replSetInitiate."));
        }
        if self.version != 1 {
            return Err(invalid(format!(
                "Configuration used to initiate a replica set must  have version 1, but found {}",
                self.version
            )));
        }
        let me = self.members.iter().position(|m| is_self(&m.host)).ok_or_else(|| {
            invalid(format!(
                "No host described in new configuration with {{version: {}, term: {}}} for replica set {} maps \
                 to this node",
                self.version, self.term, self.name
            ))
        })?;
        if !self.members[me].is_electable() {
            return Err(Error::new(
                ErrorCode::NodeNotElectable,
                format!(
                    "This node, {}, with _id MemberId({}) is not electable under the new configuration with \
                     {{version: {}, term: {}}} for replica set {}",
                    self.members[me].host, self.members[me].id, self.version, self.term, self.name
                ),
            ));
        }
        Ok(me)
    }

    pub fn voters(&self) -> usize {
        self.members.iter().filter(|m| m.is_voter()).count()
    }
    /// Voters that hold data.
    pub fn writable_voters(&self) -> usize {
        self.members.iter().filter(|m| m.is_voter() && m.is_data_bearing()).count()
    }
    pub fn data_bearing(&self) -> usize {
        self.members.iter().filter(|m| m.is_data_bearing()).count()
    }
    /// Votes that win an election.
    pub fn majority_votes(&self) -> usize {
        self.voters() / 2 + 1
    }
    /// Members that must hold a write for `w: "majority"` (R-WC-9).
    pub fn write_majority(&self) -> usize {
        self.majority_votes().min(self.writable_voters())
    }
    /// `w: 1` where an arbiter would make majority writes hang, else majority (R-DWC-2).
    pub fn implicit_write_concern_is_majority(&self) -> bool {
        let arbiters = self.members.iter().filter(|m| m.arbiter_only && m.is_voter()).count();
        arbiters == 0 || self.writable_voters() > self.majority_votes()
    }

    pub fn to_doc(&self) -> DocBuf {
        let mut b = DocBuilder::with_capacity(512);
        self.append_to(&mut b);
        b.finish()
    }
    /// All fields in MongoDB's order.
    pub fn append_to(&self, b: &mut DocBuilder) {
        b.str("_id", &self.name);
        b.i32("version", self.version.clamp(0, i64::from(i32::MAX)) as i32);
        if self.term != -1 {
            match i32::try_from(self.term) {
                Ok(term) => b.i32("term", term),
                Err(_) => b.i64("term", self.term),
            };
        }
        if self.configsvr {
            b.bool("configsvr", true);
        }
        b.array("members", |a| {
            for m in &self.members {
                a.doc(|d| m.append_to(d));
            }
        });
        b.i64("protocolVersion", 1);
        b.bool("writeConcernMajorityJournalDefault", self.write_concern_majority_journal_default);
        b.doc("settings", |d| self.settings.append_to(d));
        if let Some(recipient) = &self.recipient_config {
            b.doc("recipientConfig", |d| recipient.append_to(d));
        }
    }
}

fn too_many_members(n: usize) -> Error {
    invalid(format!(
        "Replica set configuration contains {n} members, but must have at least 1 and no more than  {MEMBERS_MAX}"
    ))
}

fn is_local_host(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    matches!(name, "localhost" | "127.0.0.1" | "::1" | "[::1]") || name.starts_with('/')
}

impl Member {
    fn parse(doc: &RawDoc) -> Result<Member> {
        const OWNER: &str = "MemberConfig";
        let mut m = Member::new(0, "");
        let (mut has_id, mut has_host, mut priority) = (false, false, None);
        for e in doc.iter().filter(|e| !matches!(e.ty, ElementType::Null | ElementType::Undefined)) {
            let f = Field { owner: OWNER, e };
            match e.name() {
                "_id" => (m.id, has_id) = (f.i64()?, true),
                "host" => (m.host, has_host) = (with_port(f.str()?)?, true),
                "arbiterOnly" => m.arbiter_only = f.boolish()?,
                "buildIndexes" => m.build_indexes = f.boolish()?,
                "hidden" => m.hidden = f.boolish()?,
                "newlyAdded" => match f.boolish()? {
                    true => m.newly_added = true,
                    false => return Err(invalid("Value must be true if specified")),
                },
                "priority" => priority = Some(parse_priority(&f)?),
                "tags" => {
                    f.doc()?;
                }
                "secondaryDelaySecs" | "slaveDelay" => {
                    m.secondary_delay_secs = f.at_least(0)?;
                }
                "votes" => match f.i64()? {
                    n @ (0 | 1) => m.votes = n,
                    n if n < 0 => return Err(range("votes", ">=", "0", n)),
                    n => return Err(range("votes", "<=", "1", n)),
                },
                "horizons" => m.horizons = Some(Document::from(f.doc()?)),
                other => return Err(unknown(OWNER, other)),
            }
        }
        if !has_id {
            return Err(missing(OWNER, "_id"));
        }
        if !has_host {
            return Err(missing(OWNER, "host"));
        }
        m.priority = priority.unwrap_or(if m.arbiter_only { 0.0 } else { 1.0 });
        m.validate()?;
        Ok(m)
    }

    pub(crate) fn validate(&self) -> Result<()> {
        if self.id < 0 {
            return Err(invalid(format!("_id field value of {} can't be a negative number", self.id)));
        }
        if let Some(horizons) = &self.horizons {
            horizons::check(&self.host, horizons)?;
        }
        if self.arbiter_only && self.votes == 0 {
            return Err(invalid("Arbiter must vote (cannot have 0 votes)"));
        }
        let must_be_zero = |why: &str| Err(invalid(format!("priority must be 0 when {why}")));
        if self.priority != 0.0 {
            if self.votes == 0 {
                return must_be_zero("non-voting (votes:0)");
            }
            if self.secondary_delay_secs != 0 {
                return must_be_zero("secondaryDelaySecs is used");
            }
            if self.hidden {
                return must_be_zero("hidden=true");
            }
            if !self.build_indexes {
                return must_be_zero("buildIndexes=false");
            }
        }
        Ok(())
    }

    fn append_to(&self, b: &mut DocBuilder) {
        match i32::try_from(self.id) {
            Ok(id) => b.i32("_id", id),
            Err(_) => b.i64("_id", self.id),
        };
        b.str("host", &self.host);
        b.bool("arbiterOnly", self.arbiter_only);
        if self.newly_added {
            b.bool("newlyAdded", true);
        }
        b.bool("buildIndexes", self.build_indexes);
        b.bool("hidden", self.hidden);
        b.f64("priority", self.priority);
        b.doc("tags", |d| {
            for (k, v) in &self.tags {
                d.str(k, v);
            }
        });
        if let Some(horizons) = &self.horizons {
            b.doc("horizons", |d| d.document(horizons));
        }
        b.i64("secondaryDelaySecs", self.secondary_delay_secs);
        b.i32("votes", self.votes as i32);
    }
}

fn parse_priority(f: &Field<'_>) -> Result<f64> {
    let v = f.e.value();
    let p = match v.as_f64() {
        Some(p) => p,
        None => f.i64()? as f64,
    };
    // The message shows whole numbers without a fraction, as the client usually writes them.
    let shown = if p.fract() == 0.0 { format!("{p:.0}") } else { p.to_string() };
    if p.is_nan() || p < 0.0 {
        return Err(range("priority", ">=", "0", shown));
    }
    if p > PRIORITY_MAX {
        return Err(range("priority", "<=", "1000", shown));
    }
    Ok(p)
}

fn parse_tags(doc: &RawDoc) -> Result<Vec<(String, String)>> {
    doc.iter()
        .map(|e| match e.value() {
            Value::String(s) => Ok((e.name().to_owned(), s.to_owned())),
            v => Err(invalid(format!(
                "tags.{} field has non-string value of type {}",
                e.name(),
                v.type_name()
            ))),
        })
        .collect()
}

/// Adds the default port; refuses what cannot be an address.
pub(crate) fn with_port(host: &str) -> Result<String> {
    if host.is_empty() {
        return Err(Error::failed_to_parse(format!(
            "Empty host component parsing HostAndPort from \"{host}\""
        )));
    }
    let bracket = host.rfind(']').unwrap_or(0);
    match host[bracket..].rsplit_once(':') {
        None => Ok(format!("{host}:27017")),
        Some((_, port)) => match port.parse::<u16>() {
            Ok(p) if p > 0 => Ok(host.to_owned()),
            _ => Err(Error::failed_to_parse(format!(
                "Port number {port} out of range parsing HostAndPort from \"{host}\""
            ))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn initiate(d: Document) -> Result<ReplSetConfig> {
        let mut config = ReplSetConfig::parse(&with_version(d).to_raw())?;
        config.term = 0;
        config.check_initiate(Some("rs1"), |h| h == "127.0.0.1:29131")?;
        Ok(config)
    }
    fn with_version(mut d: Document) -> Document {
        if !d.contains("version") {
            d.push("version", 1);
        }
        d
    }
    fn text(d: Document) -> (i32, String) {
        let e = initiate(d).unwrap_err();
        (e.code.0, e.message.to_string())
    }
    fn member(extra: Document) -> Document {
        let mut m = doc! { "_id": 0, "host": "127.0.0.1:29131" };
        for (k, v) in extra {
            m.set(k, v);
        }
        doc! { "_id": "rs1", "members": [m] }
    }

    #[test]
    fn mistakes_are_told_in_mongodbs_words() {
        let cases: &[(Document, &str)] = &[
            (
                doc! { "_id": "zz", "members": [{ "_id": 0, "host": "127.0.0.1:29131" }] },
                "Rejecting initiate with a set name that differs from command line set name, initiate set name: zz, command line set name: rs1",
            ),
            (doc! { "_id": "rs1" }, "BSON field 'ReplSetConfig.members' is missing but a required field"),
            (
                doc! { "_id": "rs1", "members": [] },
                "Replica set configuration contains 0 members, but must have at least 1 and no more than  50",
            ),
            (
                doc! { "_id": "rs1", "members": [{ "_id": 0 }] },
                "member: { _id: 0 } :: caused by :: BSON field 'MemberConfig.host' is missing but a required field",
            ),
            (
                doc! { "_id": "rs1", "members": [{ "_id": 0, "host": "other:1" }] },
                "No host described in new configuration with {version: 1, term: 0} for replica set rs1 maps to this node",
            ),
            (
                member(doc! { "zz": 1 }),
                "member: { _id: 0, host: \"127.0.0.1:29131\", zz: 1 } :: caused by :: BSON field 'MemberConfig.zz' is an unknown field.",
            ),
            (
                member(doc! { "priority": 2000 }),
                "member: { _id: 0, host: \"127.0.0.1:29131\", priority: 2000 } :: caused by :: BSON field 'priority' value must be <= 1000, actual value '2000'",
            ),
            (
                member(doc! { "priority": 0 }),
                "Replica set configuration must contain at least one non-arbiter member with priority > 0",
            ),
            (
                member(doc! { "votes": 0 }),
                "member: { _id: 0, host: \"127.0.0.1:29131\", votes: 0 } :: caused by :: priority must be 0 when non-voting (votes:0)",
            ),
            (member(doc! { "tags": { "a": 1 } }), "tags.a field has non-string value of type int"),
            (
                doc! { "_id": "rs1", "zz": 1, "members": [] },
                "BSON field 'ReplSetConfig.zz' is an unknown field.",
            ),
            (
                doc! { "_id": 1, "members": [] },
                "BSON field 'ReplSetConfig._id' is the wrong type 'int', expected type 'string'",
            ),
            (
                doc! { "_id": "rs1", "version": 3, "members": [{ "_id": 0, "host": "127.0.0.1:29131" }] },
                "Configuration used to initiate a replica set must  have version 1, but found 3",
            ),
        ];
        for (d, message) in cases {
            assert_eq!(text(d.clone()), (93, (*message).to_owned()));
        }
    }

    #[test]
    fn documents_round_trip_with_all_defaults_filled_in() {
        let config = initiate(member(doc! { "tags": { "dc": "x" }, "priority": 2.5 })).unwrap();
        let again = ReplSetConfig::parse(&config.to_doc()).unwrap();
        assert_eq!(again, config);
        let shown = config.to_doc().to_string();
        assert!(shown.contains("heartbeatIntervalMillis: 2000"), "{shown}");
    }

    #[test]
    fn the_implicit_write_concern_follows_every_mix_of_members() {
        // Voting members with data, arbiters, and whether the default is majority.
        let table = [
            (1, 0, true),
            (2, 0, true),
            (3, 0, true),
            (5, 0, true),
            (7, 0, true),
            (1, 1, false),
            (2, 1, false),
            (3, 1, false),
            (4, 1, true),
            (5, 1, true),
            (6, 1, true),
            (2, 2, false),
            (3, 2, false),
            (4, 2, false),
            (5, 2, true),
            (4, 3, false),
        ];
        for (data, arbiters, majority) in table {
            for voteless in 0..3 {
                let mut c = ReplSetConfig::single("rs", "a:1");
                let add = |c: &mut ReplSetConfig, n: usize, change: fn(Member) -> Member| {
                    for _ in 0..n {
                        let id = c.members.len() as i64;
                        c.members.push(change(Member::new(id, &format!("m{id}:1"))));
                    }
                };
                add(&mut c, data - 1, |m| m);
                add(&mut c, arbiters, |m| Member { arbiter_only: true, priority: 0.0, ..m });
                add(&mut c, voteless, |m| Member { votes: 0, priority: 0.0, ..m });
                let got = c.implicit_write_concern_is_majority();
                assert_eq!(got, majority, "{data} with data, {arbiters} arbiters, {voteless} without a vote");
            }
        }
    }

    #[test]
    fn majorities_follow_the_member_list() {
        let mut c = ReplSetConfig::single("rs", "a:1");
        assert_eq!((c.majority_votes(), c.write_majority()), (1, 1));
        c.members.push(Member::new(1, "b:1"));
        c.members.push(Member { arbiter_only: true, priority: 0.0, ..Member::new(2, "c:1") });
        assert_eq!((c.majority_votes(), c.write_majority()), (2, 2));
        assert!(!c.implicit_write_concern_is_majority());
    }
}
