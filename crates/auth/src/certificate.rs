//! Whom a certificate's subject stands for.
//!
//! A subject is text as RFC 2253 spells it. It names a user of `$external`, or a member: whose organisation, units and domain components
//! are those of the server's own certificate.

/// The mechanism's name on the wire.
pub const X509: &str = "MONGODB-X509";
/// The database of users whom somebody else knows.
pub const EXTERNAL: &str = "$external";

/// What members have in common.
const SHARED: [&str; 3] = ["O", "OU", "DC"];

/// Whether two subjects are of one cluster: both have the same organisation, units and domain components, and at least one of them.
pub fn are_of_one_cluster(a: &str, b: &str) -> bool {
    let (a, b) = (shared(a), shared(b));
    !a.is_empty() && a == b
}

/// The attributes that count, in an order of their own.
fn shared(subject: &str) -> Vec<(&str, &str)> {
    let parts = attributes(subject).into_iter().filter_map(|part| part.split_once('='));
    let mut parts: Vec<_> = parts.filter(|(name, _)| SHARED.contains(name)).collect();
    parts.sort_unstable();
    parts
}

/// The attributes of a subject: between commas and pluses that are not escaped.
fn attributes(subject: &str) -> Vec<&str> {
    let (mut parts, mut begins, mut escaped) = (Vec::new(), 0, false);
    for (at, b) in subject.bytes().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' | b'+' => {
                parts.push(&subject[begins..at]);
                begins = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&subject[begins..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_share_organisation_units_and_domain() {
        let own = "CN=server,OU=Members,O=Example";
        assert!(are_of_one_cluster(own, "CN=other,OU=Members,O=Example"));
        assert!(are_of_one_cluster(own, "O=Example,CN=x+OU=Members,L=Somewhere"));
        assert!(!are_of_one_cluster(own, "CN=ann,OU=Users,O=Example"));
        assert!(!are_of_one_cluster(own, "CN=ann,O=Example"));
        assert!(!are_of_one_cluster(own, "CN=ann,OU=Members,O=Example,DC=org"));
        assert!(!are_of_one_cluster("CN=a", "CN=a"), "nothing is shared");
        // an escaped comma ends no attribute
        assert!(!are_of_one_cluster(own, r"CN=x\,OU=Members\,O=Example"));
        assert!(!are_of_one_cluster(own, r"CN=x\\\,OU=Members,O=Example\,"));
        assert!(are_of_one_cluster(own, r"CN=x\\,OU=Members,O=Example"));
        assert!(are_of_one_cluster("DC=org,DC=example", "DC=example,DC=org"));
    }
}
