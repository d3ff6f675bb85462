//! `$in`: one of a set of constants, or a string that one of a few regexes matches.

use super::operand::Operand;
use super::regexp::RegexPred;
use crate::collation::Collation;
use pando_base::patience;
use pando_bson::compare::cmp_elems;
use pando_bson::{Elem, ElementType, Value};
use std::cmp::Ordering;
use std::sync::Arc;

/// The set of an `$in`, sorted and without duplicates.
#[derive(Clone, Debug)]
pub struct InList {
    values: Vec<Operand>,
    pub regexes: Vec<RegexPred>,
    pub collation: Option<Arc<Collation>>,
    has_null: bool,
    /// All values, when they are integers.
    ints: Option<Vec<i64>>,
    /// All values are strings compared as bytes.
    texts: bool,
}

impl InList {
    pub fn new(
        mut values: Vec<Operand>,
        regexes: Vec<RegexPred>,
        collation: Option<Arc<Collation>>,
    ) -> InList {
        let order = |a: &Operand, b: &Operand| cmp_elems(&a.elem(), &b.elem(), Collation::order(&collation));
        // Not sorted only when nobody wants it any more.
        if patience::sort_by(&mut values, patience::COMPARE_STEPS, order).is_ok() {
            values.dedup_by(|a, b| {
                patience::is_over(patience::COMPARE_STEPS) || order(a, b) == Ordering::Equal
            });
        }
        let has_null = values.iter().any(|v| v.ty() == ElementType::Null);
        let ints = values
            .iter()
            .map(|v| match v.value() {
                Value::Int32(n) => Some(i64::from(n)),
                Value::Int64(n) => Some(n),
                _ => None,
            })
            .collect::<Option<Vec<i64>>>()
            .filter(|ints| !ints.is_empty());
        let texts =
            collation.is_none() && !values.is_empty() && values.iter().all(|v| v.ty() == ElementType::String);
        InList { values, regexes, collation, has_null, ints, texts }
    }
    /// Ascending, distinct.
    pub fn values(&self) -> &[Operand] {
        &self.values
    }
    pub fn has_null(&self) -> bool {
        self.has_null
    }

    #[inline]
    pub(crate) fn test(&self, e: Option<&Elem<'_>>) -> bool {
        let Some(e) = e else { return self.has_null };
        self.contains(e) || self.regexes.iter().any(|r| patience::is_over(1) || r.test(Some(e)))
    }

    fn contains(&self, e: &Elem<'_>) -> bool {
        if let Some(ints) = &self.ints {
            match e.value() {
                Value::Int32(n) => return ints.binary_search(&i64::from(n)).is_ok(),
                Value::Int64(n) => return ints.binary_search(&n).is_ok(),
                Value::Double(_) | Value::Decimal128(_) => {}
                _ => return false,
            }
        }
        if self.texts {
            if e.ty == ElementType::String {
                let text = e.data().get(4..);
                return self.values.binary_search_by(|v| v.data().get(4..).cmp(&text)).is_ok();
            }
            if e.ty != ElementType::Symbol {
                return false;
            }
        }
        let order = Collation::order(&self.collation);
        self.values.binary_search_by(|v| cmp_elems(&v.elem(), e, order)).is_ok()
            || (e.ty == ElementType::Undefined && self.has_null)
    }
}
