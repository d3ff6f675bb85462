//! The document that makes a set a shard (SYS-201): `{_id: "shardIdentity"}` in `admin.system.version`.

use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, DocBuilder, ObjectId, RawDoc, Value};
use pando_routing::ShardId;

/// Its `_id`.
pub const SHARD_IDENTITY: &str = "shardIdentity";

/// Which shard of which cluster this set is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShardIdentity {
    pub shard: ShardId,
    pub cluster: ObjectId,
    /// The set of the config servers.
    pub config_set: String,
    /// Some of its hosts.
    pub config_hosts: Vec<String>,
}

impl ShardIdentity {
    /// What is wrong is told in the words of MongoDB.
    pub fn parse(doc: &RawDoc) -> Result<ShardIdentity> {
        let missing = |name: &str| {
            let text = format!("BSON field 'ShardIdentity.{name}' is missing but a required field");
            Error::location(40414, text)
        };
        let text = |name: &str| match doc.get(name) {
            Some(Value::String(s)) => Ok(s),
            Some(v) => {
                let found = v.type_name();
                let text = format!(
                    "BSON field 'ShardIdentity.{name}' is the wrong type '{found}', expected type 'string'"
                );
                Err(Error::type_mismatch(text))
            }
            None => Err(missing(name)),
        };
        let config = text("configsvrConnectionString")?;
        let Some((config_set, hosts)) = config.split_once('/') else {
            let text = format!(
                "config server connection string has to be that of a replica set: NAME/HOST:PORT,..., found '{config}'"
            );
            return Err(Error::new(ErrorCode::UnsupportedFormat, text));
        };
        let shard = text("shardName")?;
        let cluster = match doc.get("clusterId") {
            Some(Value::ObjectId(id)) => id,
            Some(v) => {
                let found = v.type_name();
                let text = format!(
                    "BSON field 'ShardIdentity.clusterId' is the wrong type '{found}', expected type 'objectId'"
                );
                return Err(Error::type_mismatch(text));
            }
            None => return Err(missing("clusterId")),
        };
        Ok(ShardIdentity {
            shard: ShardId::new(shard),
            cluster,
            config_set: config_set.to_owned(),
            config_hosts: hosts.split(',').filter(|h| !h.is_empty()).map(str::to_owned).collect(),
        })
    }
    /// One name belongs to the config servers, which have no other.
    pub fn check_name(&self, of_config_servers: bool) -> Result<()> {
        if (self.shard == ShardId::config()) == of_config_servers {
            return Ok(());
        }
        let text = format!("Invalid shard name: {}", self.shard);
        Err(Error::new(ErrorCode::UnsupportedFormat, text))
    }
    /// `SET/HOST,...`
    pub fn config_servers(&self) -> String {
        format!("{}/{}", self.config_set, self.config_hosts.join(","))
    }
    /// Whether both are of one shard of one cluster; hosts may differ.
    pub fn is_same_shard(&self, other: &ShardIdentity) -> bool {
        (&self.shard, self.cluster, &self.config_set) == (&other.shard, other.cluster, &other.config_set)
    }
    /// As it is stored.
    pub fn to_doc(&self) -> DocBuf {
        let mut d = DocBuilder::new();
        d.str("_id", SHARD_IDENTITY)
            .object_id("clusterId", self.cluster)
            .str("shardName", self.shard.as_str());
        d.str("configsvrConnectionString", &self.config_servers());
        d.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn an_identity_is_read_as_it_was_written() {
        let identity = ShardIdentity {
            shard: ShardId::new("a"),
            cluster: ObjectId([7; 12]),
            config_set: "c".to_owned(),
            config_hosts: vec!["h:1".to_owned(), "h:2".to_owned()],
        };
        assert_eq!(ShardIdentity::parse(&identity.to_doc()).unwrap(), identity);
        let elsewhere = ShardIdentity { config_hosts: vec!["h:3".to_owned()], ..identity.clone() };
        assert!(identity.is_same_shard(&elsewhere));
        let other = ShardIdentity { cluster: ObjectId([8; 12]), ..identity.clone() };
        assert!(!identity.is_same_shard(&other));
        assert!(identity.check_name(false).is_ok() && identity.check_name(true).is_err());
        let config = ShardIdentity { shard: ShardId::config(), ..identity };
        assert!(config.check_name(true).is_ok() && config.check_name(false).is_err());
    }

    #[test]
    fn what_names_no_set_is_no_identity() {
        let doc = |config: &str| {
            doc! { "_id": "shardIdentity", "shardName": "a", "clusterId": ObjectId([1; 12]), "configsvrConnectionString": config }
        };
        assert!(ShardIdentity::parse(&doc("c/h:1").to_raw()).is_ok());
        assert_eq!(
            ShardIdentity::parse(&doc("h:1").to_raw()).unwrap_err().code,
            ErrorCode::UnsupportedFormat
        );
        let without = doc! { "_id": "shardIdentity", "configsvrConnectionString": "c/h:1" };
        assert_eq!(ShardIdentity::parse(&without.to_raw()).unwrap_err().code.0, 40414);
    }
}
