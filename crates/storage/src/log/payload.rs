//! What a log's records hold, as it lies in the files: as it is, or encrypted.
//!
//! One kind in all files of a log: the head of a file says which, and a file of the other kind is refused. A record is bound
//! to its log and its timestamp. It is never sealed twice by one nonce, also where a cut log is written over: nonces count,
//! whatever the files do.

use super::record::{self, Record};
use crate::damage::damaged;
use pando_base::{Error, ErrorCode, Result};
use pando_encryption::{Keys, OVERHEAD, Purpose};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"PANDOLG1";
const MAGIC_SEALED: &[u8; 8] = b"PANDOLG2";

#[derive(Clone)]
pub(crate) struct Payloads {
    /// The log's name.
    pub(crate) log: &'static str,
    keys: Option<Arc<Keys>>,
}

impl Payloads {
    pub(crate) fn new(log: &'static str, keys: Option<Arc<Keys>>) -> Payloads {
        Payloads { log, keys }
    }
    /// What files of this kind begin with.
    pub(crate) fn magic(&self) -> &'static [u8; 8] {
        if self.keys.is_some() { MAGIC_SEALED } else { MAGIC }
    }
    /// A file that begins with `magic` is not of the other kind.
    pub(crate) fn check_kind(&self, magic: &[u8; 8], path: &str) -> Result<()> {
        let (is, should_be) = match (magic, &self.keys) {
            (MAGIC_SEALED, None) => (
                "encrypted",
                "this server has no key for it: either it was started without --enableEncryption, or the folder's key store is missing",
            ),
            (MAGIC, Some(_)) => ("not encrypted", "the folder is: it does not belong here"),
            _ => return Ok(()),
        };
        let text = format!("log file {path} is {is}, and {should_be}");
        Err(Error::new(ErrorCode::InvalidOptions, text))
    }

    /// Bytes that a record takes.
    pub(crate) fn record_len(&self, payload: &[u8]) -> usize {
        record::HEADER + payload.len() + if self.keys.is_some() { OVERHEAD } else { 0 }
    }
    pub(crate) fn encode(&self, out: &mut Vec<u8>, ts: u64, synced: u32, payload: &[u8]) {
        record::encode(out, ts, synced, |out| match &self.keys {
            Some(keys) => keys.seal(Purpose::Record, &self.bound(ts), payload, out),
            None => out.extend_from_slice(payload),
        });
    }
    /// What the record of a file holds.
    pub(crate) fn of(&self, record: &Record<'_>, path: &str) -> Result<Vec<u8>> {
        let Some(keys) = &self.keys else { return Ok(record.payload.to_vec()) };
        keys.opened(Purpose::Record, &self.bound(record.ts), record.payload).ok_or_else(|| {
            damaged(format!("log file {path}: the record of timestamp {} cannot be decrypted", record.ts))
        })
    }
    fn bound(&self, ts: u64) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&ts.to_le_bytes());
        // "oplog" and "local", and what tests call theirs.
        for (to, from) in out[8..].iter_mut().zip(self.log.bytes()) {
            *to = from;
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encryption_keys;

    #[test]
    fn a_record_opens_in_its_log_at_its_time_and_nowhere_else() {
        let keys = Some(encryption_keys(1));
        let (oplog, local) = (Payloads::new("oplog", keys.clone()), Payloads::new("local", keys));
        let mut bytes = Vec::new();
        oplog.encode(&mut bytes, 7, 3, b"an entry of somebody");
        assert_eq!(bytes.len(), oplog.record_len(b"an entry of somebody"));
        assert!(!bytes.windows(5).any(|w| w == b"entry"));
        let record = record::decode(&bytes).expect("a record");
        assert_eq!((record.ts, record.synced), (7, 3));
        assert_eq!(oplog.of(&record, "f").expect("its own"), b"an entry of somebody");
        assert!(local.of(&record, "f").is_err());
        let e = oplog.of(&Record { ts: 8, ..record }, "journal/oplog.3").expect_err("of another time");
        assert!(e.message.contains("journal/oplog.3") && e.message.contains("timestamp 8"), "{e}");
    }

    #[test]
    fn files_of_the_other_kind_are_refused() {
        let (plain, sealed) =
            (Payloads::new("oplog", None), Payloads::new("oplog", Some(encryption_keys(1))));
        for (of, magic, good) in [
            (&plain, plain.magic(), true),
            (&plain, sealed.magic(), false),
            (&sealed, sealed.magic(), true),
            (&sealed, plain.magic(), false),
        ] {
            assert_eq!(of.check_kind(magic, "f").is_ok(), good);
        }
    }
}
