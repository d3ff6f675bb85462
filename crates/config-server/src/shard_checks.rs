//! Whether somebody may become a shard, decided from what is known of it (SH-SHARD-1), in the words of 6.0.5.

use crate::metadata::text;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{DocBuf, RawDoc};

/// `set/host1,host2`, or one host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionString {
    pub set: Option<String>,
    pub hosts: Vec<String>,
}

impl ConnectionString {
    pub fn parse(text: &str) -> Result<ConnectionString> {
        let (set, hosts) = match text.split_once('/') {
            Some((set, hosts)) => (Some(set.to_owned()), hosts),
            None => (None, text),
        };
        let hosts = hosts.split(',').map(with_port).collect::<Result<Vec<String>>>()?;
        Ok(ConnectionString { set, hosts })
    }
}

impl std::fmt::Display for ConnectionString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(set) = &self.set {
            write!(f, "{set}/")?;
        }
        f.write_str(&self.hosts.join(","))
    }
}

fn with_port(host: &str) -> Result<String> {
    let bare = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    match (host, bare) {
        ("", _) | (_, Some(("", _))) => {
            Err(Error::failed_to_parse(format!("Empty host component parsing HostAndPort from \"{host}\"")))
        }
        (_, Some(_)) => Ok(host.to_owned()),
        (_, None) => Ok(format!("{host}:27017")),
    }
}

fn is_local(host: &str) -> bool {
    host.starts_with("localhost:") || host.starts_with("127.") || host.starts_with("[::1]")
}

/// What `_configsvrAddShard` asks for.
#[derive(Clone, Debug)]
pub struct NewShard {
    pub connection: ConnectionString,
    /// The set's where nobody says.
    pub name: Option<String>,
}

impl NewShard {
    /// The name of the shard that this one is already.
    pub(crate) fn among(&self, shards: &[DocBuf]) -> Result<Option<String>> {
        for shard in shards {
            let (id, there) = (text(shard, "_id")?, text(shard, "host")?);
            let known = ConnectionString::parse(there)?;
            if self.connection.set.is_some() && known.set == self.connection.set {
                if self.name.as_deref().is_none_or(|name| name == id) {
                    return Ok(Some(id.to_owned()));
                }
                let set = known.set.unwrap_or_default();
                return Err(illegal(format!("A shard already exists containing the replica set '{set}'")));
            }
            if let Some(host) = self.connection.hosts.iter().find(|host| known.hosts.contains(host)) {
                return Err(illegal(format!(
                    "'{host}' is already a member of the existing shard '{there}' ({id})."
                )));
            }
        }
        Ok(None)
    }
    /// Hosts that only some of the cluster can reach by these names.
    pub(crate) fn check_reachable(&self, of_config: &ConnectionString) -> Result<()> {
        let local = of_config.hosts.iter().any(|host| is_local(host));
        let Some(host) = self.connection.hosts.iter().find(|host| is_local(host) != local) else {
            return Ok(());
        };
        let text = format!(
            "Can't use localhost as a shard since all shards need to communicate. Either use all shards and configdbs in \
             localhost or all in actual IPs. host: {host} isLocalHost:{}",
            i32::from(is_local(host))
        );
        Err(Error::new(ErrorCode::InvalidOptions, text))
    }
    /// What the primary says of itself: the shard's name, and its set as others are to reach it.
    pub(crate) fn check_hello(&self, hello: &RawDoc) -> Result<(String, ConnectionString)> {
        let set = hello.get("setName").and_then(|v| v.as_str());
        if hello.get("msg").and_then(|v| v.as_str()) == Some("isdbgrid") {
            let text = format!("can't add shard '{}' because it's a mongos process", self.connection);
            return Err(failed(text));
        }
        match (&self.connection.set, set) {
            (None, Some(set)) => {
                return Err(failed(format!(
                    "host is part of set {set}; use replica set url format <setname>/<server1>,<server2>, ..."
                )));
            }
            (Some(_), None) => {
                let text =
                    format!("host did not return a set name; is the replica set still initializing? {hello}");
                return Err(failed(text));
            }
            (Some(given), Some(set)) if given != set => {
                return Err(failed(format!(
                    "the provided connection string ({}) does not match the actual set name {set}",
                    self.connection
                )));
            }
            _ => {}
        }
        if hello.get("configsvr").is_some() {
            let text = format!("Cannot add {} as a shard since it is a config server", self.connection);
            return Err(failed(text));
        }
        let members = members(hello);
        let stranger = self.connection.hosts.iter().find(|host| set.is_some() && !members.contains(host));
        if let Some(host) = stranger {
            return Err(failed(format!(
                "in seed list {}, host {host} does not belong to replica set {}; found {hello}",
                self.connection,
                set.unwrap_or_default()
            )));
        }
        let hosts = if members.is_empty() { self.connection.hosts.clone() } else { members };
        let actual = ConnectionString { set: set.map(str::to_owned), hosts };
        let name = match (&self.name, set) {
            (Some(name), _) => name.clone(),
            (None, Some(set)) => set.to_owned(),
            (None, None) => actual.hosts.first().cloned().unwrap_or_default(),
        };
        if name == "config" {
            let text = "use of shard replica set with name 'config' is not allowed";
            return Err(Error::bad_value(text));
        }
        Ok((name, actual))
    }
    /// Without a default for everybody, what a write waits for may not depend on the shard (R-DWC-5).
    pub(crate) fn check_default_write_concern(&self, hello: &RawDoc, cluster_has_one: bool) -> Result<()> {
        let majority = hello.get("isImplicitDefaultMajorityWC").is_none_or(|v| v.is_truthy());
        if majority || cluster_has_one {
            return Ok(());
        }
        Err(failed(format!(
            "Cannot add {} as a shard since the implicit default write concern on this shard is set to {{w : 1}}, because \
             number of arbiters in the shard's configuration caused the number of writable voting members not to be strictly \
             more than the voting majority. Change the shard configuration or set the cluster-wide write concern using the \
             setDefaultRWConcern command and try again.",
            self.connection
        )))
    }
    /// The shard's databases that nobody has yet; those that another shard has are in the way.
    pub(crate) fn check_databases(
        &self,
        own: &RawDoc,
        name: &str,
        of_cluster: &[DocBuf],
    ) -> Result<Vec<String>> {
        let mut new = Vec::new();
        let names = own.iter().filter_map(|e| e.value().as_doc()?.get("name")?.as_str().map(str::to_owned));
        for db in names.filter(|db| !matches!(db.as_str(), "admin" | "config" | "local")) {
            let known = of_cluster.iter().find(|doc| doc.get("_id").and_then(|v| v.as_str()) == Some(&db));
            let primary = known.and_then(|doc| doc.get("primary")).and_then(|v| v.as_str());
            match primary {
                None => new.push(db),
                Some(primary) if primary == name => {}
                Some(primary) => {
                    return Err(failed(format!(
                        "can't add shard '{}' because a local database '{db}' exists in another {primary}",
                        self.connection
                    )));
                }
            }
        }
        Ok(new)
    }
}

