//! Code of others: under which licences it comes, from where, and lists of it for whoever ships or runs a binary.
//!
//! * [`policy`] — what may be used;
//! * [`notices`] — the texts that licences want to be handed on;
//! * [`sbom`] — the parts of a binary as CycloneDX, for scanners.
//!
//! What is looked at is what ends in the binaries (`cargo tree`, without what only tests need).

pub mod notices;
pub mod policy;
pub mod sbom;

use std::path::PathBuf;
use std::process::Command;

/// A crate that somebody else wrote.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// As an SPDX expression, with `/` read as `OR`.
    pub license: String,
    pub repository: String,
    /// In `third_party`, with changes of ours.
    pub is_changed: bool,
    /// Of the published archive (SHA-256), as `Cargo.lock` has it.
    pub checksum: Option<String>,
}

/// Those that the binaries are made of, in the order of their names.
pub fn packages() -> Result<Vec<Package>, String> {
    let mut tree = Command::new("cargo");
    tree.args([
        "tree",
        "--locked",
        "--workspace",
        "--edges",
        "normal,build",
        "--target",
        "all",
        "--prefix",
        "none",
    ]);
    let out = tree.args(["--format", "{p}|{l}|{r}"]).output().map_err(|e| format!("cargo tree: {e}"))?;
    if !out.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&out.stderr)));
    }
    let lock = std::fs::read_to_string("Cargo.lock").map_err(|e| format!("Cargo.lock: {e}"))?;
    let mut found = read(&String::from_utf8_lossy(&out.stdout), &lock);
    found.sort();
    found.dedup();
    Ok(found)
}

/// Of what `cargo tree` says, with checksums of a `Cargo.lock`.
fn read(tree: &str, lock: &str) -> Vec<Package> {
    let others = tree.lines().filter_map(|line| {
        let (package, rest) = line.split_once('|')?;
        let (license, repository) = rest.split_once('|')?;
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        let place = package.split_once('(').map_or("", |(_, place)| place);
        let is_changed = place.contains("/third_party/");
        let is_ours = place.starts_with('/') && !is_changed;
        (!is_ours).then(|| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.replace('/', " OR "),
            repository: repository.trim_end_matches(" (*)").to_owned(),
            is_changed,
            checksum: checksum(lock, name, version),
        })
    });
    others.collect()
}

fn checksum(lock: &str, name: &str, version: &str) -> Option<String> {
    let head = format!("name = \"{name}\"\nversion = \"{version}\"\n");
    let entry = lock.split("[[package]]").find(|entry| entry.contains(&head))?;
    let (_, rest) = entry.split_once("checksum = \"")?;
    rest.split('"').next().map(str::to_owned)
}

/// Where the sources of a package lie.
fn sources(package: &Package) -> Option<PathBuf> {
    if package.is_changed {
        return Some(PathBuf::from("third_party").join(&package.name));
    }
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")))?;
    let name = format!("{}-{}", package.name, package.version);
    let registries = std::fs::read_dir(home.join("registry/src")).ok()?;
    registries.filter_map(Result::ok).map(|r| r.path().join(&name)).find(|path| path.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_others_are_told_from_ours() {
        let tree = "pando-bson v0.1.0 (/x/crates/bson)|MIT|\nlsm-tree v3.1.10 (/x/third_party/lsm-tree)|MIT OR Apache-2.0|https://a\n\
                    ring v0.17.14|Apache-2.0 AND ISC|https://b (*)\nold v1.0.0 (proc-macro)|MIT/Apache-2.0|\n";
        let lock = "[[package]]\nname = \"ring\"\nversion = \"0.17.14\"\nsource = \"x\"\nchecksum = \"ab\"\n";
        let found = read(tree, lock);
        assert_eq!(found.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["lsm-tree", "ring", "old"]);
        assert!(found[0].is_changed && found[0].checksum.is_none());
        assert_eq!(found[1].checksum.as_deref(), Some("ab"));
        assert_eq!(
            (found[1].repository.as_str(), found[2].license.as_str()),
            ("https://b", "MIT OR Apache-2.0")
        );
    }
}
