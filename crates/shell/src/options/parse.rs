//! From a command line and a configuration file to settings by option, all checked against the table.

use super::table::{Effect, Kind, Opt, all};
use super::yaml::{self, Tree};
use pando_bson::{Bson, Document};
use std::collections::BTreeMap;

/// A checked value.
#[derive(Clone, PartialEq, Debug)]
pub enum Setting {
    Flag(bool),
    Text(String),
    Int(i64),
    Float(f64),
    Pairs(Vec<(String, String)>),
    List(Vec<String>),
}

/// Settings by [`Opt::key`]; the command line wins over the file.
#[derive(Clone, Default, Debug)]
pub struct Settings {
    values: BTreeMap<&'static str, Setting>,
    /// `systemLog.component.<c>.verbosity` of the file: (component path, level).
    pub component_verbosity: Vec<(String, i64)>,
}

/// A message for the user, without a trailing newline.
pub type Refusal = String;

impl Settings {
    /// Whether it was given, with whatever value.
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some(Setting::Flag(true)))
    }
    pub fn given_flag(&self, key: &str) -> Option<bool> {
        match self.values.get(key) {
            Some(Setting::Flag(b)) => Some(*b),
            _ => None,
        }
    }
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some(Setting::Text(s)) => Some(s),
            _ => None,
        }
    }
    pub fn int(&self, key: &str) -> Option<i64> {
        match self.values.get(key) {
            Some(Setting::Int(n)) => Some(*n),
            _ => None,
        }
    }
    pub fn float(&self, key: &str) -> Option<f64> {
        match self.values.get(key) {
            Some(Setting::Float(d)) => Some(*d),
            _ => None,
        }
    }
    pub fn list(&self, key: &str) -> Option<&[String]> {
        match self.values.get(key) {
            Some(Setting::List(l)) => Some(l),
            _ => None,
        }
    }
    pub fn pairs(&self, key: &str) -> &[(String, String)] {
        match self.values.get(key) {
            Some(Setting::Pairs(p)) => p,
            _ => &[],
        }
    }
    fn put(&mut self, opt: &'static Opt, value: Setting) {
        match (self.values.get_mut(opt.key()), value) {
            (Some(Setting::Pairs(have)), Setting::Pairs(more)) => {
                for (name, v) in more {
                    have.retain(|(n, _)| *n != name);
                    have.push((name, v));
                }
            }
            (_, value) => drop(self.values.insert(opt.key(), value)),
        }
    }
    /// As `getCmdLineOpts.parsed` shows them: a tree along the dots of the keys.
    pub fn to_document(&self) -> Document {
        let mut root = Document::new();
        for (key, value) in &self.values {
            let value = match value {
                Setting::Flag(b) => Bson::Boolean(*b),
                Setting::Text(s) => Bson::from(s.as_str()),
                Setting::Int(n) => i32::try_from(*n).map_or(Bson::Int64(*n), Bson::Int32),
                Setting::Float(d) => Bson::Double(*d),
                Setting::List(l) => Bson::Array(l.iter().map(|t| Bson::from(t.as_str())).collect()),
                Setting::Pairs(pairs) => {
                    let fields: Vec<_> =
                        pairs.iter().map(|(k, v)| (k.clone(), Bson::from(v.as_str()))).collect();
                    Bson::Document(Document::from(fields))
                }
            };
            place(&mut root, key, value);
        }
        root
    }
}

fn place(at: &mut Document, key: &str, value: Bson) {
    match key.split_once('.') {
        None => at.set(key, value),
        Some((head, rest)) => {
            if !matches!(at.get(head), Some(Bson::Document(_))) {
                at.set(head, Document::new());
            }
            if let Some(Bson::Document(inner)) = at.get_mut(head) {
                place(inner, rest, value);
            }
        }
    }
}

