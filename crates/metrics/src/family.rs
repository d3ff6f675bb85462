//! The same metrics for each value of a label.

use crate::collect::{Collector, Source};

/// One `T` for each value of a label; all are made at once, so that counting needs no lock.
#[derive(Debug)]
pub struct Family<T> {
    label: &'static str,
    members: Vec<(&'static str, T)>,
}

impl<T: Default> Family<T> {
    pub fn new(label: &'static str, values: &[&'static str]) -> Family<T> {
        Family { label, members: values.iter().map(|v| (*v, T::default())).collect() }
    }
}

impl<T> Family<T> {
    /// The one of a value of the label.
    pub fn of(&self, value: &str) -> Option<&T> {
        self.members.iter().find(|(v, _)| *v == value).map(|(_, t)| t)
    }
}

impl<T: Source> Source for Family<T> {
    fn collect(&self, to: &mut Collector<'_>) {
        for (value, member) in &self.members {
            to.labelled(self.label, *value, |to| member.collect(to));
        }
    }
}
