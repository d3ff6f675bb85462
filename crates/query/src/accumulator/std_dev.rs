//! `$stdDevPop` and `$stdDevSamp`, in one pass (Welford), always in doubles.

use super::Accumulator;
use crate::ctx::QueryCtx;
use crate::expr::Val;
use crate::number::Number;
use pando_base::Result;
use pando_bson::DocBuilder;

pub(crate) struct StdDev {
    sample: bool,
    count: i64,
    mean: f64,
    /// Sum of squared distances from the mean.
    m2: f64,
}

impl StdDev {
    pub(crate) fn new(sample: bool) -> StdDev {
        StdDev { sample, count: 0, mean: 0.0, m2: 0.0 }
    }
}

impl Accumulator for StdDev {
    fn add(&mut self, v: Val<'_>, _: &QueryCtx) -> Result<()> {
        let Some(n) = v.value().and_then(Number::of) else { return Ok(()) };
        let x = n.to_f64();
        self.count += 1;
        let delta = x - self.mean;
        if delta != 0.0 {
            self.mean += delta / self.count as f64;
            self.m2 += delta * (x - self.mean);
        }
        Ok(())
    }
    fn result(&mut self) -> Result<Val<'static>> {
        let adjusted = if self.sample { self.count - 1 } else { self.count };
        if adjusted <= 0 {
            return Ok(Val::NULL);
        }
        let v = (self.m2 / adjusted as f64).sqrt();
        Ok(Val::double(v))
    }
    fn partial(&mut self) -> Result<Val<'static>> {
        let mut b = DocBuilder::new();
        b.i64("n", self.count).f64("m", self.mean).f64("s", self.m2);
        Ok(Val::Doc(b.finish()))
    }
    fn merge(&mut self, partial: Val<'_>, _: &QueryCtx) -> Result<()> {
        let Some(d) = partial.as_doc() else { return Ok(()) };
        // Here, and as MongoDB's servers send it.
        let part = |own: &str, theirs: &str| d.get(own).or_else(|| d.get(theirs));
        let count = part("n", "count").and_then(|v| v.as_i64()).unwrap_or(0);
        let mean = part("m", "mean").and_then(|v| v.as_f64()).unwrap_or(0.0);
        let m2 = part("s", "m2").and_then(|v| v.as_f64()).unwrap_or(0.0);
        if count == 0 {
            return Ok(());
        }
        let total = self.count + count;
        let delta = mean - self.mean;
        if delta != 0.0 {
            self.mean = (self.count as f64 * self.mean + count as f64 * mean) / total as f64;
            self.m2 += delta * delta * self.count as f64 * count as f64 / total as f64;
        }
        self.m2 += m2;
        self.count = total;
        Ok(())
    }
}
