//! Which fields of a document a `$where` can see at all, so that the others are not converted.

use crate::source::is_word;

/// Names that look at the whole object, or make code from text.
const WHOLE: &[&str] = &[
    "eval",
    "Function",
    "constructor",
    "globalThis",
    "arguments",
    "hasOwnProperty",
    "propertyIsEnumerable",
    "valueOf",
    "toString",
    "toLocaleString",
    "isPrototypeOf",
    "toSource",
    "tojson",
    "toJSON",
];

/// The top-level fields that the text names after `this.` and `obj.`; `None` when it may look at others.
pub(crate) fn fields(code: &str) -> Option<Vec<String>> {
    if code.contains("\\u") || code.contains("__") {
        return None;
    }
    let mut names = Vec::new();
    let mut rest = code;
    let mut after_dot = false;
    while let Some(c) = rest.chars().next() {
        let end = rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
        if end == 0 {
            after_dot = c == '.' || (after_dot && c.is_whitespace());
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let (word, tail) = rest.split_at(end);
        rest = tail;
        if WHOLE.contains(&word) {
            return None;
        }
        if word == "this" || word == "obj" {
            // `x.obj`: of the global object, perhaps.
            if after_dot {
                return None;
            }
            let field = tail.trim_start().strip_prefix('.')?.trim_start();
            let end = field.find(|c: char| !is_word(c)).unwrap_or(field.len());
            if end == 0 {
                return None;
            }
            names.push(field[..end].to_owned());
        }
        after_dot = false;
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn only_plain_uses_of_the_document_are_narrowed() {
        let names = |s: &str| fields(s).map(|v| v.join(" "));
        assert_eq!(names("this.a > 5 && obj . b.c == this.a").as_deref(), Some("a b a"));
        assert_eq!(names("1").as_deref(), Some(""));
        for whole in
            ["this", "f(this)", "this['a']", "this?.a", "eval('1')", "this.hasOwnProperty('i')", "x.obj.a"]
        {
            assert_eq!(names(whole), None, "{whole}");
        }
    }
}
