//! What requests on documents are carried out with.

use crate::aggregation::Aggregations;
use crate::cursors::ClientCursors;
use crate::read::Reads;
use crate::transaction::Transactions;
use crate::write::Writes;
use std::sync::Arc;

/// The parts of the way from a command on documents to the door. None of them knows the server: another role may put them
/// together in its own way.
pub(crate) struct Crud {
    pub(crate) reads: Arc<Reads>,
    pub(crate) cursors: ClientCursors,
    pub(crate) aggregations: Aggregations,
    pub(crate) writes: Writes,
    pub(crate) transactions: Arc<Transactions>,
}
