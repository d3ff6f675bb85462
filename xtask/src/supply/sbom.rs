//! The parts of the binaries as CycloneDX 1.5 (JSON).

use super::Package;
use std::fmt::Write;

pub fn json(packages: &[Package], version: &str) -> String {
    let mut out = format!(
        "{{\"bomFormat\":\"CycloneDX\",\"specVersion\":\"1.5\",\"version\":1,\"metadata\":{{\"component\":{{\"type\":\"application\",\
         \"name\":\"PandoDB\",\"version\":{}}}}},\"components\":[",
        quoted(version)
    );
    for (i, p) in packages.iter().enumerate() {
        let (name, version) = (quoted(&p.name), quoted(&p.version));
        let purl = quoted(&format!("pkg:cargo/{}@{}", p.name, p.version));
        let comma = if i == 0 { "" } else { "," };
        let _ = write!(
            out,
            "{comma}\n{{\"type\":\"library\",\"name\":{name},\"version\":{version},\"purl\":{purl}"
        );
        let _ = write!(out, ",\"licenses\":[{{\"expression\":{}}}]", quoted(&p.license));
        if let Some(sum) = &p.checksum {
            let _ = write!(out, ",\"hashes\":[{{\"alg\":\"SHA-256\",\"content\":{}}}]", quoted(sum));
        }
        if p.is_changed {
            out.push_str(",\"modified\":true");
        }
        if !p.repository.is_empty() {
            let url = quoted(&p.repository);
            let _ = write!(out, ",\"externalReferences\":[{{\"type\":\"vcs\",\"url\":{url}}}]");
        }
        out.push('}');
    }
    out.push_str("\n]}\n");
    out
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_a_component() {
        let p = Package {
            name: "ring".to_owned(),
            version: "0.17.14".to_owned(),
            license: "Apache-2.0 AND ISC".to_owned(),
            repository: "https://x/\"y".to_owned(),
            is_changed: false,
            checksum: Some("ab".to_owned()),
        };
        let text = json(&[p.clone(), p], "0.1.0");
        assert_eq!(text.matches("\"purl\":\"pkg:cargo/ring@0.17.14\"").count(), 2);
        assert!(text.contains("\"url\":\"https://x/\\\"y\"") && text.contains("\"content\":\"ab\""));
    }
}
