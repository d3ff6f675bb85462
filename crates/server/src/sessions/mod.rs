//! Logical sessions beyond one request: what is kept of them on disk, the set's record of them, images of retried
//! `findAndModify`, and the keys that sign cluster times.

pub(crate) mod kept;
pub(crate) mod refresh;
pub(crate) mod retry_images;
