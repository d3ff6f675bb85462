//! Whether a range that is too large to be moved moves all the same (SH-MIG-19), as routers, config servers and shards tell each other.

use pando_base::{Error, Result};
use pando_bson::fields::wrong_type;
use pando_bson::{DocBuilder, RawDoc, Value};

/// The field of `_configsvrMoveRange` and `_shardsvrMoveRange`: a number between them, a boolean where clients say it to routers.
pub const FORCE_JUMBO: &str = "forceJumbo";

/// Who has it moved.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ForceJumbo {
    /// Nobody: the donor refuses.
    #[default]
    No,
    /// Somebody who asked for `forceJumbo`.
    Manual,
    /// The balancer, from a shard that is to be removed or where `attemptToBalanceJumboChunks` is set.
    Balancer,
}

impl ForceJumbo {
    const ALL: [ForceJumbo; 3] = [ForceJumbo::No, ForceJumbo::Manual, ForceJumbo::Balancer];

    fn number(self) -> i32 {
        match self {
            ForceJumbo::No => 0,
            ForceJumbo::Manual => 1,
            ForceJumbo::Balancer => 2,
        }
    }
    /// As the arguments of the command `owner` say it; nobody where they do not.
    ///
    /// # Errors
    /// 14 for anything but a 32-bit number, 2 for another number.
    pub fn parse(owner: &str, arguments: &RawDoc) -> Result<ForceJumbo> {
        let number = match arguments.get(FORCE_JUMBO) {
            None => return Ok(ForceJumbo::No),
            Some(Value::Int32(number)) => number,
            Some(v) => return Err(wrong_type(owner, FORCE_JUMBO, &v, &["int"])),
        };
        ForceJumbo::ALL.into_iter().find(|force| force.number() == number).ok_or_else(|| {
            let text = format!(
                "Enumeration value '{number}' for field '{owner}.{FORCE_JUMBO}' is not a valid value."
            );
            Error::bad_value(text)
        })
    }
    pub fn append(self, b: &mut DocBuilder) {
        b.i32(FORCE_JUMBO, self.number());
    }
    pub fn is_forced(self) -> bool {
        self != ForceJumbo::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(v: Value<'_>) -> Result<ForceJumbo> {
        let mut b = DocBuilder::new();
        b.value(FORCE_JUMBO, v);
        ForceJumbo::parse("_shardsvrMoveRange", &b.finish())
    }

    #[test]
    fn only_three_numbers_say_who_forces_a_move() {
        for force in ForceJumbo::ALL {
            let mut b = DocBuilder::new();
            force.append(&mut b);
            assert_eq!(ForceJumbo::parse("x", &b.finish()).unwrap(), force);
        }
        assert_eq!(ForceJumbo::parse("x", RawDoc::empty()).unwrap(), ForceJumbo::No);
        // What 6.0.5 says.
        let wrong = parsed(Value::Int32(7)).unwrap_err();
        assert_eq!(wrong.code.0, 2);
        assert_eq!(
            wrong.message,
            "Enumeration value '7' for field '_shardsvrMoveRange.forceJumbo' is not a valid value."
        );
        for typed in
            [Value::Boolean(true), Value::Int64(1), Value::Double(1.0), Value::String("kForceManual")]
        {
            assert_eq!(parsed(typed).unwrap_err().code.0, 14);
        }
    }
}
