//! Rows of a collection that lie elsewhere than in storage.

use pando_base::Result;
use pando_bson::DocBuf;
use std::fmt::Debug;

/// Where the rows of such a collection come from.
pub trait Table: Debug + Send + Sync {
    /// The rows there are now, each as `{_id: ...}`.
    fn ids(&self) -> Vec<DocBuf>;
    /// One of them; `None` when it is gone.
    fn row(&self, id: &DocBuf) -> Result<Option<DocBuf>>;
}
