//! One sequence of values: the last one, and the differences that lead from it to the next ones.

use super::coding::{Kind, Scale, from_number, kind, signed_narrow, signed_wide, to_number};
use super::simple8b::Numbers;
use super::{Literal, malformed};
use pando_base::Result;

#[derive(Clone, Debug)]
pub(super) struct Stream {
    last: Option<Literal>,
    /// The last value as a number, if it is one.
    number: Option<u128>,
    /// The last difference, of types that keep the difference of differences.
    step: i64,
    scale: Scale,
    numbers: Numbers,
    /// What the last block ended with, for blocks that repeat it.
    repeated: Option<u128>,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream {
            last: None,
            number: None,
            step: 0,
            scale: Scale::Bits,
            numbers: Numbers::default(),
            repeated: Some(0),
        }
    }
}

/// What a row has; the value is [`Stream::value`].
pub(super) enum Slot {
    Missing,
    Value,
}

impl Stream {
    /// Goes on from a value that is given as it is.
    pub(super) fn begin(&mut self, v: impl Into<Option<Literal>>) {
        *self = Stream { last: v.into(), ..Stream::default() };
        self.number = self.last.as_ref().and_then(|v| to_number(v, self.scale));
    }

    pub(super) fn value(&self) -> Result<&Literal> {
        self.last.as_ref().ok_or_else(|| malformed("a difference to nothing"))
    }

    pub(super) fn take_blocks(&mut self, control: u8, blocks: &[u8]) -> Result<()> {
        let scale = Scale::of(control)?;
        if scale != self.scale {
            self.scale = scale;
            self.number = self.last.as_ref().and_then(|v| to_number(v, scale));
        }
        self.numbers = Numbers::new(blocks);
        Ok(())
    }

    pub(super) fn has_more(&self) -> bool {
        self.numbers.has_more()
    }

    /// The next row of the blocks at hand; `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<Slot>> {
        let Some(found) = self.numbers.next(&mut self.repeated)? else { return Ok(None) };
        let Some(difference) = found else { return Ok(Some(Slot::Missing)) };
        let v = self.last.as_mut().ok_or_else(|| malformed("a difference to nothing"))?;
        let kind = kind(v.ty);
        if difference == 0 && kind != Kind::Twice {
            return Ok(Some(Slot::Value));
        }
        let before = self.number.ok_or_else(|| malformed("a difference to a value that is no number"))?;
        let narrow = |step: i64| u128::from((before as u64).wrapping_add(step as u64));
        let number = match kind {
            Kind::Narrow => narrow(signed_narrow(difference)),
            Kind::Twice => {
                self.step = self.step.wrapping_add(signed_narrow(difference));
                narrow(self.step)
            }
            Kind::Wide => before.wrapping_add(signed_wide(difference)),
            Kind::Repeat => return Err(malformed("a difference of values that have none")),
        };
        from_number(v, number, self.scale)?;
        self.number = Some(number);
        Ok(Some(Slot::Value))
    }
}
