//! Programs drawn from the tables of operators, stages and commands.
//!
//! A [`Gen`] has one generator of random numbers and draws values of a [`kind::K`] until a whole command stands.
//! Most places get what they take, a few (how many differs from program to program) get anything at all.

mod admin;
mod commands;
mod declared;
mod expressions;
mod filters;
pub mod kind;
mod scalars;
mod stages;
mod updates;
mod values;

pub use commands::{Class, command, unknown_commands};

use crate::rng::Rng;
use kind::{F, K};
use pando_bson::{Binary, Bson, Document};
use pando_query::vocabulary;
use std::sync::OnceLock;

/// Which table a name is from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    Expression,
    Accumulator,
    Window,
    Stage,
    Filter,
    Update,
    Command,
}

/// Names of all tables.
pub struct Names {
    pub expressions: Vec<vocabulary::Operator>,
    pub accumulators: Vec<&'static str>,
    pub windows: Vec<&'static str>,
    pub stages: Vec<&'static str>,
    pub filters: &'static [&'static str],
    pub keywords: &'static [&'static str],
    pub updates: Vec<&'static str>,
}

impl Names {
    pub fn get() -> &'static Names {
        static NAMES: OnceLock<Names> = OnceLock::new();
        NAMES.get_or_init(|| Names {
            expressions: vocabulary::expressions(),
            accumulators: vocabulary::accumulators(),
            windows: vocabulary::window_functions(),
            stages: vocabulary::stages(),
            filters: vocabulary::filter_operators(),
            keywords: vocabulary::filter_keywords(),
            updates: vocabulary::update_operators(),
        })
    }
    /// Everything that programs have to be drawn from.
    pub fn all(&self) -> Vec<(Group, &'static str)> {
        let mut all: Vec<(Group, &'static str)> = Vec::new();
        all.extend(self.expressions.iter().map(|o| (Group::Expression, o.name)));
        all.extend(self.accumulators.iter().map(|n| (Group::Accumulator, *n)));
        all.extend(self.windows.iter().map(|n| (Group::Window, *n)));
        all.extend(self.stages.iter().map(|n| (Group::Stage, *n)));
        all.extend(self.filters.iter().chain(self.keywords).map(|n| (Group::Filter, *n)));
        all.extend(self.updates.iter().map(|n| (Group::Update, *n)));
        all.extend(pando_command::COMMANDS.iter().map(|c| (Group::Command, c.name)));
        all
    }
}

/// Draws one program.
pub struct Gen {
    pub rng: Rng,
    names: &'static Names,
    /// Chances in 1,000 that a place gets anything at all.
    wild: u64,
    /// Variables in sight.
    vars: Vec<String>,
    /// Names of tables that were used.
    pub drawn: Vec<(Group, &'static str)>,
}

impl Gen {
    pub fn new(seed: u64) -> Gen {
        let mut rng = Rng::new(seed);
        let wild = rng.pick(&[0, 0, 0, 0, 0, 0, 10, 10, 30, 100]);
        Gen { rng, names: Names::get(), wild, vars: vec!["this".into(), "value".into()], drawn: Vec::new() }
    }
    fn is_wild(&mut self) -> bool {
        self.wild > 0 && self.rng.next() % 1000 < self.wild
    }

    /// A document of a fixed form.
    fn form(&mut self, fields: &'static [F], depth: u32) -> Bson {
        let mut d = Document::new();
        for f in fields {
            let there = if f.needed { !self.is_wild() } else { self.rng.percent(35) };
            if there {
                let v = self.value(f.kind, depth);
                d.push(f.name, v);
            }
        }
        if self.is_wild() {
            let v = self.value(K::CAny, 1);
            let name = self.rng.pick(&["x", "", "$x", "unknownField", "a.b"]);
            d.push(name, v);
        }
        Bson::Document(d)
    }

    /// A value of a kind.
    pub fn value(&mut self, kind: K, depth: u32) -> Bson {
        if self.is_wild() {
            return match self.rng.once_in(50) {
                true if self.rng.once_in(20) => values::long(&mut self.rng),
                true => values::deep(&mut self.rng),
                false => values::any(&mut self.rng, 2),
            };
        }
        use K::*;
        match kind {
            Any | Num | Int | Str | Arr | Obj | ObjArr | StrArr | Date | Bool | Ts | Bin => {
                self.expression(kind, depth)
            }
            CAny | CBool | CInt | CNum | CStr | CObj | CArr | CDate | CTs | Doc => self.constant(kind),
            CUuid => Bson::Binary(Binary { subtype: 4, bytes: vec![7; 16] }),
            Word(words) => Bson::from(self.rng.pick(words)),
            N(n) => Bson::Int32(n),
            Empty => Bson::Document(Document::new()),
            Field => Bson::String(self.field()),
            Path => Bson::String(self.path_of(Any)),
            Dollar => self.dollar(Any),
            Var => Bson::from(self.rng.pick(&["this", "v", "x", "value"])),
            Unit | Zone | DateFormat | Pattern | Flags | Js | JsonType => self.words(kind),
            Lets => self.let_variables(depth),
            Spec(fields) => self.form(fields, depth),
            List(kind) => {
                let n = self.rng.pick(&[0, 1, 1, 2, 2, 3]);
                Bson::Array((0..n).map(|_| self.value(*kind, depth)).collect())
            }
            Tuple(kinds) => Bson::Array(kinds.iter().map(|k| self.value(*k, depth)).collect()),
            Map(kind) => {
                let mut d = Document::new();
                for _ in 0..self.rng.pick(&[0, 1, 1, 1, 2, 3]) {
                    let name = self.field();
                    if !d.contains(&name) {
                        let v = self.value(*kind, depth);
                        d.push(name.replace('\0', ""), v);
                    }
                }
                Bson::Document(d)
            }
            OneOf(kinds) => {
                let kind = self.rng.pick(kinds);
                self.value(kind, depth)
            }
            Filter => Bson::Document(self.filter(depth)),
            FieldFilter => self.field_filter(depth),
            Schema => self.schema(depth),
            Geometry => self.geometry(),
            Sort => Bson::Document(self.sort()),
            Projection => Bson::Document(self.projection(depth)),
            Update => self.update(depth),
            Pipeline => self.pipeline(depth),
            UpdatePipeline => self.update_pipeline(depth),
            Stage => Bson::Document(self.stage(depth)),
            Computed => self.computed(depth),
            Grouped => self.accumulated(depth),
            Outputs => self.outputs(Document::new(), depth),
            Windowed => self.windowed(depth),
            _ => self.command_part(kind, depth),
        }
    }

    /// `{name: expression}`; the names are in sight for what is drawn next.
    fn let_variables(&mut self, depth: u32) -> Bson {
        let mut d = Document::new();
        for name in ["x", "v"].into_iter().take(self.rng.below(3)) {
            let v = self.expression(K::Any, depth.saturating_sub(1));
            d.push(name, v);
            if self.vars.len() < 6 {
                self.vars.push(name.to_owned());
            }
        }
        Bson::Document(d)
    }
}
