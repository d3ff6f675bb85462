//! Which rules a document breaks, in the shape of `errInfo.details`.

use super::{
    Additional, Dependency, Rule, Rules, Schema, Test, doc_of, duplicate, is_additional, is_there, missing,
    names_match,
};
use pando_bson::{ArrayBuilder, DocBuilder, Elem, ElementType, RawDoc};

impl Schema {
    /// Appends `operatorName` and `schemaRulesNotSatisfied` for a document that the schema refuses.
    pub fn explain(&self, doc: &RawDoc, out: &mut DocBuilder) {
        out.str("operatorName", "$jsonSchema");
        self.rules.annotations(out);
        let v = Elem::new(ElementType::Document, "", doc.as_bytes());
        out.array("schemaRulesNotSatisfied", |list| self.rules.broken(v, list));
    }
}

impl Rules {
    fn annotations(&self, out: &mut DocBuilder) {
        if let Some(title) = &self.title {
            out.str("title", title);
        }
        if let Some(description) = &self.description {
            out.str("description", description);
        }
    }
    fn broken(&self, v: Elem<'_>, out: &mut ArrayBuilder) {
        for rule in self.list.iter().filter(|r| !r.accepts(v)) {
            out.doc(|b| rule.explain(v, b));
        }
    }
}

fn schemas_not_satisfied(all: &[Rules], v: Elem<'_>, out: &mut DocBuilder) {
    out.array("schemasNotSatisfied", |list| {
        for (i, rules) in all.iter().enumerate().filter(|(_, r)| !r.accept(v)) {
            list.doc(|b| {
                b.i32("index", i as i32);
                rules.annotations(b);
                b.array("details", |d| rules.broken(v, d));
            });
        }
    });
}

fn strings<'a>(name: &str, all: impl IntoIterator<Item = &'a str>, out: &mut DocBuilder) {
    out.array(name, |list| {
        for s in all {
            list.str(s);
        }
    });
}

fn sorted(mut names: Vec<&str>) -> Vec<&str> {
    names.sort_unstable();
    names
}

impl Rule {
    /// `specifiedAs`, the reason and the value.
    fn simple(&self, reason: &str, v: Elem<'_>, out: &mut DocBuilder) {
        out.raw_doc("specifiedAs", &self.spec);
        out.str("reason", reason);
        out.raw(v.ty, "consideredValue", v.data());
    }

    fn explain(&self, v: Elem<'_>, out: &mut DocBuilder) {
        out.str("operatorName", self.keyword);
        match &self.test {
            Test::Type(_) => {
                self.simple("type did not match", v, out);
                out.str("consideredType", v.ty.name());
            }
            Test::Enum => self.simple("value was not found in enum", v, out),
            Test::MultipleOf(_) => {
                self.simple("considered value is not a multiple of the specified value", v, out);
            }
            Test::Maximum { .. } | Test::Minimum { .. } => self.simple("comparison failed", v, out),
            Test::Pattern(_) => self.simple("regular expression did not match", v, out),
            Test::MinLength(_) | Test::MaxLength(_) => {
                self.simple("specified string length was not satisfied", v, out);
            }
            Test::MinItems(_) | Test::MaxItems(_) => {
                self.simple("array did not match specified length", v, out);
                out.i32("numberOfItems", doc_of(&v).count() as i32);
            }
            Test::UniqueItems => {
                self.simple("found a duplicate item", v, out);
                if let Some(twice) = duplicate(doc_of(&v)) {
                    out.raw(twice.ty, "duplicatedValue", twice.data());
                }
            }
            Test::MinProperties(_) | Test::MaxProperties(_) => {
                out.raw_doc("specifiedAs", &self.spec);
                out.str("reason", "specified number of properties was not satisfied");
                out.i32("numberOfProperties", doc_of(&v).count() as i32);
            }
            Test::Required(names) => {
                out.raw_doc("specifiedAs", &self.spec);
                strings("missingProperties", sorted(missing(doc_of(&v), names)), out);
            }
            Test::Items(_) | Test::ItemList(_) | Test::AdditionalItems { .. } => self.items(v, out),
            Test::Properties(_) | Test::PatternProperties(_) | Test::AdditionalProperties { .. } => {
                self.properties(v, out);
            }
            Test::Dependencies(all) => dependencies(all, v, out),
            Test::AllOf(all) | Test::AnyOf(all) => schemas_not_satisfied(all, v, out),
            Test::OneOf(all) => {
                let matching: Vec<usize> = (0..all.len()).filter(|i| all[*i].accept(v)).collect();
                if matching.is_empty() {
                    schemas_not_satisfied(all, v, out);
                    return;
                }
                out.str("reason", "more than one subschema matched");
                out.array("matchingSchemaIndexes", |list| {
                    for i in matching {
                        list.value(pando_bson::Value::Int32(i as i32));
                    }
                });
            }
            Test::Not(_) => {
                out.str("reason", "child expression matched");
            }
        }
    }

