//! Whether a failed call may be made again: decided from data, without a clock. Who calls waits, targets and tries.

use crate::failure::Effect;
use pando_base::limits;

/// What a caller knows of its command.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Retry {
    /// The caller hears the first failure.
    Never,
    /// Carried out twice it has the effect of once: a read, a write with a transaction number, a command that names the
    /// state it leads to.
    Idempotent,
    /// Carried out twice it has another effect: only what was not begun is sent again. A command of several such writes is
    /// [`Retry::Never`].
    NotIdempotent,
}

/// After `tries` tries (one or more) the last one ended with `effect`.
pub fn may_retry(effect: Effect, retry: Retry, tries: u32) -> bool {
    let allowed = match (retry, effect) {
        (Retry::Never, _) | (_, Effect::Final) => false,
        (Retry::Idempotent, Effect::NotBegun | Effect::Unknown) => true,
        (Retry::NotIdempotent, effect) => effect == Effect::NotBegun,
    };
    allowed && tries < limits::RPC_TRIES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_one_effect_is_sent_again_when_nobody_knows_what_became_of_it() {
        use {Effect::*, Retry::*};
        let story = [
            (NotBegun, [false, true, true]),
            (Unknown, [false, true, false]),
            (Final, [false, false, false]),
        ];
        for (effect, expected) in story {
            let said = [Never, Idempotent, NotIdempotent].map(|retry| may_retry(effect, retry, 1));
            assert_eq!(said, expected, "{effect:?}");
        }
    }

    #[test]
    fn tries_end() {
        let tries = (1..100).take_while(|n| may_retry(Effect::Unknown, Retry::Idempotent, *n)).count() + 1;
        assert_eq!(tries as u32, limits::RPC_TRIES_MAX);
    }
}
