//! Addresses, ranges of them and paths of Unix sockets, as options list them.

use crate::options::Refusal;
use pando_auth::AddressRange;
use std::net::IpAddr;

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Sources {
    ranges: Vec<AddressRange>,
    /// A socket's own, or of the folder that it is in.
    paths: Vec<String>,
}

impl Sources {
    /// `option` is named in the refusal of what is neither.
    pub fn parse(option: &str, texts: &[String]) -> Result<Sources, Refusal> {
        let mut out = Sources::default();
        for text in texts {
            if text.starts_with('/') {
                out.paths.push(text.trim_end_matches('/').to_owned());
                continue;
            }
            match AddressRange::parse(text) {
                Ok(range) => out.ranges.push(range),
                Err(e) => return Err(format!("BadValue: {option}: '{text}': {}", e.message)),
            }
        }
        Ok(out)
    }
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.paths.is_empty()
    }
    pub(super) fn contain(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|r| r.contains(address))
    }
    pub(super) fn contain_path(&self, socket: &str) -> bool {
        let is_of = |path: &String| {
            socket.strip_prefix(path.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.paths.iter().any(is_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused_by_name() {
        let parse = |text: &str| Sources::parse("net.x", &[text.to_owned()]);
        for good in ["10.0.0.0/8", "::1", "/tmp", "127.0.0.1"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for bad in ["", "localhost", "300.1.1.1", "10.0.0.0/40", "10.0.0.0/x"] {
            assert!(parse(bad).unwrap_err().starts_with("BadValue: net.x: '"), "{bad}");
        }
    }

    #[test]
    fn a_path_is_of_a_socket_or_of_its_folder() {
        let of = |text: &str| Sources::parse("net.x", &[text.to_owned()]).unwrap();
        assert!(of("/tmp/").contain_path("/tmp/mongodb-1.sock"));
        assert!(of("/tmp/mongodb-1.sock").contain_path("/tmp/mongodb-1.sock"));
        assert!(!of("/tm").contain_path("/tmp/mongodb-1.sock"));
        assert!(!of("127.0.0.1").contain_path("/tmp/mongodb-1.sock"));
    }
}
