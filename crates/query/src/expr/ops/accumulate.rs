//! `$sum`, `$avg`, `$min`, `$max`, `$stdDevPop`, `$stdDevSamp` over arguments, or over the elements of a single
//! array.

use crate::accumulator::{Accumulator, Avg, MinMax, Stays, StdDev, Sum};
use crate::expr::{Call, Val};
use pando_base::Result;

fn fold<'v>(args: &[Val<'v>], call: &Call<'_>, mut acc: impl Accumulator) -> Result<Val<'v>> {
    match args {
        [one] if one.as_array().is_some() => {
            for e in one.as_array().into_iter().flatten() {
                acc.add(Val::Ref(e.value()), call.ctx)?;
            }
        }
        many => {
            for v in many {
                acc.add(v.borrowed(), call.ctx)?;
            }
        }
    }
    acc.result()
}

pub(in crate::expr) fn sum<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, Sum::default())
}
pub(in crate::expr) fn avg<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, Avg::default())
}
pub(in crate::expr) fn min<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, MinMax::new(false, Stays::First))
}
pub(in crate::expr) fn max<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, MinMax::new(true, Stays::First))
}
pub(in crate::expr) fn std_dev_pop<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, StdDev::new(false))
}
pub(in crate::expr) fn std_dev_samp<'v>(args: &[Val<'v>], call: &Call<'_>) -> Result<Val<'v>> {
    fold(args, call, StdDev::new(true))
}
