//! Who tells what, for one server.

use crate::collect::{Collector, Source, Tree};
use pando_base::panics::poisoned;
use std::sync::{Arc, RwLock, Weak};

/// All metrics of one server: places in the tree, and who tells what is there. Several may tell something at one place.
#[derive(Default)]
pub struct Registry(RwLock<Vec<(&'static str, Arc<dyn Source>)>>);

/// Told by somebody who may be gone.
struct Asked<T> {
    of: Weak<T>,
    collect: fn(&T, &mut Collector<'_>),
}

impl<T: Send + Sync> Source for Asked<T> {
    fn collect(&self, to: &mut Collector<'_>) {
        if let Some(of) = self.of.upgrade() {
            (self.collect)(&of, to);
        }
    }
}

impl Registry {
    /// What `source` tells is found below a dotted path.
    pub fn add(&self, path: &'static str, source: Arc<dyn Source>) {
        self.0.write().unwrap_or_else(poisoned).push((path, source));
    }
    /// The same for figures that `of` counts or works out when it is asked. The registry does not keep it alive.
    pub fn asked<T>(&self, path: &'static str, of: &Arc<T>, collect: fn(&T, &mut Collector<'_>))
    where
        T: Send + Sync + 'static,
    {
        self.add(path, Arc::new(Asked { of: Arc::downgrade(of), collect }));
    }
    fn collect(&self, wanted: impl Fn(&str) -> bool) -> Tree {
        let all = self.0.read().unwrap_or_else(poisoned);
        let sources: Vec<_> = all.iter().filter(|(path, _)| wanted(path)).cloned().collect();
        drop(all);
        let mut tree = Tree::default();
        for (path, source) in sources {
            tree.collector().within(path, |to| source.collect(to));
        }
        tree
    }
    /// Everything.
    pub fn all(&self) -> Tree {
        self.collect(|_| true)
    }
    /// What lies below one first name; nobody else is asked.
    pub fn section(&self, name: &str) -> Tree {
        let mut tree = self.collect(|path| path.split('.').next() == Some(name));
        match tree.0.pop() {
            Some(crate::collect::Node { is: crate::collect::Is::Branch(below), .. }) => Tree(below),
            _ => Tree::default(),
        }
    }
}
