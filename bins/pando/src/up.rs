//! `pando up`: a working database here and now. Data in `./pando-data`, a replica set of one member that
//! initiates itself, log lines in a file; the terminal shows how to connect.

use crate::Command;
use crate::admin::{Admin, Made};
use crate::set::{self, Plan};
use crate::tls::Local;
use pando_base::limits;
use pando_env::Log;
use pando_env_tokio::RealNet;
use pando_rpc::{Options, Pool};
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::parse;
use pandod::{exit, start};
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "up", help: "start a database in ./pando-data and show how to connect", run };

const HELP: &str = "\
Usage: pando up [--members N] [--data DIR] [--port P] [--tls] [--auth] [--log] [pandod options]

Starts a replica set that listens on localhost only. Ctrl-C stops it; the data stays.

  --members N    how many members (1): an odd number up to 7. More than one are processes of their own, on the ports
                 P, P+1, ..., with data and logs in DIR/SET/member1, member2, ...; one that ends is started again
  --data DIR     where the data lives (./pando-data)
  --port P       port to listen on (27017)
  --replSet SET  name of the set (rs0)
  --tls          speak TLS, with certificates of an authority of your own that are made in DIR/tls
  --auth         everybody logs in: makes DIR/keyfile and, with new data, the user admin, whose password is shown once
  --log          one member: show the log here instead of writing it to DIR/pando.log
";

fn run(args: &[String]) -> u8 {
    if args.iter().any(|a| a == "--help" || a == "-h") {
        print!("{HELP}");
        return exit::CLEAN;
    }
    match set_of(args).map_or_else(|| configure(args).map(Wanted::One), |plan| plan.map(Wanted::Set)) {
        Ok(Wanted::One(one)) => up(one),
        Ok(Wanted::Set(plan)) => set::up(plan),
        Err(refusal) => {
            eprintln!("{refusal}\n'pando up --help' tells more.");
            exit::BAD_OPTIONS
        }
    }
}

enum Wanted {
    One(One),
    Set(Plan),
}

/// One member, in this process.
struct One {
    config: Box<Config>,
    tls: Option<Local>,
    admin: Option<Admin>,
}

/// The plan for more than one member, if that is what the options say.
fn set_of(args: &[String]) -> Option<Result<Plan, String>> {
    let at = args.iter().position(|a| a == "--members" || a.starts_with("--members="))?;
    if value_of(args, at).is_ok_and(|n| n == "1") {
        return None;
    }
    Some(plan(args))
}

/// `--name value` or `--name=value`.
fn value_of(args: &[String], at: usize) -> Result<String, String> {
    match args[at].split_once('=') {
        Some((_, value)) => Ok(value.to_owned()),
        None => args.get(at + 1).cloned().ok_or_else(|| format!("{} needs a value", args[at])),
    }
}

fn plan(args: &[String]) -> Result<Plan, String> {
    let (mut members, mut data, mut set, mut port) = (0, "pando-data".to_owned(), "rs0".to_owned(), 27017);
    let (mut options, mut tls, mut auth) = (Vec::new(), false, false);
    let mut at = 0;
    while at < args.len() {
        let name = args[at].split('=').next().unwrap_or_default();
        let value = || value_of(args, at);
        match name {
            "--members" => members = value()?.parse().unwrap_or(0),
            "--data" | "--dbpath" => data = value()?,
            "--replSet" => set = value()?,
            "--port" => port = value()?.parse().map_err(|_| "--port takes a port number".to_owned())?,
            "--tls" | "--auth" => {
                tls |= name == "--tls";
                auth |= name == "--auth";
                at += 1;
                continue;
            }
            "--fork" | "--logpath" | "--bind_ip" | "--log" => {
                return Err(format!("{name} does not go together with --members"));
            }
            _ => {
                options.push(args[at].clone());
                at += 1;
                continue;
            }
        }
        at += if args[at].contains('=') { 1 } else { 2 };
    }
    if members % 2 == 0 || members > limits::SET_MEMBERS_MAX {
        return Err(
            "--members takes an odd number from 1 to 7: an even one survives no more failures".to_owned()
        );
    }
    if usize::from(port) + members > usize::from(u16::MAX) || port == 0 {
        return Err("--port must leave room for the ports of the other members".to_owned());
    }
    // Found out here, not by each member.
    parse::command_line(&options)?;
    let data = shown(&data);
    let tls = if tls { Some(Local::prepare(&data.join("tls"))?) } else { None };
    let admin = if auth { Some(Admin::prepare(&data)?) } else { None };
    options.extend(tls.iter().flat_map(Local::options));
    options.extend(admin.iter().flat_map(Admin::options));
    let home = data.join(&set);
    Ok(Plan { members, set, home, first_port: port, tls, admin, options })
}

