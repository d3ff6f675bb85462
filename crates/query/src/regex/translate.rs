//! PCRE syntax into what the engines understand.
//!
//! One pass over the pattern. It spells out what differs: ASCII classes, `$` before a final newline, literal
//! braces, quoting, comments, octal and control escapes, `x` mode. It also finds the usual mistakes itself, so
//! that the messages are PCRE's.

use super::Result;

pub(super) enum Translated {
    Linear(String),
    LinearBytes(String),
    /// `rough` matches, bytewise and in linear time, at least wherever `exact` does.
    Backtracking {
        exact: String,
        rough: Option<String>,
    },
}

/// What the output is for.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Linear,
    Backtracking,
    /// Without assertions and with anything for a back reference.
    Rough,
}

struct Group {
    /// Restored at its end.
    flags: Flags,
    /// An assertion that is left out: where it began in the output.
    left_out: Option<usize>,
}

/// What a quantifier would apply to.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    Atom,
    Quantified,
}

#[derive(Clone, Copy)]
struct Flags {
    multiline: bool,
    extended: bool,
}

struct Translator<'p> {
    chars: Vec<char>,
    at: usize,
    out: String,
    flags: Flags,
    groups: Vec<Group>,
    /// Capture groups in the whole pattern.
    group_total: usize,
    names: Vec<String>,
    last: Last,
    form: Form,
    fancy: bool,
    /// It has something that no rough form is made for.
    odd: bool,
    bytes: bool,
    /// `$` must not consume the newline.
    strict_end: bool,
    pattern: &'p str,
}

type Parse<T = ()> = Result<T, String>;

fn fail<T>(why: &str) -> Parse<T> {
    Err(why.to_owned())
}

const DIGIT: &str = "0-9";
const WORD: &str = "0-9A-Za-z_";
const SPACE: &str = r"\t\n\x0B\x0C\r ";
const HORIZONTAL: &str = r"\t \x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
const VERTICAL: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";
const FANCY_BOUNDARY: &str = "(?:(?<=[0-9A-Za-z_])(?![0-9A-Za-z_])|(?<![0-9A-Za-z_])(?=[0-9A-Za-z_]))";
const FANCY_NO_BOUNDARY: &str = "(?:(?<=[0-9A-Za-z_])(?=[0-9A-Za-z_])|(?<![0-9A-Za-z_])(?![0-9A-Za-z_]))";
const UNSUPPORTED_ESCAPE: &str = r"PCRE does not support \L, \l, \N{name}, \U, or \u";
const QUANTIFIER_MAX: u32 = 65_535;

pub(super) fn translate(pattern: &str, options: &str, strict_end: bool) -> Result<Translated, String> {
    let t = run(pattern, options, strict_end, Form::Linear)?;
    let letters: String = options.chars().filter(|c| "ims".contains(*c)).collect();
    let body = |t: Translator<'_>| {
        if letters.is_empty() { t.out } else { format!("(?{letters}){}", t.out) }
    };
    if t.fancy {
        let rough = if t.odd { None } else { Some(body(run(pattern, options, strict_end, Form::Rough)?)) };
        let exact = body(run(pattern, options, strict_end, Form::Backtracking)?);
        return Ok(Translated::Backtracking { exact, rough });
    }
    Ok(if t.bytes { Translated::LinearBytes(body(t)) } else { Translated::Linear(body(t)) })
}

fn run<'p>(pattern: &'p str, options: &str, strict_end: bool, form: Form) -> Parse<Translator<'p>> {
    let mut t = Translator {
        chars: pattern.chars().collect(),
        at: 0,
        out: String::with_capacity(pattern.len() + 16),
        flags: Flags { multiline: options.contains('m'), extended: options.contains('x') },
        groups: Vec::new(),
        group_total: 0,
        names: Vec::new(),
        last: Last::Nothing,
        form,
        fancy: false,
        odd: false,
        bytes: false,
        strict_end,
        pattern,
    };
    t.count_groups();
    t.skip_verbs();
    while let Some(c) = t.next() {
        t.item(c)?;
    }
    if !t.groups.is_empty() {
        return fail("missing )");
    }
    Ok(t)
}

