//! Default read and write concerns (R-DWC-1..6): explicit on the command, then cluster-wide, then implicit.

use pando_base::{Millis, Timestamp};
use pando_bson::{DocBuf, DocBuilder, RawDoc, Value};
use pando_command::concern::Provenance;
use pando_command::{ReadConcern, ReadLevel, W, WriteConcern};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

/// What `setDefaultRWConcern` has set; absent fields leave the implicit default in force.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterWide {
    pub(crate) read_level: Option<&'static str>,
    pub(crate) write: Option<WriteConcern>,
    pub(crate) update_op_time: Option<Timestamp>,
    pub(crate) update_wall_ms: Millis,
    /// When this process last read or wrote the setting.
    pub(crate) local_wall_ms: Millis,
}

impl ClusterWide {
    /// The document kept in `config.settings`.
    pub(crate) fn to_doc(&self, id: &str) -> DocBuf {
        let mut b = DocBuilder::new();
        b.str("_id", id);
        if let Some(level) = self.read_level {
            b.doc("defaultReadConcern", |d| {
                d.str("level", level);
            });
        }
        if let Some(wc) = &self.write {
            b.doc("defaultWriteConcern", |d| append_write_concern(d, wc));
        }
        if let Some(ts) = self.update_op_time {
            b.timestamp("updateOpTime", ts);
        }
        b.date("updateWallClockTime", self.update_wall_ms);
        b.finish()
    }
    /// Reads that document; fields that make no sense count as absent.
    pub(crate) fn from_doc(doc: &RawDoc) -> ClusterWide {
        let read = doc.get("defaultReadConcern").and_then(|v| ReadConcern::parse(&v).ok());
        ClusterWide {
            read_level: read.and_then(|rc| rc.level).map(|level| level.text()),
            write: doc.get("defaultWriteConcern").and_then(|v| WriteConcern::parse(&v).ok()),
            update_op_time: match doc.get("updateOpTime") {
                Some(Value::Timestamp(ts)) => Some(ts),
                _ => None,
            },
            update_wall_ms: match doc.get("updateWallClockTime") {
                Some(Value::DateTime(ms)) => ms,
                _ => 0,
            },
            local_wall_ms: 0,
        }
    }
}

pub(crate) fn append_write_concern(b: &mut DocBuilder, wc: &WriteConcern) {
    match &wc.w {
        W::Nodes(n) => b.i32("w", *n),
        W::Majority => b.str("w", "majority"),
        W::Mode(s) => b.str("w", s),
        W::Tags(d) => b.raw_doc("w", d),
    };
    if let Some(j) = wc.j {
        b.bool("j", j);
    }
    b.i32("wtimeout", wc.wtimeout_ms as i32);
}

/// Every read asks for the level, and every write for the write concern.
#[derive(Default)]
pub(crate) struct RwDefaults {
    set: Mutex<Arc<ClusterWide>>,
    reads_by_level: AtomicBool,
}

impl RwDefaults {
    /// What the set waits for when a client does not say so.
    pub(crate) fn write_concern(&self) -> Option<WriteConcern> {
        let given = self.get().write.clone()?;
        Some(WriteConcern { provenance: Provenance::CustomDefault, ..given })
    }
    /// The level that clients read by who do not say so.
    pub(crate) fn read_level(&self) -> Option<ReadLevel> {
        if !self.reads_by_level.load(Acquire) {
            return None;
        }
        ReadLevel::named(self.get().read_level?)
    }
    pub(crate) fn get(&self) -> Arc<ClusterWide> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
    pub(crate) fn set(&self, v: ClusterWide) {
        let by_level = v.read_level.is_some();
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(v);
        self.reads_by_level.store(by_level, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    #[test]
    fn the_stored_document_reads_back() {
        let given = doc! { "w": 1, "wtimeout": 70 }.to_raw();
        let v = ClusterWide {
            read_level: Some("majority"),
            write: Some(WriteConcern::parse(&Value::Document(&given)).unwrap()),
            update_op_time: Some(Timestamp::new(7, 3)),
            update_wall_ms: 12,
            local_wall_ms: 0,
        };
        let back = ClusterWide::from_doc(&v.to_doc("x"));
        assert_eq!((back.read_level, back.update_op_time), (v.read_level, v.update_op_time));
        let write = back.write.unwrap();
        assert_eq!((write.w, write.wtimeout_ms), (W::Nodes(1), 70));
    }
}
