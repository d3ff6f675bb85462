//! A text that a backtracking match looks at: each look counts as work of the operation, so that the match ends with it.

use fancy_regex::Input;
use pando_base::patience;

/// Bytes of the text per step of one look: a look may search all of it.
const BYTES_PER_STEP: usize = 256;

pub(super) struct Subject<'t> {
    text: &'t str,
    steps: usize,
}

impl<'t> Subject<'t> {
    pub(super) fn new(text: &'t str) -> Subject<'t> {
        Subject { text, steps: 1 + text.len() / BYTES_PER_STEP }
    }
}

impl Input for Subject<'_> {
    type Match<'m>
        = <str as Input>::Match<'m>
    where
        Self: 'm;

    fn len(&self) -> usize {
        self.text.len()
    }
    fn as_bytes(&self) -> &[u8] {
        patience::spend_or_unwind(self.steps);
        self.text.as_bytes()
    }
    fn is_char_boundary(&self, at: usize) -> bool {
        self.text.is_char_boundary(at)
    }
    fn is_ascii(&self) -> bool {
        self.text.is_ascii()
    }
    fn prev_codepoint_ix(&self, at: usize) -> usize {
        self.text.prev_codepoint_ix(at)
    }
    fn make_match<'m>(&'m self, start: usize, end: usize) -> Self::Match<'m> {
        self.text.make_match(start, end)
    }
    fn advance_position(&self, at: usize) -> usize {
        self.text.advance_position(at)
    }
}
