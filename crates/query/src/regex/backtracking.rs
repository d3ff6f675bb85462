//! Patterns that take backtracking, behind a rough pattern without what makes them so: where that one does not match,
//! which takes a time in proportion to the text, nothing does.

use super::Groups;
use super::subject::Subject;
use fancy_regex::{RegexBuilder, Result};
use pando_base::limits;

#[derive(Clone)]
pub(super) struct Backtracking {
    exact: fancy_regex::Regex,
    /// Matches at least where the exact one does.
    rough: Option<regex::bytes::Regex>,
}

impl Backtracking {
    pub(super) fn new(exact: &str, rough: Option<&str>) -> Result<Backtracking> {
        let linear = |p| {
            let mut builder = regex::bytes::RegexBuilder::new(p);
            builder.size_limit(limits::REGEX_PROGRAM_BYTES_MAX).nest_limit(limits::REGEX_NESTING_MAX);
            builder.build().ok()
        };
        let exact = RegexBuilder::new(exact)
            .backtrack_limit(limits::REGEX_BACKTRACKS_MAX)
            .delegate_size_limit(limits::REGEX_PROGRAM_BYTES_MAX)
            .build()?;
        Ok(Backtracking { exact, rough: rough.and_then(linear) })
    }

    /// Where the first match after `from` begins at the earliest.
    fn earliest(&self, subject: &str, from: usize) -> Option<usize> {
        let Some(rough) = &self.rough else { return Some(from) };
        let start = rough.find_at(subject.as_bytes(), from)?.start();
        (from..=start).rev().find(|at| subject.is_char_boundary(*at))
    }

    pub(super) fn is_match(&self, subject: &str) -> Result<bool> {
        match self.earliest(subject, 0) {
            Some(at) => Ok(self.exact.find_from_pos(&Subject::new(subject), at)?.is_some()),
            None => Ok(false),
        }
    }

    pub(super) fn captures_at(&self, subject: &str, from: usize) -> Result<Option<Groups>> {
        let Some(at) = self.earliest(subject, from) else { return Ok(None) };
        let subject = Subject::new(subject);
        let found = self.exact.captures_from_pos(&subject, at)?;
        Ok(found.map(|c| c.iter().map(|g| g.map(|g| (g.start(), g.end()))).collect()))
    }

    pub(super) fn group_count(&self) -> usize {
        self.exact.captures_len() - 1
    }
}