fn configure(args: &[String]) -> Result<One, String> {
    let mut rest = Vec::new();
    let mut data = "pando-data".to_owned();
    let (mut log_here, mut tls, mut auth) = (false, false, false);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--data" | "--dbpath" => {
                data = args.next().cloned().ok_or_else(|| format!("{arg} needs a folder"))?;
            }
            "--log" => log_here = true,
            "--tls" => tls = true,
            "--auth" => auth = true,
            "--members" => drop(args.next()),
            "--members=1" => {}
            _ => rest.push(arg.clone()),
        }
    }
    let local = if tls { Some(Local::prepare(&shown(&data).join("tls"))?) } else { None };
    let admin = if auth { Some(Admin::prepare(&shown(&data))?) } else { None };
    rest.extend(local.iter().flat_map(Local::options));
    rest.extend(admin.iter().flat_map(Admin::options));
    let settings = parse::command_line(&rest)?;
    let cwd = std::env::current_dir().map_err(|e| format!("the current folder cannot be read: {e}"))?;
    let given_log = settings.text("systemLog.path").is_some();
    let mut config = Config::from_settings(&settings, std::env::args().collect(), &cwd)?;
    config.dbpath = shown(&data);
    if !given_log && !log_here {
        config.log.destination =
            Destination::File { path: config.dbpath.join("pando.log"), append: true, reopen: false };
    }
    config.repl_set.get_or_insert_with(|| "rs0".to_owned());
    config.self_initiate = true;
    config.fork = false;
    Ok(One { config: Box::new(config), tls: local, admin })
}

/// Over the wire, in a runtime of its own: the server's is busy with calling this.
fn first_user(admin: &Admin, tls: Option<&Local>, port: u16) -> Result<Made, String> {
    let create = || {
        let runtime = pando_env_tokio::runtime().map_err(|e| e.to_string())?;
        runtime.block_on(async {
            let env = pando_env_tokio::env(Path::new("."), Log::none(), RealNet::default());
            let env = env.map_err(|e| e.to_string())?;
            let env = if let Some(tls) = tls { tls.on(env)? } else { env };
            let options = Options { name: "pando up", login: admin.login(), ..Options::default() };
            let pool = Pool::new(env.clone(), options);
            admin.create(&env, &pool, &[format!("127.0.0.1:{port}")]).await
        })
    };
    std::thread::scope(|scope| scope.spawn(create).join()).unwrap_or_else(|_| Err("it panicked".to_owned()))
}

/// Kept relative when given so: shorter to read.
fn shown(path: &str) -> PathBuf {
    match Path::new(path) {
        p if p.is_absolute() || path.starts_with('.') => p.to_owned(),
        p => Path::new(".").join(p),
    }
}

fn up(One { config, tls, admin }: One) -> u8 {
    if let Err(e) = std::fs::create_dir_all(&config.dbpath) {
        eprintln!("{} cannot be created: {e}", config.dbpath.display());
        return exit::CANNOT_START;
    }
    let quiet = matches!(config.log.destination, Destination::Stdout);
    let log = match &config.log.destination {
        Destination::File { path, .. } => Some(path.clone()),
        _ => None,
    };
    let (data, set) = (config.dbpath.clone(), config.repl_set.clone().unwrap_or_default());
    let ended = start::serve(*config, |running| {
        if quiet {
            return;
        }
        let of_tls = tls.as_ref().map(Local::of_uri).unwrap_or_default();
        let made = admin.as_ref().map(|admin| first_user(admin, tls.as_ref(), running.port));
        let made = match made.transpose() {
            Ok(made) => made,
            Err(e) => return eprintln!("{e}"),
        };
        let of_user = made.as_ref().map(Made::of_uri).unwrap_or_default();
        let uri = format!("mongodb://{of_user}127.0.0.1:{}/?replicaSet={set}{of_tls}", running.port);
        println!("PandoDB {} is running.\n", pandod::version::OWN);
        println!("  connect   {uri}");
        println!("  data      {}", data.display());
        if let Some(log) = &log {
            println!("  log       {}", log.display());
        }
        if let Some(made) = &made {
            println!("{}", made.advice());
        }
        if let Some(tls) = &tls {
            println!("  authority {}\n  yours     {}", tls.ca().display(), tls.client().display());
        }
        println!("\nTry it:\n");
        println!("  mongosh \"{uri}\"");
        println!(
            "  python -c 'import pymongo; c = pymongo.MongoClient(\"{uri}\"); print(c.server_info()[\"version\"])'"
        );
        println!("\nCtrl-C stops the server; the data stays.");
    });
    match &ended.error {
        None => println!("Stopped cleanly."),
        Some(error) => eprintln!("PandoDB could not run: {error}"),
    }
    ended.code
}
