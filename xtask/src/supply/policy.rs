//! What may be used: licences that ask for no more than to be named, crates from the registry, one version of each that matters.

use super::Package;
use std::collections::BTreeMap;

/// Of these one has to be offered by each alternative of an expression.
const LICENSES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Not to be used, and what is used instead.
const BANNED: &[(&str, &str)] = &[
    ("openssl", "rustls"),
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("aws-lc-sys", "ring: it builds with a C compiler alone"),
    ("mongodb", "nothing: the server has no driver in it"),
    ("bson", "pando-bson"),
    ("serde_yaml", "serde-saphyr: it is kept"),
];

/// Of these there may be more than one version, and why.
const TWICE: &[(&str, &str)] = &[
    ("getrandom", "ring has the older one"),
    ("hashbrown", "icu's tables have the older one"),
    ("syn", "of procedural macros, at build time"),
    ("synstructure", "of procedural macros, at build time"),
    ("bit-vec", "regular expressions have the older one"),
    ("windows-sys", "not built on this system"),
    ("windows-targets", "not built on this system"),
];

/// What is not as it should be, a line each.
pub fn check(packages: &[Package]) -> Vec<String> {
    let mut problems = Vec::new();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for p in packages {
        versions.entry(&p.name).or_default().push(&p.version);
        if !is_allowed(&p.license) {
            problems.push(format!(
                "{} {} comes under '{}', which is not of the list",
                p.name, p.version, p.license
            ));
        }
        if let Some((_, instead)) = BANNED.iter().find(|(name, _)| *name == p.name) {
            problems.push(format!("{} {} is not to be used; use {instead}", p.name, p.version));
        }
        if p.checksum.is_none() && !p.is_changed {
            problems.push(format!("{} {} is not of the registry", p.name, p.version));
        }
    }
    for (name, versions) in versions.iter().filter(|(_, v)| v.len() > 1) {
        if !TWICE.iter().any(|(known, _)| known == name) {
            problems.push(format!(
                "{name} is there in the versions {}: settle on one, or say why",
                versions.join(", ")
            ));
        }
    }
    problems
}

/// Whether an SPDX expression can be met: one alternative of each OR, every part of each AND.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.trim();
    let parts = |word: &str| -> Option<Vec<String>> {
        let parts = at_top(expression, word);
        (parts.len() > 1).then_some(parts)
    };
    if let Some(parts) = parts(" AND ") {
        return parts.iter().all(|p| is_allowed(p));
    }
    if let Some(parts) = parts(" OR ") {
        return parts.iter().any(|p| is_allowed(p));
    }
    match expression.strip_prefix('(').and_then(|e| e.strip_suffix(')')) {
        Some(inner) => is_allowed(inner),
        None => LICENSES.contains(&expression),
    }
}

/// What stands between the words that are in no parentheses.
fn at_top(expression: &str, word: &str) -> Vec<String> {
    let (mut parts, mut depth, mut begins, mut at) = (Vec::new(), 0, 0, 0);
    while at < expression.len() {
        let rest = &expression[at..];
        match rest.as_bytes()[0] {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ if depth == 0 && rest.starts_with(word) => {
                parts.push(expression[begins..at].to_owned());
                at += word.len();
                begins = at;
                continue;
            }
            _ => {}
        }
        at += rest.chars().next().map_or(1, char::len_utf8);
    }
    parts.push(expression[begins..].to_owned());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, version: &str, license: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.to_owned(),
            repository: String::new(),
            is_changed: false,
            checksum: Some("ab".to_owned()),
        }
    }

    #[test]
    fn licences_are_read_as_expressions() {
        for good in [
            "MIT",
            "MIT OR GPL-2.0-only",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT",
            "Apache-2.0 AND ISC",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["", "GPL-2.0-only", "MIT AND GPL-3.0-only", "(MIT OR Apache-2.0) AND SSPL-1.0", "MPL-2.0"]
        {
            assert!(!is_allowed(bad), "{bad}");
        }
    }

    #[test]
    fn what_is_banned_or_there_twice_is_told() {
        let told = |packages: &[Package]| check(packages).len();
        assert_eq!(told(&[package("a", "1.0.0", "MIT"), package("b", "1.0.0", "ISC")]), 0);
        assert_eq!(told(&[package("a", "1.0.0", "MIT"), package("a", "2.0.0", "MIT")]), 1);
        assert_eq!(told(&[package("openssl-sys", "1.0.0", "MIT")]), 1);
        assert_eq!(told(&[Package { checksum: None, ..package("a", "1.0.0", "MIT") }]), 1);
    }
}
