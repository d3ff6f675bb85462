//! The condition that a test of buckets becomes: the test itself, and beside it what that says of single ends.

use super::bucket::{BucketTest, cmp};
use super::compare::{CmpOp, Comparison};
use super::node::{Node, Pred};
use super::operand::Operand;
use crate::plan::interval::Interval;
use std::sync::Arc;

impl BucketTest {
    /// The test and what it says of single ends.
    pub(super) fn into_node(self) -> Node {
        let mut all = self.ends();
        all.insert(0, Node::leaf("control", Pred::Bucket(Arc::new(self))));
        Node::And(all)
    }

    /// True of every bucket that passes, unless it hides values: those make an index one over arrays, and then it is not
    /// asked.
    fn ends(&self) -> Vec<Node> {
        let by = |a: &&Operand, b: &&Operand| cmp(&a.elem(), &b.elem());
        let (Some(least), Some(most)) = (self.values.iter().min_by(by), self.values.iter().max_by(by)) else {
            return Vec::new();
        };
        let leaf = |end: &str, op: CmpOp, v: Operand| {
            Node::leaf(&format!("control.{end}.{}", self.path), Pred::Implied(Comparison::new(op, v, None)))
        };
        let lowest = || leaf("max", CmpOp::Gte, Interval::of_class(least.ty()).low);
        let highest = || {
            let class = Interval::of_class(most.ty());
            let op = if class.high_inclusive { CmpOp::Lte } else { CmpOp::Lt };
            leaf("min", op, class.high)
        };
        let mut out = match self.op {
            CmpOp::Eq => vec![leaf("min", CmpOp::Lte, most.clone()), leaf("max", CmpOp::Gte, least.clone())],
            CmpOp::Lt | CmpOp::Lte => vec![leaf("min", self.op, most.clone())],
            CmpOp::Gt | CmpOp::Gte => vec![leaf("max", self.op, least.clone())],
        };
        match self.op {
            CmpOp::Lt | CmpOp::Lte if !self.across => out.push(lowest()),
            CmpOp::Gt | CmpOp::Gte if !self.across => out.push(highest()),
            _ => {}
        }
        out
    }
}