/// What an escape that stands for a set of characters is written as.
fn class(c: char) -> Option<String> {
    Some(match c {
        'd' => "[0-9]".to_owned(),
        'D' => "[^0-9]".to_owned(),
        'w' => format!("[{WORD}]"),
        'W' => format!("[^{WORD}]"),
        's' => format!("[{SPACE}]"),
        'S' => format!("[^{SPACE}]"),
        'h' => format!("[{HORIZONTAL}]"),
        'H' => format!("[^{HORIZONTAL}]"),
        'v' => format!("[{VERTICAL}]"),
        'V' => format!("[^{VERTICAL}]"),
        'R' => format!("(?:\\r\\n|[{VERTICAL}])"),
        'N' => "[^\\n]".to_owned(),
        'C' => "(?s:.)".to_owned(),
        'X' => "(?:\\P{M}\\p{M}*)".to_owned(),
        _ => return None,
    })
}

impl Translator<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.chars.get(self.at).copied()?;
        self.at += 1;
        Some(c)
    }
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }
    fn looking_at(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }
    fn eat(&mut self, text: &str) -> bool {
        let yes = self.looking_at(text);
        if yes {
            self.at += text.chars().count();
        }
        yes
    }
    fn until(&mut self, end: char) -> Option<String> {
        let len = self.chars[self.at..].iter().position(|c| *c == end)?;
        let text = self.chars[self.at..self.at + len].iter().collect();
        self.at += len + 1;
        Some(text)
    }

    /// Roughly: `(` not followed by `?` or `*`, and named groups; outside classes and quoting.
    fn count_groups(&mut self) {
        let mut chars = self.pattern.chars().peekable();
        let mut in_class = false;
        while let Some(c) = chars.next() {
            match c {
                '\\' => {
                    chars.next();
                }
                '[' if !in_class => {
                    in_class = true;
                    chars.next_if_eq(&'^');
                    chars.next_if_eq(&']');
                }
                ']' => in_class = false,
                '(' if !in_class => {
                    if chars.next_if_eq(&'?').is_none() {
                        self.group_total += usize::from(chars.peek() != Some(&'*'));
                    } else {
                        chars.next_if_eq(&'P');
                        let named = match chars.next() {
                            Some('<') => !matches!(chars.peek(), Some('=' | '!')),
                            Some('\'') => true,
                            _ => false,
                        };
                        self.group_total += usize::from(named);
                    }
                }
                _ => {}
            }
        }
    }

    /// `(*UTF8)` and the like in front change nothing here.
    fn skip_verbs(&mut self) {
        while self.looking_at("(*") && self.chars[self.at..].contains(&')') {
            self.until(')');
        }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Last::Atom;
    }
    fn literal(&mut self, c: char) {
        if !c.is_ascii_alphanumeric() && c.is_ascii() && !c.is_ascii_control() && c != '<' && c != '>' {
            self.out.push('\\');
        }
        self.out.push(c);
        self.last = Last::Atom;
    }

    fn item(&mut self, c: char) -> Parse {
        match c {
            '\\' => self.escape(),
            '[' => self.class(),
            '(' => self.open(),
            ')' => {
                let Some(group) = self.groups.pop() else { return fail("unmatched parentheses") };
                self.flags = group.flags;
                match group.left_out {
                    None => self.atom(")"),
                    Some(start) => {
                        self.out.truncate(start);
                        self.atom("(?:)");
                    }
                }
                Ok(())
            }
            '|' => {
                self.out.push('|');
                self.last = Last::Nothing;
                Ok(())
            }
            '^' => {
                self.out.push('^');
                self.last = Last::Nothing;
                Ok(())
            }
            '$' => {
                self.end_anchor();
                Ok(())
            }
            '*' | '+' | '?' => self.quantifier(&c.to_string()),
            '{' => match self.counted()? {
                Some(q) => self.quantifier(&q),
                None => {
                    self.literal('{');
                    Ok(())
                }
            },
            '#' if self.flags.extended => {
                while self.next().is_some_and(|c| c != '\n') {}
                Ok(())
            }
            c if self.flags.extended && c.is_ascii_whitespace() => Ok(()),
            '.' => {
                self.atom(".");
                Ok(())
            }
            c => {
                self.literal(c);
                Ok(())
            }
        }
    }

    fn end_anchor(&mut self) {
        if self.flags.multiline {
            self.out.push('$');
        } else {
            self.final_end();
        }
        self.last = Last::Nothing;
    }

    /// The very end, or before a newline that ends the subject.
    fn final_end(&mut self) {
        let rest = &self.chars[self.at..];
        let tail = rest.iter().all(|c| *c == ')');
        let branch = self.groups.is_empty() && rest.first() == Some(&'|');
        if !self.strict_end && (tail || branch) {
            self.out.push_str(r"(?:\n?\z)");
        } else {
            self.fancy = true;
            if self.form != Form::Rough {
                self.out.push_str(r"(?=\n?\z)");
            }
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` after the brace; anything else leaves the brace a literal.
    fn counted(&mut self) -> Parse<Option<String>> {
        let mut end = self.at;
        let mut commas = 0;
        while let Some(c) = self.chars.get(end) {
            match c {
                '0'..='9' => {}
                ',' if commas == 0 && end > self.at => commas = 1,
                '}' => break,
                _ => return Ok(None),
            }
            end += 1;
        }
        if end >= self.chars.len() || end == self.at {
            return Ok(None);
        }
        let body: String = self.chars[self.at..end].iter().collect();
        self.at = end + 1;
        let number = |s: &str| s.parse::<u32>().ok().filter(|n| *n <= QUANTIFIER_MAX);
        let mut ends = body.splitn(2, ',');
        let low = number(ends.next().unwrap_or_default()).ok_or("number too big in {} quantifier")?;
        if let Some(high) = ends.next().filter(|s| !s.is_empty()) {
            let high = number(high).ok_or("number too big in {} quantifier")?;
            if high < low {
                return fail("numbers out of order in {} quantifier");
            }
        }
        Ok(Some(format!("{{{body}}}")))
    }

    fn quantifier(&mut self, text: &str) -> Parse {
        if self.last != Last::Atom {
            return fail("nothing to repeat");
        }
        self.out.push_str(text);
        match self.peek(0) {
            Some('?') => {
                self.at += 1;
                self.out.push('?');
            }
            Some('+') => {
                self.at += 1;
                self.fancy = true;
                if self.form != Form::Rough {
                    self.out.push('+');
                }
            }
            _ => {}
        }
        self.last = Last::Quantified;
        Ok(())
    }

    fn enter(&mut self, flags: Flags, left_out: Option<usize>) {
        self.groups.push(Group { flags, left_out });
    }

    fn open(&mut self) -> Parse {
        if !self.eat("?") {
            self.enter(self.flags, None);
            self.out.push('(');
            self.last = Last::Nothing;
            return Ok(());
        }
        if self.eat("#") {
            return match self.until(')') {
                Some(_) => Ok(()),
                None => fail("missing ) after comment"),
            };
        }
        let saved = self.flags;
        for plain in [":", "=", "!", "<=", "<!", ">"] {
            if self.eat(plain) {
                self.fancy |= plain != ":";
                let rough = self.form == Form::Rough;
                self.enter(saved, Some(self.out.len()).filter(|_| rough && !matches!(plain, ":" | ">")));
                self.out.push_str("(?");
                self.out.push_str(if rough { ":" } else { plain });
                self.last = Last::Nothing;
                return Ok(());
            }
        }
        if self.eat("P=") {
            let name = self.until(')').ok_or("syntax error in subpattern name (missing terminator)")?;
            return self.named_reference(&name);
        }
        for (start, end) in [("P<", '>'), ("<", '>'), ("'", '\'')] {
            if self.eat(start) {
                let name = self.until(end).ok_or("syntax error in subpattern name (missing terminator)")?;
                if self.names.contains(&name) {
                    return fail("two named subpatterns have the same name");
                }
                self.out.push_str(&format!("(?P<{name}>"));
                self.names.push(name);
                self.enter(saved, None);
                self.last = Last::Nothing;
                return Ok(());
            }
        }
        if self.eat("(") {
            let condition = self.until(')').ok_or("malformed number or name after (?(")?;
            if condition.parse::<usize>().is_ok_and(|n| n > self.group_total) {
                return fail("reference to non-existent subpattern");
            }
            self.fancy = true;
            self.odd = true;
            self.out.push_str(&format!("(?({condition})"));
            self.enter(saved, None);
            self.last = Last::Nothing;
            return Ok(());
        }
        if self.peek(0).is_some_and(|c| c.is_ascii_digit()) {
            return fail("reference to non-existent subpattern");
        }
        if self.peek(0) == Some('R') {
            return fail("recursive call could loop indefinitely");
        }
        self.inline_flags(saved)
    }

    fn inline_flags(&mut self, saved: Flags) -> Parse {
        let mut on = String::new();
        let mut off = String::new();
        let mut negative = false;
        loop {
            match self.next() {
                Some('-') if !negative => negative = true,
                Some('x') => self.flags.extended = !negative,
                Some(c @ ('i' | 'm' | 's' | 'U')) => {
                    if c == 'm' {
                        self.flags.multiline = !negative;
                    }
                    if negative { off.push(c) } else { on.push(c) }
                }
                Some('J') => {}
                Some(end @ (')' | ':')) => {
                    let minus = if off.is_empty() { "" } else { "-" };
                    let letters = format!("{on}{minus}{off}");
                    if end == ':' {
                        self.out.push_str(&format!("(?{letters}:"));
                        self.enter(saved, None);
                    } else if !letters.is_empty() {
                        self.out.push_str(&format!("(?{letters})"));
                    }
                    self.last = Last::Nothing;
                    return Ok(());
                }
                _ => return fail("unrecognized character after (? or (?-"),
            }
        }
    }

    fn named_reference(&mut self, name: &str) -> Parse {
        if !self.pattern.contains(&format!("<{name}>")) && !self.pattern.contains(&format!("'{name}'")) {
            return fail("reference to non-existent subpattern");
        }
        self.fancy = true;
        self.reference(&format!("(?P={name})"));
        Ok(())
    }

    fn back_reference(&mut self, n: usize) -> Parse {
        if n == 0 || n > self.group_total {
            return fail("reference to non-existent subpattern");
        }
        self.fancy = true;
        // Keeps a following digit apart.
        self.reference(&format!("(?:\\{n})"));
        Ok(())
    }

    fn reference(&mut self, text: &str) {
        self.atom(if self.form == Form::Rough { "(?s:.*)" } else { text });
    }

    fn escape(&mut self) -> Parse {
        let Some(c) = self.next() else { return fail("\\ at end of pattern") };
        match c {
            'L' | 'l' | 'U' | 'u' => return fail(UNSUPPORTED_ESCAPE),
            'N' if self.peek(0) == Some('{') => return fail(UNSUPPORTED_ESCAPE),
            'b' => self.boundary(if self.form == Form::Backtracking { FANCY_BOUNDARY } else { r"(?-u:\b)" }),
            'B' => {
                self.bytes = true;
                self.boundary(if self.form == Form::Backtracking { FANCY_NO_BOUNDARY } else { r"(?-u:\B)" });
            }
            'A' => self.boundary("\\A"),
            'z' => self.boundary("\\z"),
            'Z' => {
                self.final_end();
                self.last = Last::Nothing;
            }
            'G' | 'K' => {
                self.fancy = true;
                self.odd = true;
                self.boundary(if c == 'G' { "\\G" } else { "\\K" });
            }
            'Q' => {
                while self.at < self.chars.len() && !self.eat("\\E") {
                    if let Some(c) = self.next() {
                        self.literal(c);
                    }
                }
            }
            'E' => {}
            'k' | 'g' => return self.group_reference(c),
            'p' | 'P' => {
                let name = self.property()?;
                self.atom(&format!("\\{c}{{{name}}}"));
            }
            '1'..='9' => return self.numbered(c),
            _ => match class(c) {
                Some(class) => self.atom(&class),
                None => {
                    let ch = self.character(c)?;
                    self.literal(ch);
                }
            },
        }
        Ok(())
    }

    /// `\k<name>`, `\g{name}`, `\g2`
    fn group_reference(&mut self, c: char) -> Parse {
        if c == 'k' {
            let end = match self.next() {
                Some('<') => '>',
                Some('\'') => '\'',
                Some('{') => '}',
                _ => return fail("\\k is not followed by a braced, angle-bracketed, or quoted name"),
            };
            let name = self.until(end).ok_or("syntax error in subpattern name (missing terminator)")?;
            return self.named_reference(&name);
        }
        let text = if self.eat("{") {
            self.until('}').unwrap_or_default()
        } else {
            self.next().map(String::from).unwrap_or_default()
        };
        match text.parse::<usize>() {
            Ok(n) => self.back_reference(n),
            Err(_) => self.named_reference(&text),
        }
    }

    /// Digits are a group where there are so many, else a character.
    fn numbered(&mut self, first: char) -> Parse {
        let mut digits = String::from(first);
        while let Some(d) = self.peek(0).filter(|d| d.is_ascii_digit() && digits.len() < 3) {
            digits.push(d);
            self.at += 1;
        }
        let n: usize = digits.parse().unwrap_or(usize::MAX);
        if n <= self.group_total || (n < 8) {
            return self.back_reference(n);
        }
        self.at -= digits.len() - 1;
        let ch = if first >= '8' { first } else { self.octal(first)? };
        self.literal(ch);
        Ok(())
    }

    fn boundary(&mut self, text: &str) {
        self.out.push_str(text);
        self.last = Last::Nothing;
    }

    fn property(&mut self) -> Parse<String> {
        let name = match self.next() {
            Some('{') => self.until('}').ok_or("malformed \\P or \\p sequence")?,
            Some(c) => c.to_string(),
            None => return fail("malformed \\P or \\p sequence"),
        };
        let name = match name.as_str() {
            "L&" => "LC".to_owned(),
            other => other.to_owned(),
        };
        let known = regex::Regex::new(&format!("\\p{{{}}}", name.trim_start_matches('^'))).is_ok();
        if known { Ok(name) } else { fail("unknown property name after \\P or \\p") }
    }

    fn octal(&mut self, first: char) -> Parse<char> {
        let mut n = first.to_digit(8).unwrap_or(0);
        for _ in 0..2 {
            let Some(d) = self.peek(0).and_then(|c| c.to_digit(8)) else { break };
            self.at += 1;
            n = n * 8 + d;
        }
        Ok(char::from_u32(n).unwrap_or('\0'))
    }

    /// Escapes that stand for one character, in and outside classes.
    fn character(&mut self, c: char) -> Parse<char> {
        Ok(match c {
            'a' => '\x07',
            'e' => '\x1B',
            'f' => '\x0C',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => self.octal('0')?,
            'o' if self.eat("{") => {
                let digits = self.until('}').unwrap_or_default();
                u32::from_str_radix(&digits, 8)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or("character value in \\x{} or \\o{} is too large")?
            }
            'x' if self.eat("{") => {
                let digits = self.until('}').unwrap_or_default();
                u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or("character value in \\x{} or \\o{} is too large")?
            }
            'x' => {
                let mut n = 0;
                for _ in 0..2 {
                    let Some(d) = self.peek(0).and_then(|c| c.to_digit(16)) else { break };
                    self.at += 1;
                    n = n * 16 + d;
                }
                char::from_u32(n).unwrap_or('\0')
            }
            'c' => match self.next() {
                Some(c) if c.is_ascii() => char::from(c.to_ascii_uppercase() as u8 ^ 0x40),
                Some(_) => return fail("\\c must be followed by an ASCII character"),
                None => return fail("\\c at end of pattern"),
            },
            other => other,
        })
    }

    fn class(&mut self) -> Parse {
        if let Some(kind) = self.peek(0).filter(|c| matches!(c, ':' | '.' | '='))
            && self.chars[self.at + 1..].windows(2).any(|w| w == [kind, ']'])
        {
            return fail("POSIX named classes are supported only within a class");
        }
        self.out.push('[');
        if self.eat("^") {
            self.out.push('^');
        }
        let mut first = true;
        // The start of a possible range.
        let mut low: Option<char> = None;
        loop {
            let Some(c) = self.next() else { return fail("missing terminating ] for character class") };
            if c == ']' && !first {
                break;
            }
            first = false;
            if c == '-' && low.is_some() && self.peek(0).is_some_and(|n| n != ']') {
                let high = self.next().unwrap_or(']');
                let high = match high {
                    '\\' => {
                        let e = self.next().ok_or("\\ at end of pattern")?;
                        if "dDwWsShHvVpPRX".contains(e) {
                            return fail("invalid range in character class");
                        }
                        self.class_character(e)?
                    }
                    '[' if self.looking_at(":") => return fail("invalid range in character class"),
                    other => other,
                };
                if low.is_some_and(|l| l > high) {
                    return fail("range out of order in character class");
                }
                self.out.push('-');
                self.class_literal(high);
                low = None;
                continue;
            }
            low = self.class_item(c)?;
        }
        self.atom("]");
        Ok(())
    }

    /// One item of a class; returns it when it may start a range.
    fn class_item(&mut self, c: char) -> Parse<Option<char>> {
        match c {
            '[' if self.looking_at(":") => {
                let Some(len) = self.chars[self.at..].windows(2).position(|w| w == [':', ']']) else {
                    self.class_literal('[');
                    return Ok(Some('['));
                };
                // The first pair found may be the opening colon itself.
                let name: String = self.chars[self.at + 1..self.at + len.max(1)].iter().collect();
                self.at += len + 2;
                let bare = name.trim_start_matches('^');
                const NAMES: &str =
                    "|alpha|lower|upper|alnum|ascii|blank|cntrl|digit|graph|print|punct|space|word|xdigit|";
                if !NAMES.contains(&format!("|{bare}|")) {
                    return fail("unknown POSIX class name");
                }
                self.out.push_str(&format!("[:{name}:]"));
                Ok(None)
            }
            '\\' => {
                let Some(e) = self.next() else { return fail("\\ at end of pattern") };
                let set = |name: &str, negated: bool| {
                    if negated { format!("[^{name}]") } else { name.to_owned() }
                };
                let text = match e {
                    'd' | 'D' => set(DIGIT, e == 'D'),
                    'w' | 'W' => set(WORD, e == 'W'),
                    's' | 'S' => set(SPACE, e == 'S'),
                    'h' | 'H' => set(HORIZONTAL, e == 'H'),
                    'v' | 'V' => set(VERTICAL, e == 'V'),
                    'p' | 'P' => format!("\\{e}{{{}}}", self.property()?),
                    'Q' => {
                        while self.at < self.chars.len() && !self.eat("\\E") {
                            if let Some(c) = self.next() {
                                self.class_literal(c);
                            }
                        }
                        return Ok(None);
                    }
                    'E' => return Ok(None),
                    _ => {
                        let ch = self.class_character(e)?;
                        self.class_literal(ch);
                        return Ok(Some(ch));
                    }
                };
                self.out.push_str(&text);
                Ok(None)
            }
            c => {
                self.class_literal(c);
                Ok(Some(c))
            }
        }
    }

    fn class_character(&mut self, c: char) -> Parse<char> {
        match c {
            'b' => Ok('\x08'),
            'L' | 'l' | 'U' | 'u' => fail(UNSUPPORTED_ESCAPE),
            '1'..='7' => self.octal(c),
            other => self.character(other),
        }
    }

    fn class_literal(&mut self, c: char) {
        if c.is_ascii_punctuation() && c != '<' && c != '>' || c == ' ' {
            self.out.push('\\');
        }
        self.out.push(c);
    }
}
