//! Names in the order they were written, found without looking at each of them.

use pando_base::{HashMap, HashSet};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

/// So many names are compared one by one.
const COMPARED: usize = 16;

/// A list of named things. Of equal names the first is found.
#[derive(Clone, Debug)]
pub(crate) struct NamedList<T> {
    items: Vec<(Box<str>, T)>,
    /// Positions by name, once there are more than [`COMPARED`].
    at: HashMap<Box<[u8]>, u32>,
}

impl<T> Default for NamedList<T> {
    fn default() -> NamedList<T> {
        NamedList { items: Vec::new(), at: HashMap::default() }
    }
}

impl<T> NamedList<T> {
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        if self.items.len() <= COMPARED {
            return self.items.iter().position(|(n, _)| n.as_bytes() == name);
        }
        self.at.get(name).map(|at| *at as usize)
    }
    pub(crate) fn things_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.items.iter_mut().map(|(_, thing)| thing)
    }
    pub(crate) fn push(&mut self, name: &str, thing: T) {
        self.items.push((name.into(), thing));
        match self.items.len() {
            0..=COMPARED => {}
            n if self.at.is_empty() => self.index_from(0, n),
            n => self.index_from(n - 1, n),
        }
    }
    pub(crate) fn push_front(&mut self, name: &str, thing: T) {
        self.items.insert(0, (name.into(), thing));
        self.index_again();
    }
    pub(crate) fn remove(&mut self, at: usize) -> T {
        let (_, thing) = self.items.remove(at);
        self.index_again();
        thing
    }
    fn index_again(&mut self) {
        self.at.clear();
        if self.items.len() > COMPARED {
            self.index_from(0, self.items.len());
        }
    }
    fn index_from(&mut self, from: usize, to: usize) {
        for (at, (name, _)) in self.items.iter().enumerate().take(to).skip(from) {
            self.at.entry(name.as_bytes().into()).or_insert(at as u32);
        }
    }
}

impl<T> From<Vec<(Box<str>, T)>> for NamedList<T> {
    fn from(items: Vec<(Box<str>, T)>) -> NamedList<T> {
        let mut list = NamedList { items, at: HashMap::default() };
        list.index_again();
        list
    }
}
impl<T> Deref for NamedList<T> {
    type Target = [(Box<str>, T)];
    fn deref(&self) -> &Self::Target {
        &self.items
    }
}
impl<T> DerefMut for NamedList<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.items
    }
}

/// The names met so far.
#[derive(Default)]
pub(crate) struct Seen<'n> {
    few: Vec<&'n str>,
    many: HashSet<&'n str>,
}

impl<'n> Seen<'n> {
    /// False when it was there already.
    pub(crate) fn insert(&mut self, name: &'n str) -> bool {
        if self.few.len() < COMPARED {
            let fresh = !self.few.contains(&name);
            if fresh {
                self.few.push(name);
            }
            return fresh;
        }
        if self.many.is_empty() {
            self.many.extend(&self.few);
        }
        self.many.insert(name)
    }
}

/// Dotted paths of which none leads to or through another.
#[derive(Default)]
pub(crate) struct PathSet {
    /// With the order in which they came.
    paths: BTreeMap<String, usize>,
}

impl PathSet {
    /// The first of the paths that is this one, or leads to or through it.
    pub(crate) fn conflict(&self, path: &str) -> Option<&str> {
        let above = path.match_indices('.').map(|(at, _)| &path[..at]);
        let above = above.chain([path]).filter_map(|p| self.paths.get_key_value(p));
        let prefix = format!("{path}.");
        let below = self.paths.range(prefix.clone()..).take_while(|(p, _)| p.starts_with(&prefix));
        above.chain(below).min_by_key(|(_, at)| **at).map(|(p, _)| p.as_str())
    }
    pub(crate) fn insert(&mut self, path: &str) {
        let at = self.paths.len();
        self.paths.insert(path.to_owned(), at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_finds_what_a_short_one_does() {
        let mut list = NamedList::default();
        for i in 0..100 {
            list.push(&format!("n{i}"), i);
            assert_eq!(list.find(format!("n{}", i / 2).as_bytes()), Some(i / 2));
        }
        list.push("n7", 1000);
        assert_eq!(list.find(b"n7"), Some(7), "the first of equal names");
        list.push_front("first", 5);
        assert_eq!((list.find(b"first"), list.find(b"n99")), (Some(0), Some(100)));
        assert_eq!(list.remove(1), 0);
        assert_eq!((list.find(b"n0"), list.find(b"n99"), list.len()), (None, Some(99), 101));
    }

    #[test]
    fn names_are_seen_once() {
        let names: Vec<String> = (0..40).map(|i| format!("n{i}")).collect();
        let mut seen = Seen::default();
        assert!(names.iter().all(|n| seen.insert(n)));
        assert!(!names.iter().any(|n| seen.insert(n)));
    }

    #[test]
    fn paths_conflict_with_what_is_above_and_below() {
        let mut set = PathSet::default();
        ["a.b", "a-b", "c", "d.e.f", "d.e.g"].iter().for_each(|p| set.insert(p));
        for (path, other) in [
            ("a", Some("a.b")),
            ("a.b", Some("a.b")),
            ("a.b.c", Some("a.b")),
            ("a.c", None),
            ("a.bc", None),
            ("d.e", Some("d.e.f")),
            ("c.x.y", Some("c")),
        ] {
            assert_eq!(set.conflict(path), other, "{path}");
        }
    }
}
