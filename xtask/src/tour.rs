//! The tours: `// tour: insert 4/9` comments that lead a reader from socket to disk and back.

use crate::tree::Tree;

/// Each has a page in `docs/tour/` and nine stops.
pub const TOURS: [&str; 3] = ["insert", "find", "apply"];

pub struct Stop {
    pub number: u32,
    pub of: u32,
    pub file: String,
    pub line: usize,
    /// The first line of code after the marker.
    pub item: String,
}

/// The stops of one tour, in order.
pub fn stops(tree: &Tree, tour: &str) -> Vec<Stop> {
    let marker = format!("// tour: {tour} ");
    let mut out = Vec::new();
    for f in tree.rust().filter(|f| !f.path.starts_with("xtask/")) {
        let lines: Vec<&str> = f.text.lines().collect();
        for (i, line) in lines.iter().enumerate() {
            let Some(rest) = line.trim_start().strip_prefix(&marker) else { continue };
            let Some((n, of)) = rest.split_once('/') else { continue };
            let of: String = of.chars().take_while(char::is_ascii_digit).collect();
            if let (Ok(number), Ok(of)) = (n.trim().parse(), of.parse()) {
                let item = lines[i + 1..].iter().find(|l| !l.trim_start().starts_with("//"));
                let item = item.map(|l| l.trim().to_owned()).unwrap_or_default();
                out.push(Stop { number, of, file: f.path.clone(), line: i + 1, item });
            }
        }
    }
    out.sort_by_key(|s| s.number);
    out
}

pub fn check(tree: &Tree, problems: &mut Vec<String>) {
    for tour in TOURS {
        let stops = stops(tree, tour);
        for n in 1..=9 {
            let here: Vec<_> = stops.iter().filter(|s| s.number == n && s.of == 9).collect();
            if here.len() != 1 {
                problems.push(format!("tour {tour}: stop {n}/9 appears {} times, want once", here.len()));
            }
        }
        let page = format!("docs/tour/{tour}.md");
        match tree.get(&page) {
            None => problems.push(format!("{page} is missing")),
            Some(doc) => {
                for s in &stops {
                    if !doc.text.contains(&s.file) {
                        problems.push(format!("{page} does not mention {} (stop {})", s.file, s.number));
                    }
                }
            }
        }
    }
}
