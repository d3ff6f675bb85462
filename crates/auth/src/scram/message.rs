//! The four messages, read strictly: who sends anything else is told that it failed, and the log tells why.

use pando_base::limits::{SCRAM_MESSAGE_BYTES_MAX, SCRAM_NONCE_BYTES_MIN, SCRAM_SALT_BYTES_MAX};
use pando_base::{Error, Result};
use pando_bson::extjson::unbase64;

/// `n,[a=authzid],n=user,r=nonce[,extensions]`
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientFirst {
    /// Who it says it is, with `=2C` and `=3D` read as `,` and `=`.
    pub user: String,
    pub(crate) nonce: String,
    /// The message without its channel binding, which is hashed.
    pub(crate) bare: String,
    /// The channel binding and the identity, which the client repeats at the end.
    pub(crate) header: String,
}

impl ClientFirst {
    pub fn parse(payload: &[u8]) -> Result<ClientFirst> {
        let (text, parts) = parts(payload, "first", 4)?;
        match parts[0] {
            "n" | "y" => {}
            p if p.starts_with("p=") => return Err(bad("Server does not support channel binding")),
            other => return Err(bad(format!("Incorrect SCRAM client message prefix: {other}"))),
        }
        let identity = match parts[1] {
            "" => None,
            a => Some(a.strip_prefix("a=").ok_or_else(|| bad(format!("Incorrect SCRAM authzid: {a}")))?),
        };
        if parts[2].starts_with("m=") {
            return Err(bad("SCRAM mandatory extensions are not supported"));
        }
        let name = parts[2].strip_prefix("n=").filter(|n| !n.is_empty());
        let name = name.ok_or_else(|| bad(format!("Invalid SCRAM user name: {}", parts[2])))?;
        let user = unescaped(name).ok_or_else(|| bad(format!("Invalid SCRAM user name: {}", parts[2])))?;
        if let Some(identity) = identity
            && unescaped(identity).as_ref() != Some(&user)
        {
            return Err(bad(format!("SCRAM user name {user} does not match authzid {identity}")));
        }
        let nonce =
            parts[3].strip_prefix("r=").filter(|n| n.len() >= SCRAM_NONCE_BYTES_MIN && is_printable(n));
        let nonce = nonce.ok_or_else(|| bad(format!("Invalid SCRAM client nonce: {}", parts[3])))?;
        let header = format!("{},{},", parts[0], parts[1]);
        Ok(ClientFirst { user, nonce: nonce.to_owned(), bare: text[header.len()..].to_owned(), header })
    }
}

/// `c=header,r=nonce,[extensions,]p=proof`
pub(super) struct ClientFinal {
    pub(super) header: Vec<u8>,
    pub(super) nonce: String,
    pub(super) proof: Vec<u8>,
    /// The message without the proof, which is hashed.
    pub(super) without_proof: String,
}

impl ClientFinal {
    pub(super) fn parse(payload: &[u8]) -> Result<ClientFinal> {
        let (text, parts) = parts(payload, "second", 3)?;
        let header = parts[0].strip_prefix("c=").and_then(unbase64);
        let header = header.ok_or_else(|| bad("Incorrect SCRAM channel binding"))?;
        let nonce = parts[1].strip_prefix("r=").ok_or_else(|| bad("Incorrect SCRAM client|server nonce"))?;
        let last = parts[parts.len() - 1];
        let proof = last.strip_prefix("p=").and_then(unbase64).filter(|p| !p.is_empty());
        let proof = proof.ok_or_else(|| bad("Incorrect SCRAM ClientProof"))?;
        let without_proof = text[..text.len() - last.len() - 1].to_owned();
        Ok(ClientFinal { header, nonce: nonce.to_owned(), proof, without_proof })
    }
}

/// `r=nonce,s=salt,i=iterations`
pub(super) struct ServerFirst {
    pub(super) nonce: String,
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u32,
}

impl ServerFirst {
    pub(super) fn parse(payload: &[u8]) -> Result<ServerFirst> {
        let text = text(payload)?;
        let mut parts = text.split(',');
        let mut part = |name: &str| parts.next().and_then(|p| p.strip_prefix(name));
        let (nonce, salt, iterations) = (part("r="), part("s=").and_then(unbase64), part("i="));
        let iterations = iterations.and_then(|i| i.parse::<u32>().ok());
        match (nonce, salt, iterations) {
            (Some(nonce), Some(salt), Some(iterations))
                if (1..=SCRAM_SALT_BYTES_MAX).contains(&salt.len()) =>
            {
                Ok(ServerFirst { nonce: nonce.to_owned(), salt, iterations })
            }
            _ => Err(bad("Incorrect SCRAM server message")),
        }
    }
}

