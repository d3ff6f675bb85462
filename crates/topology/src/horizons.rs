//! `horizons`: names under which clients elsewhere know the members. Nobody acts on them here; what is kept must be what
//! other releases take.

use crate::config::{Member, invalid, with_port};
use pando_base::Result;
use pando_bson::Document;
use std::collections::{BTreeMap, BTreeSet};

/// Those of the member at `host`.
pub(crate) fn check(host: &str, horizons: &Document) -> Result<()> {
    if horizons.is_empty() {
        return Err(invalid("The horizons field cannot be empty, if present."));
    }
    let name_of = |host: &str| host.rsplit_once(':').map_or(host, |(name, _)| name).to_owned();
    let mut seen = BTreeSet::from([name_of(host)]);
    for (name, address) in horizons.iter() {
        if name.is_empty() {
            return Err(invalid("Horizons cannot have empty names"));
        }
        if name == "__default" {
            return Err(invalid("Horizon name \"__default\" is reserved for internal mongodb usage"));
        }
        let Some(text) = address.as_str() else {
            let ty = address.type_name();
            return Err(invalid(format!("horizons.{name} field has non-string value of type {ty}")));
        };
        let there = name_of(&with_port(text).map_err(|e| invalid(e.message.to_string()))?);
        if !seen.insert(there.clone()) {
            return Err(invalid(format!("Duplicate horizon member found \"{there}\".")));
        }
    }
    Ok(())
}

/// All have the same names, and no address is two members'.
pub(crate) fn check_all(members: &[Member]) -> Result<()> {
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let mut hosts: BTreeMap<String, usize> = BTreeMap::new();
    for m in members {
        *hosts.entry(m.host.clone()).or_default() += 1;
        for (name, address) in m.horizons.iter().flat_map(|h| h.iter()) {
            *names.entry(name).or_default() += 1;
            let address = with_port(address.as_str().unwrap_or_default())?;
            *hosts.entry(address).or_default() += 1;
        }
    }
    let partial: Vec<&str> =
        names.iter().filter(|(_, n)| **n != members.len()).map(|(name, _)| *name).collect();
    if !partial.is_empty() {
        return Err(invalid(format!(
            "Saw a replica set member with a different horizon mapping than the others.  The following horizons were \
             not universally present: {}",
            partial.join(", ")
        )));
    }
    let shared: Vec<&str> = hosts.iter().filter(|(_, n)| **n > 1).map(|(host, _)| host.as_str()).collect();
    if !names.is_empty() && !shared.is_empty() {
        return Err(invalid(format!(
            "The following hostnames are not unique across all horizons and host specifications in the replica set: {}",
            shared.join(", ")
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn mistakes_in_horizons_are_told_in_mongodbs_words() {
        let told = |horizons: Document| check("me:1", &horizons).map_err(|e| e.message.to_string());
        assert_eq!(told(doc! { "a": "h:1", "b": "i:1" }), Ok(()));
        let cases = [
            (Document::new(), "The horizons field cannot be empty, if present."),
            (doc! { "a": 1 }, "horizons.a field has non-string value of type int"),
            (doc! { "a": "" }, "Empty host component parsing HostAndPort from \"\""),
            (doc! { "a": "x:99999" }, "Port number 99999 out of range parsing HostAndPort from \"x:99999\""),
            (
                doc! { "__default": "h:1" },
                "Horizon name \"__default\" is reserved for internal mongodb usage",
            ),
            (doc! { "": "h:1" }, "Horizons cannot have empty names"),
            (doc! { "a": "h:1", "b": "h:2" }, "Duplicate horizon member found \"h\"."),
            (doc! { "a": "me:5" }, "Duplicate horizon member found \"me\"."),
        ];
        for (horizons, text) in cases {
            assert_eq!(told(horizons), Err(text.to_owned()));
        }
    }
    #[test]
    fn members_have_the_same_horizons_and_addresses_of_their_own() {
        let told = |all: [Option<Document>; 2]| {
            let members = all.into_iter().enumerate().map(|(i, horizons)| {
                let mut m = Member::new(i as i64, &format!("h{i}:1"));
                m.horizons = horizons;
                m
            });
            check_all(&members.collect::<Vec<_>>()).map_err(|e| e.message.to_string())
        };
        assert_eq!(told([None, None]), Ok(()));
        assert_eq!(told([Some(doc! { "a": "x:1" }), Some(doc! { "a": "y:1" })]), Ok(()));
        let differ = "Saw a replica set member with a different horizon mapping than the others.  The following \
                      horizons were not universally present: ";
        assert_eq!(told([Some(doc! { "a": "x:1" }), None]), Err(format!("{differ}a")));
        assert_eq!(
            told([Some(doc! { "a": "x:1" }), Some(doc! { "b": "y:1" })]),
            Err(format!("{differ}a, b"))
        );
        let same = told([Some(doc! { "a": "x:1" }), Some(doc! { "a": "x:1" })]).unwrap_err();
        assert!(same.ends_with("in the replica set: x:1"), "{same}");
    }
}
