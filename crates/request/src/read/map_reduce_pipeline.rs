//! A `mapReduce` as the pipeline that answers it.
//!
//! ```text
//! $match, $sort, $limit ─► $project: what map emits ─► $unwind ─► $group: reduce ─► $project: finalize ─► reply │ $out │ $merge
//! ```
//! Functions see each other's names and those of `scope` because each is put, as text, into a function of ours.

use super::map_reduce::{MapReduceArgs, Output};
use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, RawDoc};

/// What `emit` says to other numbers of arguments (31220).
pub const EMIT_TAKES: &str = "emit takes 2 args";
/// Values of a key that wait for `reduce`.
const VALUES_AT_ONCE: usize = 100;

impl MapReduceArgs<'_> {
    /// The stages as an array.
    pub fn pipeline(&self) -> DocBuf {
        let mut stages = ArrayBuilder::new();
        for (name, doc) in [("$match", self.query), ("$sort", self.sort)] {
            if let Some(doc) = doc.filter(|d| !d.is_empty()) {
                stages.doc(|d| {
                    d.raw_doc(name, doc);
                });
            }
        }
        if let Some(n) = self.limit {
            stages.doc(|d| {
                d.i64("$limit", n);
            });
        }
        stages.doc(|d| {
            d.doc("$project", |p| {
                p.i32("_id", 0);
                p.doc("emits", |f| {
                    self.function(f, &self.map_text(), |a| {
                        a.str("$$ROOT");
                    })
                });
            });
        });
        stages.doc(|d| {
            d.str("$unwind", "$emits");
        });
        stages.doc(|d| {
            d.doc("$group", |g| {
                g.str("_id", "$emits.k");
                g.doc("value", |v| {
                    v.raw_doc("$accumulator", &self.reducing());
                });
            });
        });
        if self.finalize().is_some() {
            stages.doc(|d| {
                d.doc("$project", |p| p_value(p, |v| self.finalized(v)));
            });
        }
        self.append_output(&mut stages);
        stages.finish()
    }

    fn append_output(&self, stages: &mut ArrayBuilder) {
        let into = |d: &mut DocBuilder, name: &str, db: Option<&str>, coll: &str| match db {
            None => {
                d.str(name, coll);
            }
            Some(db) => {
                d.doc(name, |n| {
                    n.str("db", db).str("coll", coll);
                });
            }
        };
        match self.out.target {
            Output::Inline => {}
            Output::Replace(db, coll) => {
                stages.doc(|d| into(d, "$out", db, coll));
            }
            Output::Merge(db, coll) => {
                stages.doc(|d| {
                    d.doc("$merge", |m| {
                        into(m, "into", db, coll);
                        m.str("whenMatched", "replace").str("whenNotMatched", "insert");
                    });
                });
            }
            Output::Reduce(db, coll) => {
                let merging = self.merging();
                stages.doc(|d| {
                    d.doc("$merge", |m| {
                        into(m, "into", db, coll);
                        m.raw_array("whenMatched", &merging).str("whenNotMatched", "insert");
                    });
                });
            }
        }
    }

    /// The old value and the new one, reduced once more.
    fn merging(&self) -> DocBuf {
        let reduce =
            format!("function(key, values, scope) {{ {} return reduce(key, values); }}", self.reduce_names());
        let mut stages = ArrayBuilder::new();
        stages.doc(|d| {
            d.doc("$project", |p| {
                p_value(p, |v| {
                    self.function(v, &reduce, |a| {
                        a.str("$_id");
                        a.array(|two| {
                            two.str("$value");
                            two.str("$$new.value");
                        });
                    });
                });
            });
        });
        if self.finalize().is_some() {
            stages.doc(|d| {
                d.doc("$project", |p| p_value(p, |v| self.finalized(v)));
            });
        }
        stages.finish()
    }

    /// `{$function: …}` with the scope as its last argument.
    fn function(&self, d: &mut DocBuilder, body: &str, args: impl FnOnce(&mut ArrayBuilder)) {
        d.doc("$function", |f| {
            f.str("body", body);
            f.array("args", |a| {
                args(a);
                a.doc(|l| {
                    l.raw_doc("$literal", self.scope().unwrap_or(RawDoc::empty()));
                });
            });
            f.str("lang", "js");
        });
    }
    fn finalized(&self, d: &mut DocBuilder) {
        let text = text_of(self.finalize().unwrap_or_default());
        let names = self.scope_names();
        let body = format!(
            "function(key, value, scope) {{ {names} var v = ({text}\n)(key, value); return v === undefined ? null : v; }}"
        );
        self.function(d, &body, |a| {
            a.str("$_id");
            a.str("$value");
        });
    }

    fn map_text(&self) -> String {
        let (names, map) = (self.scope_names(), text_of(self.map));
        format!(
            "function(doc, scope) {{ {names} var emitted = []; \
             function emit(k, v) {{ if (arguments.length !== 2) throw new Error('{EMIT_TAKES}'); \
             emitted.push({{ k: k === undefined ? null : k, v: v === undefined ? null : v }}); }} \
             ({map}\n).call(doc); return emitted; }}"
        )
    }
    fn reduce_names(&self) -> String {
        format!("{} var reduce = ({}\n);", self.scope_names(), text_of(self.reduce))
    }
    /// The state: the key, what waits, whether all of it came out of `reduce`, and the scope. A single value goes through
    /// `reduce` too.
    fn reducing(&self) -> DocBuf {
        let names = format!("var scope = s.scope; {}", self.reduce_names());
        let reduced = "var r = reduce(s.k, s.v); s.v = [r === undefined ? null : r]; s.r = true;";
        let accumulate = format!(
            "function(s, k, v) {{ s.k = k; s.v.push(v); s.r = false; if (s.v.length < {VALUES_AT_ONCE}) return s; {names} {reduced} return s; }}"
        );
        let mut b = DocBuilder::new();
        b.str("init", "function(scope) { return { k: null, v: [], r: false, scope: scope }; }");
        b.array("initArgs", |a| {
            a.doc(|l| {
                l.raw_doc("$literal", self.scope().unwrap_or(RawDoc::empty()));
            });
        });
        b.str("accumulate", &accumulate);
        b.array("accumulateArgs", |a| {
            a.str("$emits.k");
            a.str("$emits.v");
        });
        b.str("merge", "function(a, b) { return { k: a.k, v: a.v.concat(b.v), r: false, scope: a.scope }; }");
        b.str("finalize", &format!("function(s) {{ if (!s.r) {{ {names} {reduced} }} return s.v[0]; }}"));
        b.str("lang", "js");
        b.finish()
    }
    /// `var x = scope["x"];` for each name.
    fn scope_names(&self) -> String {
        let name = |e: pando_bson::Elem<'_>| format!("var {0} = scope[\"{0}\"]; ", e.name());
        self.scope().into_iter().flatten().filter(|e| is_identifier(e.name())).map(name).collect()
    }
}

