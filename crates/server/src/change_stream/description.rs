//! `updateDescription`: an entry's difference as dotted paths.

use pando_bson::{ArrayBuilder, DocBuf, DocBuilder, Elem, RawDoc, Value};

/// A part of a path.
#[derive(Clone, Debug)]
enum Step {
    Field(Vec<u8>),
    Index(i32),
}

#[derive(Default)]
struct Description {
    updated: DocBuilder,
    removed: ArrayBuilder,
    truncated: ArrayBuilder,
    /// Paths with a part that could be read in two ways.
    ambiguous: DocBuilder,
    path: Vec<Step>,
}

/// `{updatedFields, removedFields, truncatedArrays}` of a `$v: 2` difference; with `disambiguatedPaths` when `expanded`.
pub(super) fn of_diff(diff: &RawDoc, expanded: bool) -> DocBuf {
    let mut d = Description::default();
    d.object(diff);
    let mut b = DocBuilder::new();
    b.raw_doc("updatedFields", &d.updated.finish());
    b.raw_array("removedFields", &d.removed.finish());
    b.raw_array("truncatedArrays", &d.truncated.finish());
    if expanded {
        b.raw_doc("disambiguatedPaths", &d.ambiguous.finish());
    }
    b.finish()
}

impl Description {
    fn object(&mut self, diff: &RawDoc) {
        let section = |name: &str| diff.get(name).and_then(|v| v.as_doc()).unwrap_or(RawDoc::empty());
        for e in section("d") {
            let path = self.enter(Step::Field(e.name_bytes().to_vec()));
            self.removed.string_bytes(&path);
            self.path.pop();
        }
        for e in section("u").iter().chain(section("i").iter()) {
            let path = self.enter(Step::Field(e.name_bytes().to_vec()));
            self.updated.value(&path, e.value());
            self.path.pop();
        }
        for e in diff {
            if let Some(name) = e.name_bytes().strip_prefix(b"s") {
                self.sub(Step::Field(name.to_vec()), e);
            }
        }
    }
    fn array(&mut self, diff: &RawDoc) {
        if let Some(length) = diff.get("l").and_then(|v| v.as_i64()) {
            let path = self.note();
            self.truncated.doc(|d| {
                d.string_bytes("field", &path).i32("newSize", length as i32);
            });
        }
        for e in diff {
            let name = e.name();
            let index = name.get(1..).and_then(|n| n.parse().ok());
            match (name.as_bytes().first(), index) {
                (Some(b'u'), Some(i)) => {
                    let path = self.enter(Step::Index(i));
                    self.updated.value(&path, e.value());
                    self.path.pop();
                }
                (Some(b's'), Some(i)) => self.sub(Step::Index(i), e),
                _ => {}
            }
        }
    }
    fn sub(&mut self, step: Step, e: Elem<'_>) {
        let Value::Document(diff) = e.value() else { return };
        self.path.push(step);
        match diff.get("a") {
            Some(Value::Boolean(true)) => self.array(diff),
            _ => self.object(diff),
        }
        self.path.pop();
    }
    fn enter(&mut self, step: Step) -> Vec<u8> {
        self.path.push(step);
        self.note()
    }
    /// The present path as text; noted when that says less than the path.
    fn note(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        let mut ambiguous = false;
        for step in &self.path {
            if !text.is_empty() {
                text.push(b'.');
            }
            match step {
                Step::Index(i) => text.extend_from_slice(i.to_string().as_bytes()),
                Step::Field(name) => {
                    let digits = !name.is_empty() && name.iter().all(u8::is_ascii_digit);
                    ambiguous |= digits || name.contains(&b'.');
                    text.extend_from_slice(name);
                }
            }
        }
        if ambiguous {
            self.ambiguous.array(&text, |a| {
                for step in &self.path {
                    match step {
                        Step::Index(i) => a.value(Value::Int32(*i)),
                        Step::Field(name) => a.string_bytes(name),
                    };
                }
            });
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_bson::doc;
    use pando_oplog::diff::compute;

    #[test]
    fn a_difference_reads_as_paths() {
        let filler = "x".repeat(200);
        let old = doc! { "f": filler.clone(), "a": 1, "o": { "x": 1, "y": 2, "f": filler.clone() }, "l": [1, 2, 3, { "b": 1, "f": filler.clone() }] };
        let new = doc! { "f": filler.clone(), "a": 2, "o": { "x": 5, "f": filler.clone(), "0": 1 }, "l": [1, 2, 3, { "b": 2, "f": filler }], "n": 1 };
        let diff = compute(&old.to_raw(), &new.to_raw()).unwrap();
        let expected = doc! {
            "updatedFields": { "a": 2, "n": 1, "o.x": 5, "o.0": 1, "l.3.b": 2 },
            "removedFields": ["o.y"], "truncatedArrays": [],
            "disambiguatedPaths": { "o.0": ["o", "0"] }
        };
        assert_eq!(of_diff(&diff, true).to_string(), expected.to_raw().to_string());
        let shorter = doc! { "f": "x".repeat(200), "l": ["y".repeat(20)] };
        let longer = doc! { "f": "x".repeat(200), "l": ["y".repeat(20), "z"] };
        let diff = compute(&longer.to_raw(), &shorter.to_raw()).unwrap();
        assert_eq!(
            of_diff(&diff, false).to_string(),
            doc! { "updatedFields": {}, "removedFields": [], "truncatedArrays": [{ "field": "l", "newSize": 1 }] }
                .to_raw()
                .to_string()
        );
    }
}
