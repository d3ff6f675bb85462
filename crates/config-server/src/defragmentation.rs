//! How far the defragmentation of a collection has come, as it is stored (SH-BAL-7).

use crate::documents::with_fields;
use crate::manager::CatalogManager;
use crate::metadata::ns;
use crate::mutexes::Subject;
use pando_access::{Change, Interrupt};
use pando_balancer::Phase;
use pando_base::{Result, Uuid};
use pando_bson::{RawDoc, Value};
use pando_routing::CollectionEntry;

const WANTED: &str = "defragmentCollection";
const PHASE: &str = "defragmentationPhase";

/// Where somebody wants it: the phase that it is in.
pub(crate) fn phase_of(entry: &RawDoc) -> Option<Phase> {
    let wanted = entry.get(WANTED).is_some_and(|v| v.is_truthy());
    wanted.then(|| Phase::parse(entry.get(PHASE).and_then(|v| v.as_str())))
}

/// What a collection's entry says from now on; it begins with the first phase.
pub(crate) fn fields(wanted: bool) -> [(&'static str, Option<Value<'static>>); 2] {
    [(WANTED, wanted.then_some(Value::Boolean(true))), (PHASE, None)]
}

impl CatalogManager {
    /// A phase is over, and the next one begins, or nothing more is to be done. Nothing happens where somebody else has gone on, or has
    /// called it off.
    pub async fn end_defragmentation_phase(
        &self,
        interrupt: &dyn Interrupt,
        of: &str,
        uuid: Uuid,
        ended: Phase,
    ) -> Result<()> {
        self.prepare().await?;
        let _one = self.lock(interrupt, Subject::Collection(of.to_owned())).await?;
        let Some(was) = self.metadata().collection(of)? else { return Ok(()) };
        if CollectionEntry::parse(&was)?.uuid != uuid || phase_of(&was) != Some(ended) {
            return Ok(());
        }
        let now = match ended.next() {
            Some(next) => with_fields(&was, &[(PHASE, Some(Value::String(next.text())))]),
            None => with_fields(&was, &fields(false)),
        };
        self.write(interrupt, &[Change::Replace { ns: ns("collections"), was, now }]).await.map(drop)
    }
}