/// Those that hold data, in the order of the set's configuration.
pub(crate) fn members(hello: &RawDoc) -> Vec<String> {
    let lists = ["hosts", "passives"].into_iter().filter_map(|name| hello.get(name)?.as_array());
    lists.flat_map(|list| list.iter().filter_map(|e| e.value().as_str().map(str::to_owned))).collect()
}

fn failed(text: String) -> Error {
    Error::new(ErrorCode::OperationFailed, text)
}
pub(crate) fn illegal(text: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorCode::IllegalOperation, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn new(connection: &str, name: Option<&str>) -> NewShard {
        let connection = ConnectionString::parse(connection).unwrap();
        NewShard { connection, name: name.map(str::to_owned) }
    }
    fn words<T: std::fmt::Debug>(r: Result<T>) -> String {
        let e = r.unwrap_err();
        format!("{} {}", e.code.0, e.message)
    }

    #[test]
    fn who_is_a_shard_already_is_told_so_and_others_may_not_take_its_place() {
        let shards = [doc! { "_id": "a", "host": "sa/h:1,h:2", "state": 1 }.to_raw()];
        assert_eq!(new("sa/h:1", None).among(&shards).unwrap().as_deref(), Some("a"));
        assert_eq!(new("sa/h:3", Some("a")).among(&shards).unwrap().as_deref(), Some("a"));
        assert_eq!(new("sb/h:9", None).among(&shards).unwrap(), None);
        assert_eq!(
            words(new("sa/h:1", Some("b")).among(&shards)),
            "20 A shard already exists containing the replica set 'sa'"
        );
        assert_eq!(
            words(new("zz/h:2", None).among(&shards)),
            "20 'h:2' is already a member of the existing shard 'sa/h:1,h:2' (a)."
        );
    }

    #[test]
    fn a_primary_says_whether_it_can_be_one() {
        let hello = doc! { "setName": "sa", "hosts": ["h:1", "h:2"], "isWritablePrimary": true }.to_raw();
        let (name, actual) = new("sa/h:2", None).check_hello(&hello).unwrap();
        assert_eq!((name.as_str(), actual.to_string().as_str()), ("sa", "sa/h:1,h:2"));
        assert!(
            words(new("sa/h:3", None).check_hello(&hello))
                .starts_with("96 in seed list sa/h:3, host h:3 does not belong to replica set sa; found {")
        );
        assert!(words(new("h:1", None).check_hello(&hello)).starts_with("96 host is part of set sa;"));
        assert!(words(new("sa/h:1", Some("config")).check_hello(&hello)).starts_with("2 use of shard"));
        let config = doc! { "setName": "c", "hosts": ["h:1"], "configsvr": 2 }.to_raw();
        assert_eq!(
            words(new("c/h:1", None).check_hello(&config)),
            "96 Cannot add c/h:1 as a shard since it is a config server"
        );
    }

    #[test]
    fn a_database_of_another_shard_is_in_the_way() {
        let own = doc! { "x": [{ "name": "local" }, { "name": "d" }, { "name": "e" }] }.to_raw();
        let own = own.get("x").and_then(|v| v.as_array()).unwrap();
        let known = [doc! { "_id": "d", "primary": "a" }.to_raw()];
        assert_eq!(new("sa/h:1", None).check_databases(own, "a", &known).unwrap(), ["e"]);
        assert_eq!(
            words(new("sb/h:1", None).check_databases(own, "b", &known)),
            "96 can't add shard 'sb/h:1' because a local database 'd' exists in another a"
        );
    }

    #[test]
    fn hosts_have_ports_and_are_local_for_all_or_for_nobody() {
        assert_eq!(ConnectionString::parse("s/h").unwrap().hosts, ["h:27017"]);
        assert!(words(ConnectionString::parse("")).starts_with("9 Empty host component"));
        let config = ConnectionString::parse("c/127.0.0.1:1").unwrap();
        assert!(new("s/127.0.0.1:2", None).check_reachable(&config).is_ok());
        assert!(words(new("s/far:2", None).check_reachable(&config)).ends_with("host: far:2 isLocalHost:0"));
    }
}