fn convert(opt: &Opt, text: &str) -> Result<Setting, Refusal> {
    let name = if opt.cli.is_empty() { opt.yaml } else { opt.cli };
    Ok(match opt.kind {
        Kind::Flag | Kind::Bool => match text {
            "true" | "1" | "on" | "yes" => Setting::Flag(true),
            "false" | "0" | "off" | "no" => Setting::Flag(false),
            _ if opt.kind == Kind::Bool => {
                return Err(format!(
                    "Error parsing command line: the argument ('{text}') for option '--{name}' is invalid. Valid choices are 'on|off', \
                     'yes|no', '1|0' and 'true|false'"
                ));
            }
            _ => {
                return Err(format!(
                    "Error parsing option \"{name}\" as bool: \"{text}\" is neither true nor false"
                ));
            }
        },
        Kind::Text => Setting::Text(text.to_owned()),
        Kind::Int => match text.parse() {
            Ok(n) => Setting::Int(n),
            Err(_) => {
                return Err(format!("Error parsing option \"{name}\" as int: \"{text}\" is not an integer"));
            }
        },
        Kind::Float => match text.parse() {
            Ok(d) => Setting::Float(d),
            Err(_) => {
                return Err(format!("Error parsing option \"{name}\" as double: \"{text}\" is not a number"));
            }
        },
        Kind::List => Setting::List(text.split(',').map(|t| t.trim().to_owned()).collect()),
        Kind::Pairs => match text.split_once('=') {
            Some((k, v)) if !k.is_empty() => Setting::Pairs(vec![(k.trim().to_owned(), v.trim().to_owned())]),
            _ => return Err(format!("Illegal option assignment: \"{text}\"")),
        },
    })
}

/// Refuses what cannot work. `false` for a flag asks for nothing.
fn check(opt: &Opt, value: &Setting) -> Result<(), Refusal> {
    match opt.effect {
        Effect::Refused(why) if *value != Setting::Flag(false) => {
            let name = if opt.cli.is_empty() { opt.yaml.to_owned() } else { format!("--{}", opt.cli) };
            Err(format!("{name}: {why}"))
        }
        _ => Ok(()),
    }
}

/// Parses the arguments after the program's name.
pub fn command_line(args: &[String]) -> Result<Settings, Refusal> {
    let mut out = Settings::default();
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next() {
        let Some(name) = arg.strip_prefix('-') else {
            return Err(format!("Invalid command: {arg}"));
        };
        let (opt, mut inline) = match name.strip_prefix('-') {
            Some(long) => {
                let (name, value) = match long.split_once('=') {
                    Some((n, v)) => (n, Some(v.to_owned())),
                    None => (long, None),
                };
                (find_cli(name).ok_or_else(|| unrecognised(arg))?, value)
            }
            None => short_option(name).ok_or_else(|| unrecognised(arg))?,
        };
        let value = match opt.kind {
            Kind::Flag => convert(opt, inline.as_deref().unwrap_or("true"))?,
            // `--verbose` and `-v` may stand alone; `-vvv` says how much.
            _ if opt.cli == "verbose" => {
                let next_is_level = rest.peek().is_some_and(|n| n.chars().all(|c| c == 'v') && !n.is_empty());
                if inline.is_none() && name.starts_with('-') && next_is_level {
                    inline = rest.next().cloned();
                }
                Setting::Text(inline.unwrap_or_else(|| "v".to_owned()))
            }
            // May stand alone.
            _ if opt.cli == "enableMajorityReadConcern" && inline.is_none() => {
                let next = rest.peek().is_some_and(|n| matches!(n.as_str(), "true" | "false" | "0" | "1"));
                Setting::Text(
                    if next { rest.next().cloned() } else { None }.unwrap_or_else(|| "1".to_owned()),
                )
            }
            _ => {
                let text = match inline {
                    Some(text) => text,
                    None => rest.next().cloned().ok_or_else(|| {
                        format!(
                            "Error parsing command line: the required argument for option '--{}' is missing",
                            opt.cli
                        )
                    })?,
                };
                convert(opt, &text)?
            }
        };
        check(opt, &value)?;
        out.put(opt, value);
    }
    Ok(out)
}

fn find_cli(name: &str) -> Option<&'static Opt> {
    all().find(|o| !o.cli.is_empty() && o.cli == name)
}

fn unrecognised(arg: &str) -> Refusal {
    format!("Error parsing command line: unrecognised option '{arg}'")
}

/// `-f x`, `-fx`, `-vvv`.
fn short_option(name: &str) -> Option<(&'static Opt, Option<String>)> {
    let letter = name.chars().next()?;
    let opt = all().find(|o| o.short == Some(letter))?;
    let tail = &name[letter.len_utf8()..];
    match (opt.kind, tail) {
        (_, "") => Some((opt, None)),
        (Kind::Flag, _) => None,
        _ if letter == 'v' => tail.chars().all(|c| c == 'v').then(|| (opt, Some(name.to_owned()))),
        _ => Some((opt, Some(tail.to_owned()))),
    }
}

/// Reads a configuration file's text: YAML, or the old `key=value` lines.
pub fn config_file(text: &str) -> Result<Settings, Refusal> {
    if looks_old(text) { old_form(text) } else { yaml_form(text) }
}

