//! From where somebody may log in: `authenticationRestrictions` of users and roles.
//!
//! ```text
//! [ {clientSource: ["10.0.0.0/8", "::1"], serverAddress: ["192.168.0.7"]}, ... ]
//! ```
//! A document is met where the client's address is in one of the first, and the address that it has come to in one of the second; a part
//! that is not there is met by everybody. One of the documents has to be met. A user has to meet its own, and those of each role.

use crate::AddressRange;
use pando_base::{Error, ErrorCode, Result};
use pando_bson::{Bson, Document, doc};
use std::net::IpAddr;

/// Between whom a connection is. A Unix domain socket has no address, and so is in no range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peers {
    pub client: Option<IpAddr>,
    pub server: Option<IpAddr>,
}

/// The documents, of which one has to be met. Without any everybody may.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Restrictions(Vec<Restriction>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Restriction {
    client_source: Option<Vec<AddressRange>>,
    server_address: Option<Vec<AddressRange>>,
}

impl Restrictions {
    /// Adds a document's; `None` where a part is not there. 162 when it has neither.
    pub fn require(&mut self, client_source: Option<&[&str]>, server_address: Option<&[&str]>) -> Result<()> {
        if client_source.is_none() && server_address.is_none() {
            let text = "At least one of 'clientSource' or 'serverAddress' must be set";
            return Err(Error::new(ErrorCode::CollectionIsEmpty, text));
        }
        let ranges = |texts: Option<&[&str]>| {
            texts.map(|t| t.iter().map(|t| AddressRange::parse(t)).collect::<Result<Vec<_>>>()).transpose()
        };
        self.0.push(Restriction {
            client_source: ranges(client_source)?,
            server_address: ranges(server_address)?,
        });
        Ok(())
    }

    /// As they were stored; `None` for what is no such list.
    pub fn of_array(list: &[Bson]) -> Option<Restrictions> {
        let mut out = Restrictions::default();
        for each in list {
            let Bson::Document(d) = each else { return None };
            let texts = |name: &str| match d.get(name) {
                None => Some(None),
                Some(Bson::Array(a)) => a.iter().map(Bson::as_str).collect::<Option<Vec<_>>>().map(Some),
                Some(_) => None,
            };
            out.require(texts("clientSource")?.as_deref(), texts("serverAddress")?.as_deref()).ok()?;
        }
        Some(out)
    }

    /// The reverse of [`Restrictions::of_array`].
    pub fn documents(&self) -> Vec<Document> {
        let texts =
            |ranges: &[AddressRange]| Bson::Array(ranges.iter().map(|r| Bson::from(r.text())).collect());
        let each = self.0.iter().map(|r| {
            let mut d = doc! {};
            for (name, ranges) in [("clientSource", &r.client_source), ("serverAddress", &r.server_address)] {
                if let Some(ranges) = ranges {
                    d.push(name, texts(ranges));
                }
            }
            d
        });
        each.collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether somebody may log in over such a connection.
    pub fn are_met(&self, peers: Peers) -> bool {
        self.0.is_empty()
            || self.0.iter().any(|r| {
                covers(r.client_source.as_deref(), peers.client)
                    && covers(r.server_address.as_deref(), peers.server)
            })
    }
}

fn covers(ranges: Option<&[AddressRange]>, address: Option<IpAddr>) -> bool {
    let Some(ranges) = ranges else { return true };
    address.is_some_and(|a| ranges.iter().any(|r| r.contains(a)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(client: &str) -> Peers {
        Peers { client: client.parse().ok(), server: "192.168.0.7".parse().ok() }
    }

    /// What 6.0.5 says of each text.
    #[test]
    fn ranges_are_read_as_by_a_real_server() {
        for good in [
            "10.0.0.0/8",
            "10.0.0.1/8",
            "10.0.0.0/0",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "10.0.0.0/ 8",
            "::1",
            "::ffff:1.2.3.4/96",
        ] {
            assert_eq!(AddressRange::parse(good).unwrap().text(), good);
        }
        let why = |text: &str| AddressRange::parse(text).unwrap_err().message.to_string();
        for (text, part) in [
            ("10.0.0.0/33", "Invalid length"),
            ("::1/129", "Invalid length"),
            ("10.0.0.0/-1", "Invalid length"),
            ("10.0.0.1/", "Non-numeric length"),
            ("10.0.0.0/8/8", "Non-numeric length"),
            ("10.0.0.0/0x8", "Non-numeric length"),
            ("1.2.3", "Invalid IP address"),
            ("010.0.0.0", "Invalid IP address"),
            (" 10.0.0.0", "Invalid IP address"),
            ("", "Invalid IP address"),
        ] {
            assert_eq!(why(text), format!("{part} in CIDR string"), "{text:?}");
        }
    }

    #[test]
    fn one_of_the_documents_has_to_be_met_with_both_its_parts() {
        let mut r = Restrictions::default();
        assert!(r.are_met(Peers { client: None, server: None }));
        assert_eq!(r.require(None, None).unwrap_err().code, ErrorCode::CollectionIsEmpty);
        r.require(Some(&["10.0.0.0/8", "::1"]), Some(&["192.168.0.0/16"])).unwrap();
        assert!(
            r.are_met(peers("10.1.2.3")) && r.are_met(peers("::ffff:10.1.2.3")) && r.are_met(peers("::1"))
        );
        assert!(!r.are_met(peers("11.1.2.3")) && !r.are_met(peers("no address")));
        r.require(Some(&["11.0.0.0/8"]), Some(&["1.1.1.1"])).unwrap();
        assert!(!r.are_met(peers("11.1.2.3")));
        r.require(Some(&["11.0.0.0/8"]), None).unwrap();
        assert!(r.are_met(peers("11.1.2.3")));
        let stored: Vec<Bson> = r.documents().into_iter().map(Bson::from).collect();
        assert_eq!(Restrictions::of_array(&stored), Some(r));
    }

    #[test]
    fn a_list_that_is_empty_lets_nobody_in() {
        let mut r = Restrictions::default();
        r.require(Some(&[]), None).unwrap();
        assert!(!r.are_met(peers("10.1.2.3")));
    }
}
