//! Sort keys for rows that nobody sorted.

use super::needs::Needs;
use super::parsed::Parsed;
use super::row::Row;
use super::running::{Running, Start};
use super::step::Step;
use super::upstream::Upstream;
use crate::facts::Facts;
use pando_base::Result;
use pando_bson::DocBuf;

/// In front of all stages where a sort key is asked for and nothing sorts: it has no values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsorted;

impl Parsed for Unsorted {
    fn start(self, _: &mut Start<'_>) -> Result<Box<dyn Running>> {
        Ok(Box::new(self))
    }
    fn needs(&self, _: &mut Needs) {}
}

impl Running for Unsorted {
    fn next(&mut self, up: &mut Upstream<'_>) -> Result<Step> {
        Ok(match up.next()? {
            Step::Row(row) => {
                let sort_key = Some(DocBuf::default());
                let facts = Facts { sort_key, ..row.facts().cloned().unwrap_or_default() };
                Step::Row(Row::with_facts(row, Some(Box::new(facts))))
            }
            other => other,
        })
    }
}