/// The old form has `=` on its first line of substance where YAML has `:`.
fn looks_old(text: &str) -> bool {
    text.lines().map(str::trim).find(|l| !l.is_empty() && !l.starts_with('#')).is_some_and(|l| {
        match (l.find('='), l.find(':')) {
            (Some(eq), Some(colon)) => eq < colon,
            (eq, None) => eq.is_some(),
            (None, _) => false,
        }
    })
}

fn old_form(text: &str) -> Result<Settings, Refusal> {
    let mut out = Settings::default();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() || line.starts_with('[') {
            continue;
        }
        let Some((name, value)) = line.split_once('=') else {
            return Err(format!("Error parsing INI config file: the line '{line}' has no '='"));
        };
        let (name, value) = (name.trim(), value.trim());
        let opt = find_cli(name)
            .ok_or_else(|| format!("Error parsing INI config file: unrecognised option '{name}'"))?;
        let value = convert(opt, value)?;
        check(opt, &value)?;
        out.put(opt, value);
    }
    Ok(out)
}

fn yaml_form(text: &str) -> Result<Settings, Refusal> {
    let mut out = Settings::default();
    match yaml::parse(text).map_err(|e| format!("Error parsing YAML config file: {e}"))? {
        Tree::Null => {}
        Tree::Map(fields) => walk(&mut out, "", &fields)?,
        _ => return Err("Error parsing YAML config file: the top level must be a map".to_owned()),
    }
    Ok(out)
}

fn walk(out: &mut Settings, prefix: &str, fields: &[(String, Tree)]) -> Result<(), Refusal> {
    for (name, tree) in fields {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        if let Some(c) = key.strip_prefix("systemLog.component.").and_then(|k| k.strip_suffix(".verbosity")) {
            match tree.scalar().and_then(|s| s.parse().ok()) {
                Some(level) => out.component_verbosity.push((c.to_owned(), level)),
                None => return Err(format!("Error parsing option \"{key}\" as int")),
            }
            continue;
        }
        let opt = all().find(|o| !o.yaml.is_empty() && o.yaml == key);
        match (opt, tree) {
            (Some(opt), Tree::Map(pairs)) if opt.kind == Kind::Pairs => {
                let mut list = Vec::new();
                for (k, v) in pairs {
                    let v = v.scalar().ok_or_else(|| format!("setParameter.{k} must be a single value"))?;
                    list.push((k.clone(), v));
                }
                out.put(opt, Setting::Pairs(list));
            }
            (Some(opt), tree) if opt.kind == Kind::List => {
                let Tree::List(items) = tree else {
                    return Err(format!(
                        "Option: {key} is of type StringVector, but value in YAML config is not a list type"
                    ));
                };
                let texts = items.iter().map(|item| item.scalar()).collect::<Option<Vec<_>>>();
                let texts = texts.ok_or_else(|| format!("Option: {key} is a list of single values"))?;
                out.put(opt, Setting::List(texts));
            }
            (Some(opt), tree) => {
                let text = tree.scalar().ok_or_else(|| format!("Option {key} must be a single value"))?;
                let value = convert(opt, &text)?;
                check(opt, &value)?;
                out.put(opt, value);
            }
            (None, Tree::Map(inner)) => walk(out, &key, inner)?,
            (None, Tree::Null) => {}
            (None, _) => return Err(format!("Unrecognized option: {key}")),
        }
    }
    Ok(())
}

/// The file's settings overlaid by the command line's.
pub fn merge(mut file: Settings, command_line: Settings) -> Settings {
    for (key, value) in command_line.values {
        if let Some(opt) = all().find(|o| o.key() == key) {
            file.put(opt, value);
        }
    }
    file
}

/// `--help`. Launchers look for options at the start of lines.
pub fn help(program: &str) -> String {
    help_with(program, |_, o| o.key() != super::router::CONFIG_DB)
}

