//! What stages that collect their input held at most, as explain tells it, and what they hold now.

use super::join_stats::JoinStats;
use crate::sort::SortStats;
use pando_bson::DocBuilder;

#[derive(Clone, Debug)]
pub enum Held {
    /// A `$group`: bytes of each accumulator at most, and of all.
    Groups { accumulators: Vec<(Box<str>, u64)>, bytes: u64, spills: u64 },
    /// A `$sort`.
    Rows { bytes: u64, spills: u64 },
    /// A `$setWindowFields`: the largest partition.
    Partition { bytes: u64, on_disk: bool },
}

impl Held {
    pub(super) fn rows(stats: SortStats) -> Held {
        Held::Rows { bytes: stats.total_bytes, spills: stats.spills }
    }
    pub fn write(&self, d: &mut DocBuilder) {
        let spills = match self {
            Held::Groups { accumulators, bytes, spills } => {
                d.doc("maxAccumulatorMemoryUsageBytes", |d| {
                    for (name, n) in accumulators {
                        d.i64(name, *n as i64);
                    }
                });
                d.i64("totalOutputDataSizeBytes", *bytes as i64);
                spills
            }
            Held::Rows { bytes, spills } => {
                d.i64("totalDataSizeSortedBytesEstimate", *bytes as i64);
                spills
            }
            Held::Partition { bytes, on_disk } => {
                d.i64("maxTotalMemoryUsageBytes", *bytes as i64).bool("usedDisk", *on_disk);
                return;
            }
        };
        d.bool("usedDisk", *spills > 0).i64("spills", *spills as i64);
    }
}

/// A stage that has run.
#[derive(Clone, Debug, Default)]
pub struct RanStage {
    pub returned: u64,
    pub join: Option<JoinStats>,
    pub held: Option<Held>,
    /// Of a `$facet`, pipeline by pipeline: the documents it got, and its stages as they are shown.
    pub facets: Vec<(u64, Vec<RanStage>)>,
}
