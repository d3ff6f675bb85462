//! A cheap, shared, immutable run of bytes: what `get` and cursors hand out.
//!
//! Short runs (up to 20 bytes) lie inline; longer ones share one allocation, often the table block they were
//! read from. Cloning never copies the content. A row's header is skipped by an offset, not by copying.

use byteview::ByteView;
use lsm_tree::Slice;
use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;

/// Shared bytes.
#[derive(Clone, Default)]
pub struct Bytes {
    slice: Slice,
    skip: u32,
}

impl Bytes {
    pub fn new() -> Bytes {
        Bytes::default()
    }
    /// The same bytes without the first `n`.
    pub(crate) fn from_slice(slice: Slice, skip: usize) -> Bytes {
        debug_assert!(slice.len() >= skip);
        Bytes { slice, skip: skip as u32 }
    }
    /// A row's payload together with the header in front of it, as tables hold it.
    pub(crate) fn with_header(&self, header: &[u8]) -> Option<Slice> {
        (self.skip as usize == header.len() && self.slice.starts_with(header)).then(|| self.slice.clone())
    }
    pub fn as_slice(&self) -> &[u8] {
        self
    }
    /// A part that shares the allocation.
    pub fn part(&self, range: std::ops::Range<usize>) -> Bytes {
        let skip = self.skip as usize;
        let view = ByteView::from(self.slice.clone());
        Bytes { slice: Slice::from(view.slice(skip + range.start..skip + range.end)), skip: 0 }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.slice[self.skip as usize..]
    }
}
impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self
    }
}
impl Borrow<[u8]> for Bytes {
    fn borrow(&self) -> &[u8] {
        self
    }
}
impl From<&[u8]> for Bytes {
    fn from(b: &[u8]) -> Bytes {
        Bytes { slice: Slice::from(b), skip: 0 }
    }
}
impl From<Slice> for Bytes {
    fn from(slice: Slice) -> Bytes {
        Bytes { slice, skip: 0 }
    }
}
impl From<Vec<u8>> for Bytes {
    fn from(b: Vec<u8>) -> Bytes {
        Bytes { slice: Slice::from(b), skip: 0 }
    }
}
impl PartialEq for Bytes {
    fn eq(&self, other: &Bytes) -> bool {
        **self == **other
    }
}
impl Eq for Bytes {}
impl PartialOrd for Bytes {
    fn partial_cmp(&self, other: &Bytes) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Bytes {
    fn cmp(&self, other: &Bytes) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}
impl Hash for Bytes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
