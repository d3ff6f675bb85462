//! The view of a collector of metrics: Prometheus' text format.

use crate::collect::{Is, Kind, Leaf, Node, Value};
use crate::registry::Registry;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Samples of one name.
struct Samples<'r> {
    of: &'r Leaf,
    lines: String,
}

/// All metrics in the text format: `# HELP` with the unit at its end, `# TYPE`, and a sample for each set of labels. Names are dotted
/// names with `pandodb_` before and, for counters, `_total` behind: `opcounters.getmore` is `pandodb_opcounters_getmore_total`.
/// A flag is 0 or 1, a point in time is in seconds since the epoch, a word is the label `value` of a sample that is 1.
pub fn prometheus(registry: &Registry) -> String {
    let tree = registry.all();
    let mut names = BTreeMap::new();
    collect(&tree.0, "pandodb", &mut Vec::new(), &mut names);
    let mut out = String::new();
    for (name, samples) in names {
        let kind = if samples.of.kind == Kind::Counter { "counter" } else { "gauge" };
        let help = samples.of.help.replace('\\', "\\\\").replace('\n', "\\n");
        let _ = writeln!(out, "# HELP {name} {help} ({})", unit(samples.of));
        let _ = writeln!(out, "# TYPE {name} {kind}");
        out.push_str(&samples.lines);
    }
    out
}

fn unit(leaf: &Leaf) -> &'static str {
    match leaf.value {
        Value::Date(_) | Value::Timestamp(_) => "seconds since the epoch",
        _ => leaf.unit,
    }
}

fn collect<'r>(
    nodes: &'r [Node],
    above: &str,
    labels: &mut Vec<(&'static str, &'r str)>,
    names: &mut BTreeMap<String, Samples<'r>>,
) {
    for n in nodes {
        let name = match n.label {
            Some(_) => above.to_owned(),
            None => format!("{above}_{}", snake_case(&n.name)),
        };
        let outer = labels.len();
        labels.extend(n.label.map(|label| (label, &*n.name)));
        match &n.is {
            Is::Branch(below) => collect(below, &name, labels, names),
            Is::Leaf(leaf) => {
                let behind =
                    if leaf.kind == Kind::Counter && !name.ends_with("_total") { "_total" } else { "" };
                let name = name + behind;
                let line = sample(&name, labels, leaf);
                names.entry(name).or_insert(Samples { of: leaf, lines: String::new() }).lines.push_str(&line);
            }
        }
        labels.truncate(outer);
    }
}

fn sample(name: &str, labels: &[(&'static str, &str)], leaf: &Leaf) -> String {
    let word = match &leaf.value {
        Value::Text(word) => Some(("value", &**word)),
        _ => None,
    };
    let all: Vec<String> = labels
        .iter()
        .copied()
        .chain(word)
        .map(|(label, value)| {
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            format!("{label}=\"{value}\"")
        })
        .collect();
    let labels = if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) };
    let value = match &leaf.value {
        Value::Int(v) => v.to_string(),
        Value::Long(v) => v.to_string(),
        Value::Double(v) => v.to_string(),
        Value::Bool(v) => u8::from(*v).to_string(),
        Value::Date(ms) => (*ms as f64 / 1000.0).to_string(),
        Value::Timestamp(v) => v.secs().to_string(),
        Value::Text(_) => "1".to_owned(),
    };
    format!("{name}{labels} {value}\n")
}

/// `bytesIn` is `bytes_in`; what no name may have is left out.
fn snake_case(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && (before.is_ascii_lowercase() || before.is_ascii_digit()) {
            out.push('_');
        }
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('_') {
            out.push('_');
        }
        before = c;
    }
    out.truncate(out.trim_end_matches('_').len());
    out
}
