//! The names that the parser of filters knows.

/// Names at the top of a filter.
pub(crate) const KEYWORDS: &[&str] = &[
    "$and",
    "$or",
    "$nor",
    "$comment",
    "$expr",
    "$jsonSchema",
    "$sampleRate",
    "$alwaysTrue",
    "$alwaysFalse",
    "$where",
    "$text",
];

/// Names below a field.
pub(crate) const OPERATORS: &[&str] = &[
    "$eq",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$ne",
    "$in",
    "$nin",
    "$exists",
    "$type",
    "$size",
    "$mod",
    "$regex",
    "$options",
    "$not",
    "$all",
    "$elemMatch",
    "$bitsAllSet",
    "$bitsAllClear",
    "$bitsAnySet",
    "$bitsAnyClear",
    "$near",
    "$nearSphere",
    "$geoNear",
    "$geoWithin",
    "$within",
    "$geoIntersects",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The names that arms of the matches in a function of the parser begin with.
    fn arms(function: &str) -> BTreeSet<String> {
        let source = include_str!("parse.rs");
        let body = source.split(&format!("fn {function}(")).nth(1).expect("the function");
        let body = body.split("\n}\n").next().expect("its end");
        let mut names = BTreeSet::new();
        for line in body.lines().map(str::trim).filter(|l| l.starts_with('"') && l.contains("=>")) {
            let pattern = line.split("=>").next().unwrap_or_default();
            names.extend(pattern.split('"').skip(1).step_by(2).map(|n| n.trim_start_matches('$').to_owned()));
        }
        names
    }

    #[test]
    fn every_name_that_the_parser_knows_is_listed() {
        let listed = |names: &[&str], refused: &[&str]| -> BTreeSet<String> {
            names.iter().chain(refused).map(|n| n.trim_start_matches('$').to_owned()).collect()
        };
        let internal = ["_internalBucketGeoWithin", "_internalBucketHolds", "not"];
        assert_eq!(arms("parse_keyword"), listed(KEYWORDS, &internal));
        assert_eq!(arms("parse_operator"), listed(OPERATORS, &["$where"]));
    }
}
