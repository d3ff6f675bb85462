//! Arguments drawn from the tables that the server reads them by ([`pando_request::declare`]).

use super::commands::INDEX;
use super::kind::K;
use super::{Gen, values};
use pando_bson::shape::{Field, Means, Shape};
use pando_bson::{Bson, Document};
use pando_request::declare::Arguments;
use pando_request::session::sessions::Listed;

const MAPS: &[&str] = &["function() { emit(this.i, 1); }", "function() { emit(this.s, this); }", "x("];
const REDUCES: &[&str] =
    &["function(k, v) { return v.length; }", "function(k, v) { return v; }", "function() { throw 1; }"];

impl Gen {
    /// What a command may be told; `few`: what is needed, and one or two of the rest.
    pub(super) fn declared(&mut self, table: &'static Arguments, few: bool, depth: u32) -> Document {
        let mut d = match few {
            true => self.few_declared(table.fields, depth),
            false => self.declared_form(table.fields, depth),
        };
        if table.keeps_others && self.rng.once_in(8) {
            let v = self.value(K::CAny, 1);
            d.push("unknownField", v);
        }
        d
    }

    /// The list that a command about sessions is.
    pub(super) fn listed(&mut self, list: &'static Listed) -> Bson {
        let n = self.rng.pick(&[0, 1, 1, 2]);
        Bson::Array((0..n).map(|_| self.declared_form(list.fields, 1).into()).collect())
    }

    fn declared_form(&mut self, fields: &'static [Field], depth: u32) -> Document {
        let mut d = Document::new();
        for field in fields {
            let there = if field.required { !self.is_wild() } else { self.rng.percent(35) };
            if there {
                let v = self.declared_value(field, depth);
                d.push(field.name, v);
            }
        }
        if self.is_wild() {
            let v = self.value(K::CAny, 1);
            let name = self.rng.pick(&["x", "", "$x", "unknownField", "a.b"]);
            d.push(name, v);
        }
        d
    }

    fn few_declared(&mut self, fields: &'static [Field], depth: u32) -> Document {
        let mut d = Document::new();
        let (needed, others): (Vec<&'static Field>, Vec<&'static Field>) =
            fields.iter().partition(|f| f.required);
        for field in needed {
            let v = self.declared_value(field, depth);
            d.push(field.name, v);
        }
        for _ in 0..self.rng.pick(&[0, 1, 1, 1, 2, 2, 3]) {
            if others.is_empty() {
                break;
            }
            let field = others[self.rng.below(others.len())];
            if !d.contains(field.name) {
                let v = self.declared_value(field, depth);
                d.push(field.name, v);
            }
        }
        d
    }

    fn declared_value(&mut self, field: &'static Field, depth: u32) -> Bson {
        if self.is_wild() {
            return values::any(&mut self.rng, 2);
        }
        match field.means {
            Means::Script if field.name == "map" => Bson::from(self.rng.pick(MAPS)),
            Means::Script => Bson::from(self.rng.pick(REDUCES)),
            means => self.shaped(&field.shape, means, depth),
        }
    }

    fn shaped(&mut self, shape: &'static Shape, means: Means, depth: u32) -> Bson {
        let kind = match (shape, means) {
            (Shape::Checked { like, .. }, _) if means != Means::Collation && means != Means::Output => {
                let at = self.rng.below(like.len());
                return self.shaped(&like[at], means, depth);
            }
            (Shape::Word(words), _) if self.rng.once_in(6) && !words.is_empty() => K::Word(&["x", ""]),
            (Shape::Word(words), _) => K::Word(words),
            (Shape::Fields(fields), _) => return self.declared_form(fields, depth).into(),
            (Shape::List(_), Means::IndexSpec) => K::List(&INDEX),
            (Shape::List(_), Means::Pipeline) => K::Pipeline,
            (Shape::List(each), _) => {
                let n = self.rng.pick(&[0, 1, 1, 2, 2, 3]);
                return Bson::Array((0..n).map(|_| self.shaped(each, means, depth)).collect());
            }
            (Shape::Object, Means::Filter) => K::Filter,
            (Shape::Object, Means::Sort) => K::Sort,
            (Shape::Object, Means::Projection) => K::Projection,
            (Shape::Object, Means::IndexKey | Means::IndexName) => K::IndexKey,
            (_, Means::Collation) => K::Collation,
            (_, Means::Output) => OUTPUT,
            (Shape::String, Means::IndexName) => K::IndexName,
            (Shape::String, Means::Collection) => K::Fresh,
            (Shape::String, Means::Namespace) => K::Ns,
            (Shape::String, Means::FieldName) => K::Field,
            _ => plain(shape),
        };
        self.value(kind, depth)
    }
}

const OUTPUT: K = K::OneOf(&[
    K::Spec(&[super::kind::need!("inline", K::N(1))]),
    K::Scratch,
    K::Spec(&[super::kind::need!("merge", K::Scratch)]),
]);

/// What a shape allows when nothing is known of it beside.
fn plain(shape: &Shape) -> K {
    match shape {
        Shape::Bool | Shape::SafeBool => K::CBool,
        Shape::Int | Shape::Long => K::CInt,
        Shape::Number | Shape::Integer(_) => K::CNum,
        Shape::String => K::CStr,
        Shape::Date => K::CDate,
        Shape::Timestamp => K::CTs,
        Shape::Object => K::CObj,
        Shape::Uuid => K::CUuid,
        Shape::Digest => K::Bin,
        _ => K::CAny,
    }
}
