//! The checkout as text files.

use std::path::{Path, PathBuf};

/// A text file: its path from the root (with `/`) and its content.
pub struct File {
    pub path: String,
    pub text: String,
}

pub struct Tree {
    pub root: PathBuf,
    pub files: Vec<File>,
}

const SKIPPED_DIRS: &[&str] =
    &["target", ".git", "node_modules", "pando-data", "corpus", "__pycache__", "golden", "third_party"];
const KINDS: &[&str] = &["rs", "md", "toml"];

impl Tree {
    /// The checkout that this tool was built in.
    pub fn load() -> Tree {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lives in the root").to_owned();
        let mut files = Vec::new();
        walk(&root, &root, &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Tree { root, files }
    }
    pub fn get(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }
    pub fn rust(&self) -> impl Iterator<Item = &File> {
        self.files.iter().filter(|f| f.path.ends_with(".rs"))
    }
}

fn walk(root: &Path, dir: &Path, out: &mut Vec<File>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            if !SKIPPED_DIRS.contains(&name.as_str()) {
                walk(root, &path, out);
            }
        } else if path.extension().is_some_and(|e| KINDS.iter().any(|k| e == *k))
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            let rel = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            out.push(File { path: rel, text });
        }
    }
}
