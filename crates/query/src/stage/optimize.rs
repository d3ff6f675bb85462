//! What is done to a parsed pipeline before anybody asks it anything: stages move, and join. It stays data.

use super::limit::Limit;
use super::pipeline::Pipeline;
use super::skip::Skip;
use super::spec::Spec;
use pando_base::Result;

impl Pipeline {
    pub(crate) fn optimize(&mut self) -> Result<()> {
        for stage in &mut self.stages {
            stage.optimize(&self.ctx)?;
        }
        self.measure_in_buckets()?;
        self.move_filters_forward()?;
        self.push_into_buckets()?;
        let mut at = 1;
        while at < self.stages.len() {
            let (before, behind) = self.stages.split_at_mut(at);
            let absorbed = match (before.last_mut().map(|s| &mut s.spec), &behind[0].spec) {
                (Some(Spec::Lookup(join)), Spec::Unwind(unwind)) => {
                    join.absorb_unwind(unwind, &behind[0].text)
                }
                _ => false,
            };
            if absorbed {
                self.stages.remove(at);
            }
            at += 1;
        }
        self.filter_joined_documents()?;
        self.move_sorts_forward();
        self.move_limits_forward();
        // A sort that is followed by a limit keeps only the top.
        for at in 1..self.stages.len() {
            let Spec::Limit(Limit(mut limit)) = self.stages[at].spec else { continue };
            let mut before = at - 1;
            while let (Spec::Skip(Skip(n)), true) = (&self.stages[before].spec, before > 0) {
                limit = limit.saturating_add(*n);
                before -= 1;
            }
            if let Some(sort) = self.stages[before].sort_mut() {
                sort.limit = Some(limit);
            }
        }
        self.narrow_held();
        self.narrow_unpacked();
        Ok(())
    }
}
