//! Relative links in the documentation lead somewhere.

use crate::tree::Tree;

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for f in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        let dir = tree.root.join(&f.path).parent().map(|p| p.to_owned()).unwrap_or_default();
        for part in f.text.split("](").skip(1) {
            let Some(target) = part.split(')').next() else { continue };
            let target = target.split('#').next().unwrap_or_default();
            let outside = target.is_empty() || target.contains("://") || target.contains(' ');
            if !outside && !dir.join(target).exists() {
                problems.push(format!("{}: link to {target} leads nowhere", f.path));
            }
        }
    }
}
