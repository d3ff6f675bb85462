//! Addresses as MongoDB writes them: one, or one with the number of bits that count (CIDR).

use ipnet::IpNet;
use pando_base::{Error, Result};
use std::net::IpAddr;

/// With the text that it was given as: it is kept and shown as it was.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddressRange {
    text: String,
    net: IpNet,
}

impl AddressRange {
    /// 2 with 6.0.5's words for what is none.
    pub fn parse(text: &str) -> Result<AddressRange> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return Err(Error::bad_value("Invalid IP address in CIDR string"));
        };
        let all = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => all,
            Some(digits) => digits
                .trim_start()
                .parse::<i32>()
                .map_err(|_| Error::bad_value("Non-numeric length in CIDR string"))?,
        };
        let net = u8::try_from(length).ok().and_then(|n| IpNet::new(address, n).ok());
        let net = net.ok_or_else(|| Error::bad_value("Invalid length in CIDR string"))?;
        Ok(AddressRange { text: text.to_owned(), net })
    }
    pub fn text(&self) -> &str {
        &self.text
    }
    /// An address of version 4 that came over a socket of version 6 is meant as what it is.
    pub fn contains(&self, a: IpAddr) -> bool {
        self.net.contains(&a) || self.net.contains(&a.to_canonical())
    }
}
