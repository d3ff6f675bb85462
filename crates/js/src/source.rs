//! What the text of a script may be: a function, an expression, or the body of a function.
//!
//! MongoDB takes all three, and a body without `return` gives the value of its last statement. The forms are tried
//! in order; the first whose text parses is it.

use pando_bson::extjson::write_json_string;

/// A way to read a script.
pub(crate) struct Form {
    /// An expression whose value is the function.
    pub(crate) function: String,
    /// Used in its place once that one parses.
    pub(crate) instead: Option<String>,
}

pub(crate) fn forms(code: &str) -> Vec<Form> {
    let form = |function: String| Form { function, instead: None };
    let start = skip_blank(code);
    let body = start.trim_end().trim_end_matches(';').trim_end();
    let first = start.split(|c: char| !is_word(c)).next().unwrap_or_default();
    let is_async = first == "async" && start[first.len()..].trim_start().starts_with("function");
    if first == "function" || is_async {
        return vec![form(format!("({body}\n)"))];
    }
    let mut forms = Vec::new();
    // Classes, blocks and nothing at all would be read as something else.
    if first != "class" && !start.starts_with('{') && !start.is_empty() {
        forms.push(form(format!("(function() {{ return (\n{body}\n); }})")));
    }
    let as_body = format!("(function() {{ {code}\n}})");
    let returns = code.split(|c: char| !is_word(c)).any(|w| w == "return");
    let last_value = (!returns).then(|| {
        let mut text = String::new();
        write_json_string(&mut text, code);
        format!("(function() {{ return eval({text}); }})")
    });
    forms.push(Form { function: as_body, instead: last_value });
    forms
}

pub(crate) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '$'
}

/// Without blanks and comments in front.
fn skip_blank(mut code: &str) -> &str {
    loop {
        code = code.trim_start();
        let end = match code.as_bytes() {
            [b'/', b'/', ..] => code.find('\n').map(|at| at + 1),
            [b'/', b'*', ..] => code.find("*/").map(|at| at + 2),
            _ => return code,
        };
        let Some(end) = end else { return "" };
        code = &code[end..];
    }
}
