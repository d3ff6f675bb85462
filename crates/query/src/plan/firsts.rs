//! A `$group` of which one document for each group is enough, as the planner takes it.

/// What a `$group` keeps of each group, when that is one document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pick {
    /// Only the value it is grouped by.
    Any,
    First,
    Last,
}

/// A `$group` by one path that looks at one document of each group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Firsts {
    pub path: String,
    pub pick: Pick,
}
