//! What the values of running expressions take together: bounded, however they nest.

use super::Val;
use pando_base::limits::EXPRESSION_VALUES_BYTES_MAX;
use pando_base::{Error, ErrorCode, Result, patience};
use std::cell::Cell;

/// Smaller values are not counted: no expression is deep enough for them to add up.
const SMALL: usize = 16 << 10;
/// Bytes that are read or copied in one step.
const BYTES_PER_STEP: usize = 32;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Bytes of one value, counted while this lives.
#[derive(Default)]
pub(crate) struct Held(usize);

impl Held {
    #[inline]
    pub(crate) fn of(v: &Val<'_>) -> Result<Held> {
        let mut held = Held::default();
        held.set(v.heap_bytes())?;
        Ok(held)
    }

    /// The value takes so much by now.
    #[inline]
    pub(crate) fn set(&mut self, bytes: usize) -> Result<()> {
        if bytes <= SMALL && self.0 == 0 { Ok(()) } else { self.count(bytes) }
    }

    fn count(&mut self, bytes: usize) -> Result<()> {
        let others = HELD.get() - self.0;
        if others + bytes > EXPRESSION_VALUES_BYTES_MAX {
            return Err(too_much());
        }
        HELD.set(others + bytes);
        self.0 = bytes;
        Ok(())
    }

    /// It grows by so much, which takes its time.
    #[inline]
    pub(crate) fn grow_to(&mut self, bytes: usize, by: usize) -> Result<()> {
        patience::spend(1 + by / BYTES_PER_STEP)?;
        self.set(bytes)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.0 > 0 {
            HELD.set(HELD.get() - self.0);
        }
    }
}

#[cold]
fn too_much() -> Error {
    Error::new(
        ErrorCode::ExceededMemoryLimit,
        format!("Values of expressions would use too much memory (over {EXPRESSION_VALUES_BYTES_MAX} bytes)"),
    )
}

/// Roughly what looking at all of a value takes.
#[inline]
pub(super) fn steps(v: &Val<'_>) -> usize {
    let bytes = match v {
        Val::Str(s) => s.len(),
        Val::Doc(d) | Val::Array(d) => d.byte_len(),
        Val::Ref(pando_bson::Value::String(s)) => s.len(),
        Val::Ref(pando_bson::Value::Array(a) | pando_bson::Value::Document(a)) => a.byte_len(),
        _ => 0,
    };
    bytes / BYTES_PER_STEP
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_count_together_and_no_longer_than_they_live() {
        let big = EXPRESSION_VALUES_BYTES_MAX / 2 + 1;
        let mut one = Held::default();
        one.set(big).unwrap();
        assert_eq!(Held::default().set(big).unwrap_err().code, ErrorCode::ExceededMemoryLimit);
        drop(one);
        Held::default().set(big).unwrap();
    }
}
