//! The options of a router: mongos's. They are those of mongod without what is about data, and `--configdb`. Whether clients have to
//! log in is no option of its own: they have to where the nodes of the cluster do.

use super::parse::{Refusal, Settings};
use super::table::{GROUPS, Opt};

/// Groups whose options a router has, too.
const HEADINGS: &[&str] =
    &["General options", "Network options", "Log options", "TLS options", "Audit options"];
/// Options of these groups that are about data after all.
const OF_DATA: &[&str] =
    &["shutdown", "profile", "slowOpSampleRate", "profileFilter", "notablescan", "sysinfo", "cpu"];
/// What a router has of the security options.
const OF_SECURITY: &[&str] = &["keyFile", "clusterAuthMode", "transitionToAuth", "redactClientLogData"];

/// The option that names the config servers.
pub(super) const CONFIG_DB: &str = "sharding.configDB";

fn is_of_router(heading: &str, opt: &Opt) -> bool {
    opt.key() == CONFIG_DB
        || (HEADINGS.contains(&heading) && !OF_DATA.contains(&opt.cli))
        || OF_SECURITY.contains(&opt.cli)
}

/// What a router is told, checked: the config servers, as they were named.
pub fn check(settings: &Settings) -> Result<String, Refusal> {
    for (heading, options) in GROUPS {
        let strange = options.iter().filter(|o| !is_of_router(heading, o)).find(|o| settings.has(o.key()));
        if let Some(opt) = strange {
            let name = if opt.cli.is_empty() { opt.yaml.to_owned() } else { format!("--{}", opt.cli) };
            return Err(format!("Error parsing command line: unrecognised option '{name}'"));
        }
    }
    match settings.text(CONFIG_DB) {
        Some(text) => Ok(text.to_owned()),
        None => Err("BadValue: error: no args for --configdb".to_owned()),
    }
}

/// What `--help` shows.
pub fn help(program: &str) -> String {
    super::parse::help_with(program, is_of_router)
}

/// A server that holds data asks no config servers that it is told of.
pub(super) fn refuse_on_server(settings: &Settings) -> Result<(), Refusal> {
    match settings.has(CONFIG_DB) {
        true => Err("Error parsing command line: unrecognised option '--configdb'".to_owned()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::command_line;
    use super::*;

    fn checked(line: &str) -> Result<String, Refusal> {
        let args: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        check(&command_line(&args)?)
    }

    #[test]
    fn a_router_has_config_servers_and_no_data() {
        assert_eq!(checked("--configdb c/h:1 --port 5 --logpath x --fork").unwrap(), "c/h:1");
        assert!(checked("--port 5").unwrap_err().contains("configdb"));
        for line in
            ["--keyFile k --transitionToAuth", "--clusterAuthMode x509 --tlsMode requireTLS", "--auditPath x"]
        {
            assert_eq!(checked(&format!("--configdb c/h:1 {line}")).unwrap(), "c/h:1", "{line}");
        }
        for line in ["--dbpath x", "--replSet x", "--auth", "--noauth", "--shutdown", "--encryptionKeyFile x"]
        {
            assert!(checked(&format!("--configdb c/h:1 {line}")).is_err(), "{line}");
        }
        assert!(help("pandos").contains("--configdb") && !help("pandos").contains("--dbpath"));
    }
}
