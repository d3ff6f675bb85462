//! `host:port` as clients and members write it.

use super::prelude::*;

/// Refuses what is no host with a port; a name alone is at the usual port.
pub(super) fn check(text: &str) -> Result<()> {
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !text.ends_with(']') => (name, port),
        _ => (text, "27017"),
    };
    if name.is_empty() {
        return Err(Error::failed_to_parse(format!(
            "Empty host component parsing HostAndPort from \"{text}\""
        )));
    }
    match port.parse::<u32>() {
        Ok(1..=65_535) => Ok(()),
        Ok(n) => Err(Error::failed_to_parse(format!(
            "Port number {n} out of range parsing HostAndPort from \"{text}\""
        ))),
        Err(_) => Err(Error::failed_to_parse("Did not consume whole string.")),
    }
}