/// A client's message, and what stands between its commas: at least so many parts.
fn parts<'a>(payload: &'a [u8], which: &str, least: usize) -> Result<(&'a str, Vec<&'a str>)> {
    let text = text(payload)?;
    let parts: Vec<&str> = text.split(',').collect();
    match parts.len() {
        n if n < least => Err(bad(format!(
            "Incorrect number of arguments for {which} SCRAM client message, got {n} expected at least {least}"
        ))),
        _ => Ok((text, parts)),
    }
}

fn text(payload: &[u8]) -> Result<&str> {
    if payload.len() > SCRAM_MESSAGE_BYTES_MAX {
        return Err(bad(format!(
            "SCRAM messages have at most {SCRAM_MESSAGE_BYTES_MAX} bytes, got {}",
            payload.len()
        )));
    }
    std::str::from_utf8(payload).map_err(|_| bad("SCRAM messages are UTF-8"))
}

/// RFC 5802's `printable`, a little wider: real servers take control characters, except zero.
fn is_printable(nonce: &str) -> bool {
    nonce.bytes().all(|b| b != 0 && b.is_ascii())
}

/// A name as it was before `,` and `=` were written as `=2C` and `=3D`. `None` where another `=` stands.
fn unescaped(name: &str) -> Option<String> {
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find('=') {
        out.push_str(&rest[..at]);
        out.push(match rest.get(at..at + 3)? {
            "=2C" => ',',
            "=3D" => '=',
            _ => return None,
        });
        rest = &rest[at + 3..];
    }
    out.push_str(rest);
    Some(out)
}

/// The reverse of what is read of a name.
pub(super) fn escaped(name: &str) -> String {
    name.replace('=', "=3D").replace(',', "=2C")
}

pub(super) fn bad(why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::bad_value(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(text: &str) -> Result<ClientFirst> {
        ClientFirst::parse(text.as_bytes())
    }

    #[test]
    fn a_first_message_is_read() {
        let m = first("n,a=a=2Cb=3D,n=a=2Cb=3D,r=abcd,x=y").unwrap();
        assert_eq!((m.user.as_str(), m.nonce.as_str()), ("a,b=", "abcd"));
        assert_eq!((m.bare.as_str(), m.header.as_str()), ("n=a=2Cb=3D,r=abcd,x=y", "n,a=a=2Cb=3D,"));
        assert_eq!(escaped("a,b="), "a=2Cb=3D");
    }

    #[test]
    fn what_real_servers_refuse_is_refused_with_their_reasons() {
        let why = |text: &str| first(text).unwrap_err().message.to_string();
        assert!(why("").starts_with("Incorrect number of arguments for first"));
        assert_eq!(why("p=tls-unique,,n=u,r=abcd"), "Server does not support channel binding");
        assert_eq!(why("n,a=x,n=u,r=abcd"), "SCRAM user name u does not match authzid x");
        assert_eq!(why("n,,m=x,n=u,r=abcd"), "SCRAM mandatory extensions are not supported");
        assert_eq!(why("n,,r=abcd,n=u"), "Invalid SCRAM user name: r=abcd");
        assert_eq!(why("n,,n=,r=abcd"), "Invalid SCRAM user name: n=");
        assert_eq!(why("n,,n=u,r=abc"), "Invalid SCRAM client nonce: r=abc");
        assert_eq!(why("x,,n=u,r=abcd"), "Incorrect SCRAM client message prefix: x");
        for odd in
            ["n,,n=u=,r=abcd", "n,,n=u=2,r=abcd", "n,,n=u=é,r=abcd", "n,,n=u,r=ab\0cd", "n,,n=u,r=abcdé"]
        {
            first(odd).unwrap_err();
        }
        ClientFirst::parse(b"n,,n=\xff,r=abcd").unwrap_err();
        ClientFirst::parse(&vec![b'n'; SCRAM_MESSAGE_BYTES_MAX + 1]).unwrap_err();
    }
}
