//! Updates: operators, replacements, pipelines; and documents to insert.

use super::kind::{F, K, may, need};
use super::{Gen, Group, values};
use pando_bson::{Bson, Document};

const PUSH: &[F] = &[
    need!("$each", K::CArr),
    may!("$slice", K::CInt),
    may!("$position", K::CInt),
    may!("$sort", K::OneOf(&[K::N(1), K::N(-1), K::Sort])),
];

impl Gen {
    pub(super) fn update(&mut self, depth: u32) -> Bson {
        match self.rng.below(10) {
            0 => Bson::Document(values::document(&mut self.rng, 2)),
            1 | 2 => self.update_pipeline(depth),
            _ => Bson::Document(self.operators(depth)),
        }
    }

    fn operators(&mut self, depth: u32) -> Document {
        let mut d = Document::new();
        for _ in 0..self.rng.pick(&[1, 1, 1, 2]) {
            let name = self.names.updates[self.rng.below(self.names.updates.len())];
            self.drawn.push((Group::Update, name));
            let kind = match name {
                "$addToSet" => K::OneOf(&[K::CAny, K::Spec(&[need!("$each", K::CArr)])]),
                "$bit" => K::Spec(&[may!("and", K::CInt), may!("or", K::CInt), may!("xor", K::CInt)]),
                "$currentDate" => {
                    K::OneOf(&[K::CBool, K::Spec(&[need!("$type", K::Word(&["date", "timestamp", "x"]))])])
                }
                "$inc" | "$mul" => K::CNum,
                "$pop" => K::OneOf(&[K::N(1), K::N(-1), K::CNum]),
                "$pull" => K::OneOf(&[K::CAny, K::FieldFilter, K::Filter]),
                "$pullAll" => K::CArr,
                "$push" => K::OneOf(&[K::CAny, K::Spec(PUSH)]),
                "$rename" => K::Field,
                _ => K::CAny,
            };
            let mut args = Document::new();
            for _ in 0..self.rng.pick(&[1, 1, 2]) {
                let path = self.target(name);
                if !args.contains(&path) {
                    let v = self.value(kind, depth.min(2));
                    args.push(path, v);
                }
            }
            if !d.contains(name) {
                let args = if self.is_wild() { self.constant(K::CAny) } else { Bson::Document(args) };
                d.push(name, args);
            }
        }
        d
    }

    /// A path that an update may change, positions included.
    fn target(&mut self, operator: &str) -> String {
        let arrays = matches!(operator, "$addToSet" | "$pop" | "$pull" | "$pullAll" | "$push");
        match self.rng.below(16) {
            0 => self
                .rng
                .pick(&["a.$", "ao.$.v", "a.$[]", "ao.$[].v", "ao.$[e].v", "a.$[e]", "aa.$[].$[]"])
                .to_owned(),
            1 => self.field().replace('\0', ""),
            2 => self.rng.pick(&["o.new.deep", "a.7", "ao.0.v", "_id", "a.3.x", "as.0"]).to_owned(),
            3..=9 if arrays => self.path_of(K::Arr),
            _ => self.path_of(K::Any),
        }
    }

    pub(super) fn update_pipeline(&mut self, depth: u32) -> Bson {
        const STAGES: &[&str] = &["$set", "$addFields", "$unset", "$project", "$replaceRoot", "$replaceWith"];
        let n = self.rng.pick(&[1, 1, 1, 2]);
        let stage = |g: &mut Gen| {
            let name = g.rng.pick(STAGES);
            Bson::Document(g.stage_named(name, depth))
        };
        Bson::Array((0..n).map(|_| stage(self)).collect())
    }

    /// A document like those that are there, more or less.
    pub(super) fn new_document(&mut self) -> Document {
        let mut d = Document::new();
        if !self.rng.once_in(4) {
            d.push("_id", self.rng.pick(&[1, 5, 90, 91, 92, 93]));
        } else if self.rng.once_in(3) {
            d.push("_id", values::any(&mut self.rng, 1));
        } else {
            d.push("_id", 95);
        }
        for _ in 0..self.rng.below(6) {
            let name = self.rng.pick(&[
                "n", "i", "l", "d", "c", "s", "u", "t", "a", "ao", "o", "m", "g", "p", "", "$x", "x.y",
            ]);
            let v = match self.rng.below(60) {
                0 => values::deep(&mut self.rng),
                _ => values::any(&mut self.rng, 2),
            };
            if !d.contains(name) {
                d.push(name, v);
            }
        }
        d
    }
}
