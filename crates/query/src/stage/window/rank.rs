//! `$rank`, `$denseRank`, `$documentNumber`.

use super::function::Function;
use super::partition::Partition;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use pando_base::Result;
use pando_bson::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Rank,
    Dense,
    Number,
}

pub(super) struct Rank {
    kind: Kind,
    rank: i64,
}

impl Rank {
    pub(super) fn new(kind: Kind) -> Rank {
        Rank { kind, rank: 0 }
    }
}

impl Function for Rank {
    fn begin(&mut self, _: &Partition, _: &QueryCtx) -> Result<()> {
        self.rank = 0;
        Ok(())
    }
    fn value(&mut self, p: &Partition, at: usize, ctx: &QueryCtx) -> Result<(Val<'static>, usize)> {
        let tied = at > 0 && self.kind != Kind::Number && {
            let (a, b) = (p.sort_value(at - 1)?, p.sort_value(at)?);
            let known = |v: &Val<'_>| !v.is_missing();
            known(&a) == known(&b)
                && ctx.compare(a.value().unwrap_or(Value::Null), b.value().unwrap_or(Value::Null)).is_eq()
        };
        if !tied {
            self.rank = if self.kind == Kind::Rank { at as i64 + 1 } else { self.rank + 1 };
        }
        Ok((Val::count(self.rank as usize), 1))
    }
}