fn p_value(p: &mut DocBuilder, value: impl FnOnce(&mut DocBuilder)) {
    p.doc("value", value);
}

/// Other names cannot be said in a script.
fn is_identifier(name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    name.chars().all(word) && !name.starts_with(|c: char| c.is_ascii_digit()) && !name.is_empty()
}

/// A function's text as part of an expression.
fn text_of(function: &str) -> &str {
    function.trim().trim_end_matches(';').trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;

    fn names(pipeline: &RawDoc) -> Vec<String> {
        let first = |e: pando_bson::Elem<'_>| e.value().as_doc()?.first().map(|s| s.name().to_owned());
        pipeline.iter().filter_map(first).collect()
    }

    #[test]
    fn each_argument_has_its_stage() {
        let all = doc! {
            "mapReduce": "c", "map": "function() { emit(1, x) };", "reduce": "function(k, v) { return v[0] } // the first",
            "finalize": "function(k, v) { return v }", "scope": { "x": 1, "no-name": 2 }, "query": { "a": 1 },
            "limit": 3, "out": { "reduce": "c", "db": "d" },
        };
        let args = |body: &RawDoc, check: &dyn Fn(&MapReduceArgs<'_>)| {
            let (name, invoked_as) = ("mapReduce", "mapReduce");
            let req = pando_command::Request {
                name,
                invoked_as,
                db: "d",
                body,
                sequences: &[],
                exhaust_allowed: false,
                legacy: false,
            };
            check(&MapReduceArgs::parse(&req).unwrap());
        };
        args(&all.to_raw(), &|all| {
            let stages = ["$match", "$limit", "$project", "$unwind", "$group", "$project", "$merge"];
            assert_eq!(names(&all.pipeline()), stages);
            assert_eq!(all.scope_names(), "var x = scope[\"x\"]; ");
        });
        let plain = doc! { "mapReduce": "c", "map": "m", "reduce": "r", "out": { "inline": 1 } };
        args(&plain.to_raw(), &|plain| {
            assert_eq!(names(&plain.pipeline()), ["$project", "$unwind", "$group"]);
        });
    }
}
