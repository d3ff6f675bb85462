//! Which other collections a pipeline reads, by name: those of joins and unions, also inside of other pipelines.

use pando_bson::{RawDoc, Value};
use std::collections::BTreeSet;

/// Adds the names, of collections and views of the same database.
pub fn involved<'p>(pipeline: &'p RawDoc, names: &mut BTreeSet<&'p str>) {
    for stage in pipeline.iter().filter_map(|e| e.value().as_doc()?.first()) {
        match (stage.name(), stage.value()) {
            ("$unionWith", Value::String(name)) => {
                names.insert(name);
            }
            ("$lookup" | "$graphLookup" | "$unionWith", Value::Document(spec)) => {
                names.extend(["from", "coll"].iter().filter_map(|f| spec.get(f)?.as_str()));
                spec.get("pipeline").and_then(|v| v.as_array()).into_iter().for_each(|p| involved(p, names));
            }
            ("$facet", Value::Document(facets)) => {
                facets.iter().filter_map(|f| f.value().as_array()).for_each(|p| involved(p, names));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_unions_and_what_is_inside_of_them_name_collections() {
        let text = r#"{"p":[{"$lookup":{"from":"a","as":"x","pipeline":[{"$unionWith":"b"}]}},{"$facet":{"f":[
            {"$graphLookup":{"from":"c"}}]}},{"$unionWith":{"coll":"d","pipeline":[]}},{"$match":{"from":"e"}}]}"#;
        let holder = pando_bson::extjson::parse(text).unwrap().to_raw();
        let mut names = BTreeSet::new();
        involved(holder.get("p").unwrap().as_array().unwrap(), &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    }
}
