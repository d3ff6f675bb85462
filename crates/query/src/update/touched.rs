//! Which paths an update may change, so that the catalog leaves other indexes alone.

use super::path::{Part, array_index};
use std::sync::Arc;

/// The paths an update may change.
#[derive(Clone, Debug)]
pub enum Touched {
    /// Anything (replacements and pipelines).
    Everything,
    /// These, and what lies above and below them.
    Paths(Arc<[Box<[Box<str>]>]>),
}

/// Array positions do not count: `a.0.b` and `a.$[].b` touch what `a.b` names.
fn canonical(parts: &[Part]) -> Box<[Box<str>]> {
    parts
        .iter()
        .filter_map(|part| match part {
            Part::Field(name) if array_index(name).is_none() => Some(Box::from(&**name)),
            _ => None,
        })
        .collect()
}

impl Touched {
    pub(super) fn paths<'a>(paths: impl IntoIterator<Item = &'a [Part]>) -> Touched {
        Touched::Paths(paths.into_iter().map(canonical).collect())
    }

    /// Whether an index (or filter) on this dotted path may see a difference. `$**` in the path is a wildcard.
    pub fn may_affect(&self, path: &str) -> bool {
        let Touched::Paths(paths) = self else { return true };
        paths.iter().any(|touched| {
            let mut parts = path.split('.').filter(|p| array_index(p).is_none());
            for component in touched {
                match parts.next() {
                    // One is a prefix of the other.
                    None | Some("$**") => return true,
                    Some(part) if part != &**component => return false,
                    Some(_) => {}
                }
            }
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::path::parse;
    use super::*;

    #[test]
    fn a_path_affects_its_ancestors_descendants_and_itself() {
        let parts = parse("a.0.b.$[]").expect("a path");
        let touched = Touched::paths([&parts[..]]);
        for path in ["a", "a.b", "a.b.c", "a.3.b", "$**", "a.$**"] {
            assert!(touched.may_affect(path), "{path}");
        }
        for path in ["b", "a.c", "ab", "a.bc", "b.$**"] {
            assert!(!touched.may_affect(path), "{path}");
        }
        assert!(Touched::Everything.may_affect("x"));
    }
}
