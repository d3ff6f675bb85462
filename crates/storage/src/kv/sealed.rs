//! Blocks of tables, encrypted: the cipher that the table crate asks.

use lsm_tree::CompressionType;
use lsm_tree::seal::{BlockCipher, register};
use pando_base::{Error, ErrorCode, Result};
use pando_encryption::{Keys, Purpose};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

struct Blocks(Arc<Keys>);

impl BlockCipher for Blocks {
    fn seal(&self, block_type: u8, data: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.0.seal(Purpose::Block, &[block_type], data, &mut out);
        Some(out)
    }
    fn open(&self, block_type: u8, sealed: &mut [u8]) -> Option<Range<usize>> {
        self.0.open(Purpose::Block, &[block_type], sealed)
    }
}

/// How a tree with these keys writes its blocks. From here on those sealed with any of them can be read in this process.
pub(super) fn kind(keys: Option<&Arc<Keys>>) -> CompressionType {
    let Some(keys) = keys else { return CompressionType::None };
    let ids = keys.ids();
    for id in &ids {
        register(*id, Arc::new(Blocks(keys.clone())));
    }
    CompressionType::Sealed(ids[0])
}

/// A folder is encrypted as a whole or not at all.
pub(super) fn check_kind(table: bool, folder: bool, path: &Path) -> Result<()> {
    if table == folder {
        return Ok(());
    }
    let (is, other) = if table { ("encrypted", "not") } else { ("not encrypted", "encrypted") };
    let text =
        format!("table file {} is {is}, and the folder is {other}: it does not belong here", path.display());
    Err(Error::new(ErrorCode::InvalidOptions, text))
}

#[cold]
pub(super) fn key_missing() -> Error {
    let text = format!(
        "a block is encrypted with a key that this server does not have: the folder's key store ({}) is missing, or is not \
         the one that belongs to these tables. Put it back (backups hold one) and start with its master key",
        pando_encryption::store::PATH
    );
    Error::new(ErrorCode::InvalidOptions, text)
}
