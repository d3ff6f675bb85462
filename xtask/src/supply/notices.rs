//! The texts of licences, each once, with the crates that come under it.

use super::{Package, sources};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Files that hold licences or name their holders.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE"];

pub fn text(packages: &[Package]) -> String {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut out =
        String::from("PandoDB contains code of others. Each part, and the licence it comes under:\n\n");
    for p in packages {
        let changed = if p.is_changed { ", with changes (third_party)" } else { "" };
        let _ = writeln!(out, "  {} {}  {}{changed}  {}", p.name, p.version, p.license, p.repository);
        for text in licenses(p) {
            texts.entry(text).or_default().push(format!("{} {}", p.name, p.version));
        }
    }
    for (text, names) in texts {
        let _ = write!(out, "\n{}\n{}\n\n{}\n", "-".repeat(100), names.join(", "), text.trim_end());
    }
    out
}

fn licenses(p: &Package) -> Vec<String> {
    let Some(entries) = sources(p).and_then(|dir| std::fs::read_dir(dir).ok()) else { return Vec::new() };
    let is_one = |name: &str| NAMES.iter().any(|n| name.to_ascii_uppercase().starts_with(n));
    let files = entries.filter_map(Result::ok).filter(|e| e.file_name().to_str().is_some_and(is_one));
    let mut texts: Vec<String> = files.filter_map(|e| std::fs::read_to_string(e.path()).ok()).collect();
    texts.sort();
    texts
}