    fn items(&self, v: Elem<'_>, out: &mut DocBuilder) {
        let items = doc_of(&v);
        let first_bad = |rules: &Rules, from: usize, reason: &str, out: &mut DocBuilder| {
            let bad = items.iter().enumerate().skip(from).find(|(_, i)| !rules.accept(*i));
            if let Some((at, item)) = bad {
                out.str("reason", reason);
                out.i32("itemIndex", at as i32);
                rules.annotations(out);
                out.array("details", |d| rules.broken(item, d));
            }
        };
        match &self.test {
            Test::Items(rules) => {
                first_bad(rules, 0, "At least one item did not match the sub-schema", out);
            }
            Test::ItemList(list) => {
                out.array("details", |d| {
                    for (at, (item, rules)) in items.iter().zip(list).enumerate() {
                        if !rules.accept(item) {
                            d.doc(|b| {
                                b.i32("itemIndex", at as i32);
                                rules.annotations(b);
                                b.array("details", |d| rules.broken(item, d));
                            });
                        }
                    }
                });
            }
            Test::AdditionalItems { from, allowed: Additional::If(rules) } => {
                let reason = "At least one additional item did not match the sub-schema";
                first_bad(rules, *from, reason, out);
            }
            Test::AdditionalItems { from, allowed: Additional::No } => {
                out.raw_doc("specifiedAs", &self.spec);
                out.str("reason", "found additional items");
                out.array("additionalItems", |list| {
                    for item in items.iter().skip(*from) {
                        list.raw(item.ty, item.data());
                    }
                });
            }
            _ => {}
        }
    }

    fn properties(&self, v: Elem<'_>, out: &mut DocBuilder) {
        let doc = doc_of(&v);
        match &self.test {
            Test::Properties(all) => {
                out.array("propertiesNotSatisfied", |list| {
                    for (name, rules) in all {
                        let Some(e) = doc.elem(name).filter(|e| !rules.accept(*e)) else { continue };
                        list.doc(|b| {
                            b.str("propertyName", name);
                            rules.annotations(b);
                            b.array("details", |d| rules.broken(e, d));
                        });
                    }
                });
            }
            Test::PatternProperties(all) => {
                out.array("details", |list| {
                    for (pattern, regex, rules) in all {
                        for e in doc.iter().filter(|e| names_match(regex, *e) && !rules.accept(*e)) {
                            list.doc(|b| {
                                b.string_bytes("propertyName", e.name_bytes());
                                b.str("regexMatched", pattern);
                                rules.annotations(b);
                                b.array("details", |d| rules.broken(e, d));
                            });
                        }
                    }
                });
            }
            Test::AdditionalProperties { named, patterns, allowed } => {
                let mut extra = doc.iter().filter(|e| is_additional(*e, named, patterns));
                match allowed {
                    Additional::No => {
                        out.raw_doc("specifiedAs", &self.spec);
                        out.array("additionalProperties", |list| {
                            for e in extra {
                                list.string_bytes(e.name_bytes());
                            }
                        });
                    }
                    Additional::If(rules) => {
                        let Some(e) = extra.find(|e| !rules.accept(*e)) else { return };
                        let reason = "at least one additional property did not match the subschema";
                        out.str("reason", reason);
                        out.string_bytes("failingProperty", e.name_bytes());
                        rules.annotations(out);
                        out.array("details", |d| rules.broken(e, d));
                    }
                }
            }
            _ => {}
        }
    }
}

fn dependencies(all: &[(String, Dependency)], v: Elem<'_>, out: &mut DocBuilder) {
    let doc = doc_of(&v);
    out.array("failingDependencies", |list| {
        for (name, dependency) in all.iter().filter(|(name, _)| is_there(doc, name)) {
            match dependency {
                Dependency::Properties(names) => {
                    let gone = missing(doc, names);
                    if !gone.is_empty() {
                        list.doc(|b| {
                            b.str("conditionalProperty", name);
                            strings("missingProperties", sorted(gone), b);
                        });
                    }
                }
                Dependency::Schema(rules) if !rules.accept(v) => {
                    list.doc(|b| {
                        b.str("conditionalProperty", name);
                        rules.annotations(b);
                        b.array("details", |d| rules.broken(v, d));
                    });
                }
                Dependency::Schema(_) => {}
            }
        }
    });
}
