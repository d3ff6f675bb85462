//! Options of a subcommand: `--name value`, `--name=value`, `--flag`, and what has no name.

use crate::{login, tls};

/// What was said.
pub(crate) struct Args {
    named: Vec<(String, String)>,
    pub(crate) rest: Vec<String>,
}

impl Args {
    /// `values` take one, `flags` none; those of TLS and of logins are known to all subcommands. A short form stands behind a bar: `out|o`.
    pub(crate) fn parse(args: &[String], values: &[&str], flags: &[&str]) -> Result<Args, String> {
        let mut out = Args { named: Vec::new(), rest: Vec::new() };
        let mut at = 0;
        while at < args.len() {
            let arg = &args[at];
            at += 1;
            if !arg.starts_with('-') || arg == "-" {
                out.rest.push(arg.clone());
                continue;
            }
            let (said, given) =
                arg.split_once('=').map_or((&arg[..], None), |(n, v)| (n, Some(v.to_owned())));
            let find = |list: &[&str]| list.iter().find_map(|known| named(known, said));
            if let Some(name) = find(values).or_else(|| find(tls::VALUES)).or_else(|| find(login::VALUES)) {
                let value = given.or_else(|| {
                    at += 1;
                    args.get(at - 1).cloned()
                });
                out.named.push((name, value.ok_or_else(|| format!("{said} needs a value"))?));
            } else if let Some(name) = find(flags).or_else(|| find(tls::FLAGS)) {
                out.named.push((name, given.unwrap_or_default()));
            } else {
                return Err(format!("there is no option {said}"));
            }
        }
        let secrets = ["password", "tlsCertificateKeyFilePassword", "sslPEMKeyPassword"]
            .map(|name| out.get(name).unwrap_or_default());
        // Where that cannot be done they stay to be seen, as with any other program.
        let _ = pando_env_tokio::arguments::hide(&secrets);
        Ok(out)
    }
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.named.iter().rev().find(|(n, _)| n == name).map(|(_, v)| &v[..])
    }
    pub(crate) fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }
}

/// The long name of an option that was said in one of its forms.
fn named(known: &str, said: &str) -> Option<String> {
    let (long, short) = known.split_once('|').map_or((known, None), |(l, s)| (l, Some(s)));
    let is_long = said.strip_prefix("--") == Some(long);
    let is_short = short.is_some_and(|s| said.strip_prefix('-') == Some(s));
    (is_long || is_short).then(|| long.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_long_and_short_forms() {
        let said: Vec<String> =
            ["--out", "a", "x", "-d=b", "--gzip", "-d", "c"].iter().map(|s| (*s).to_owned()).collect();
        let args = Args::parse(&said, &["out|o", "db|d"], &["gzip"]).unwrap();
        assert_eq!((args.get("out"), args.get("db"), args.has("gzip")), (Some("a"), Some("c"), true));
        assert_eq!(args.rest, ["x"]);
        assert!(Args::parse(&said, &["out"], &[]).is_err());
        assert_eq!(
            Args::parse(&["--out".to_owned()], &["out"], &[]).err().as_deref(),
            Some("--out needs a value")
        );
    }
}
