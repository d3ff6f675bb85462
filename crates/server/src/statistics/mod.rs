//! Figures that requests leave behind: time per collection, and how often plans and indexes were used.

pub(crate) mod plan_use;
pub(crate) mod top;
