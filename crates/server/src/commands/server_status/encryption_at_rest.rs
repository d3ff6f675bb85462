//! `encryptionAtRest`: whether the data folder is encrypted, and with which keys.

use super::super::prelude::*;
use pando_base::Millis;

/// There is none where nothing is encrypted.
pub(super) fn is_absent(server: &Server) -> bool {
    server.config.storage.keys.is_none()
}

pub(super) fn append(server: &Server, d: &mut DocBuilder) {
    let Some(keys) = &server.config.storage.keys else { return };
    let status = keys.status();
    d.bool("encryptionEnabled", true);
    d.str("encryptionKeyId", &status.master_key_id);
    d.str("encryptionCipherMode", status.cipher);
    d.i64("dataKeys", status.data_keys as i64);
    d.date("newestDataKey", status.newest_ms as Millis);
}