/// The same of some options.
pub(super) fn help_with(program: &str, wanted: impl Fn(&str, &Opt) -> bool) -> String {
    let mut out = format!("Usage: {program} [options]\n");
    for (heading, options) in super::table::GROUPS {
        if !options.iter().any(|o| wanted(heading, o)) {
            continue;
        }
        out.push_str(&format!("\n{heading}:\n"));
        for o in options.iter().filter(|o| !o.cli.is_empty() && wanted(heading, o)) {
            let arg = match o.kind {
                Kind::Flag => "",
                _ => " arg",
            };
            let left = match o.short {
                Some(c) => format!("  -{c} [ --{} ]{arg}", o.cli),
                None => format!("  --{}{arg}", o.cli),
            };
            let words = match o.effect {
                Effect::Refused(why) => format!("({why})"),
                _ => o.help.to_owned(),
            };
            if left.len() < 40 {
                out.push_str(&format!("{left:<40}{words}\n"));
            } else {
                out.push_str(&format!("{left}\n{:<40}{words}\n", ""));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cli(line: &str) -> Result<Settings, Refusal> {
        command_line(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn launchers_command_lines_are_understood() {
        let s =
            cli("--replSet rs --dbpath d --logpath l --port 27018 --fork --wiredTigerCacheSizeGB 1").unwrap();
        assert_eq!(s.int("net.port"), Some(27018));
        assert_eq!(s.text("replication.replSetName"), Some("rs"));
        assert!(s.flag("processManagement.fork"));
        cli("--port 0 --dbpath d --nounixsocket").unwrap();
        cli("--port 1 --dbpath d --storageEngine wiredTiger --bind_ip 127.0.0.1 --noauth").unwrap();
        let s = cli("--setParameter a=1 --setParameter=b=c=d -vvv --port=9").unwrap();
        assert_eq!(s.pairs("setParameter"), [("a".into(), "1".into()), ("b".into(), "c=d".into())]);
        assert_eq!(s.text("systemLog.verbosity"), Some("vvv"));
    }

    #[test]
    fn nothing_is_ignored_in_silence() {
        for (line, text) in [
            ("--foo", "Error parsing command line: unrecognised option '--foo'"),
            ("extra", "Invalid command: extra"),
            ("--port abc", "Error parsing option \"port\" as int: \"abc\" is not an integer"),
            ("--setParameter foo", "Illegal option assignment: \"foo\""),
            ("--profileFilter x", "--profileFilter: profile filters are not supported yet"),
        ] {
            assert_eq!(cli(line).unwrap_err(), text);
        }
        assert!(cli("--dbpath").unwrap_err().contains("is missing"));
    }

    #[test]
    fn the_old_file_form_is_read() {
        let text = "dbpath = /data\nlogappend=true\nport=1\nnetworkMessageCompressors=zstd,zlib,snappy,noop\n\
                    # comment\nsetParameter = enableTestCommands=1\nsetParameter = writePeriodicNoops=0\nverbose=v\n";
        let s = config_file(text).unwrap();
        assert_eq!(s.text("storage.dbPath"), Some("/data"));
        assert!(s.flag("systemLog.logAppend"));
        assert_eq!(s.pairs("setParameter").len(), 2);
        assert!(config_file("foo=1").unwrap_err().contains("unrecognised option 'foo'"));
        assert_eq!(config_file("keyFile=k").unwrap().text("security.keyFile"), Some("k"));
        config_file("auth=false").unwrap();
    }

    #[test]
    fn yaml_is_read_and_unknown_keys_are_refused() {
        let text = "net:\n  port: 7\n  bindIp: a,b\nsystemLog:\n  destination: file\n  path: /x\n  component:\n    \
                    storage:\n      verbosity: 2\nreplication.replSetName: rs\nsetParameter:\n  \
                    enableTestCommands: true\n";
        let s = config_file(text).unwrap();
        assert_eq!((s.int("net.port"), s.text("replication.replSetName")), (Some(7), Some("rs")));
        assert_eq!(s.component_verbosity, [("storage".to_owned(), 2)]);
        assert_eq!(s.pairs("setParameter"), [("enableTestCommands".to_owned(), "true".to_owned())]);
        assert_eq!(config_file("net:\n  foo: 1\n").unwrap_err(), "Unrecognized option: net.foo");
        assert!(config_file("net: [1").is_err());
        assert_eq!(config_file("security:\n  keyFile: x\n").unwrap().text("security.keyFile"), Some("x"));
    }

    #[test]
    fn the_command_line_wins_over_the_file_and_parameters_add_up() {
        let file = config_file("port=1\nsetParameter=a=1\nsetParameter=b=1\n").unwrap();
        let s = merge(file, cli("--port 2 --setParameter b=2").unwrap());
        assert_eq!(s.int("net.port"), Some(2));
        assert_eq!(s.pairs("setParameter"), [("a".into(), "1".into()), ("b".into(), "2".into())]);
        let d = s.to_document();
        let port = d.get("net").and_then(|n| n.as_doc()).and_then(|n| n.get("port"));
        assert_eq!(port, Some(&Bson::Int32(2)));
    }

    #[test]
    fn help_lists_every_option_at_line_start() {
        let text = help("pandod");
        for o in all().filter(|o| !o.cli.is_empty()) {
            // One is a router's.
            let shown = o.key() != super::super::router::CONFIG_DB;
            assert_eq!(text.contains(&format!("--{}", o.cli)), shown, "{}", o.cli);
        }
        assert!(text.lines().any(|l| l.starts_with("  --port arg")));
    }
}
