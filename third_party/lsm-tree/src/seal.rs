// PandoDB's addition, under the same licenses as the rest; see PANDO.md.

//! Blocks that are encrypted on disk.
//!
//! Whoever writes tables names a cipher in its [`CompressionType::Sealed`](crate::CompressionType); all blocks of these tables, also
//! filters and properties, are then sealed by it. A sealed block says so in its header, and its first eight bytes name the cipher that
//! opens it, so nothing else has to be known to read one. Ciphers are found by these names in one table of the process.

use crate::{
    table::{block::Header, BlockHandle},
    CompressionType, Slice,
};
use std::{
    collections::BTreeMap,
    fs::File,
    ops::Range,
    sync::{Arc, PoisonError, RwLock},
};

/// Seals and opens blocks.
pub trait BlockCipher: Send + Sync {
    /// `data` sealed together with the type of its block. The result begins with the name of a registered cipher that opens it
    /// (eight bytes, little endian).
    fn seal(&self, block_type: u8, data: &[u8]) -> Option<Vec<u8>>;

    /// Opens in place and returns where the data lies; `None` when this is not what was sealed.
    fn open(&self, block_type: u8, sealed: &mut [u8]) -> Option<Range<usize>>;
}

static CIPHERS: RwLock<BTreeMap<u64, Arc<dyn BlockCipher>>> = RwLock::new(BTreeMap::new());

/// From here on blocks can be sealed and opened by this cipher.
pub fn register(name: u64, cipher: Arc<dyn BlockCipher>) {
    CIPHERS
        .write()
        .unwrap_or_else(PoisonError::into_inner)
        .insert(name, cipher);
}

/// Why a block cannot be opened: no cipher of the name it bears is registered.
pub const UNKNOWN: &str = "its key is not known";

fn find(name: u64) -> crate::Result<Arc<dyn BlockCipher>> {
    CIPHERS
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(&name)
        .cloned()
        .ok_or(crate::Error::Sealed(UNKNOWN))
}

pub(crate) fn seal(name: u64, block_type: u8, data: &[u8]) -> crate::Result<Vec<u8>> {
    find(name)?
        .seal(block_type, data)
        .ok_or(crate::Error::Sealed("it cannot be sealed"))
}

fn open_in_place(block_type: u8, sealed: &mut [u8]) -> crate::Result<Range<usize>> {
    let wrong = crate::Error::Sealed("it is not what was sealed");
    let Some(name) = sealed.first_chunk() else {
        return Err(wrong);
    };
    let cipher = find(u64::from_le_bytes(*name))?;
    cipher.open(block_type, sealed).ok_or(wrong)
}

/// Whether a block of a file is sealed, by its header.
pub(crate) fn is_sealed(file: &File, handle: BlockHandle) -> crate::Result<bool> {
    let header = crate::file::read_exact(file, *handle.offset(), Header::serialized_len())?;
    Ok(Header::decode(&mut &*header)?.1)
}

/// A table is sealed as a whole: a plain block in one is none of its own.
pub(crate) fn expected(compression: CompressionType, sealed: bool) -> crate::Result<()> {
    match compression {
        CompressionType::Sealed(_) if !sealed => {
            Err(crate::Error::Sealed("it is not encrypted, its table is"))
        }
        _ => Ok(()),
    }
}

/// Opens what follows a block's header.
pub(crate) fn open(block_type: u8, sealed: &[u8]) -> crate::Result<Slice> {
    #[warn(unsafe_code)]
    let mut builder = unsafe { Slice::builder_unzeroed(sealed.len()) };
    builder.copy_from_slice(sealed);

    let data = open_in_place(block_type, &mut builder)?;
    let whole: Slice = builder.freeze().into();
    Ok(whole.slice(data))
}

/// Opens a block with its header in place, if it is a sealed one, and returns where the data lies. Whoever finds an error reads the block
/// anew: its bytes are no longer those of the file.
pub(crate) fn open_block(block: &mut [u8]) -> crate::Result<Option<Range<usize>>> {
    let (header, sealed) = Header::decode(&mut &*block)?;
    if !sealed {
        return Ok(None);
    }
    let start = Header::serialized_len();
    let Some(rest) = block.get_mut(start..) else {
        return Err(crate::Error::InvalidHeader("Block"));
    };
    let data = open_in_place(header.block_type.into(), rest)?;
    Ok(Some(start + data.start..start + data.end))
}
