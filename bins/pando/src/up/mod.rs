//! `pando up`: a working database here and now. Data in `./pando-data`, a replica set of one member that
//! initiates itself, log lines in a file; the terminal shows how to connect.

mod several;

use crate::Command;
use crate::admin::{Admin, Made};
use crate::tls::Local;
use crate::{cluster, set};
use pando_env::Log;
use pando_env_tokio::RealNet;
use pando_rpc::{Options, Pool};
use pando_shell::Config;
use pando_shell::log::Destination;
use pando_shell::options::parse;
use pandod::{exit, start};
use several::Several;
use std::path::{Path, PathBuf};

pub(crate) const COMMAND: Command =
    Command { name: "up", help: "start a database in ./pando-data and show how to connect", run };

const HELP: &str = "\
Usage: pando up [--members N] [--data DIR] [--port P] [--tls] [--auth] [--log] [pandod options]
       pando up --shards N [--members M] [--routers R] [--data DIR] [--port P] [--tls] [--auth] [pandod options]

Starts a replica set, or a sharded cluster, that listens on localhost only. Ctrl-C stops it; the data stays.

  --members N    how many members (1): an odd number up to 7. More than one are processes of their own, on the ports
                 P, P+1, ..., with data and logs in DIR/SET/member1, member2, ...; one that ends is started again
  --shards N     a cluster of N shards (up to 32), each a set of M members; of a set of config servers, as many as M but
                 at most 3; and of routers. Each is a process of its own, with data and log in DIR/cluster. Started
                 again with more shards, the new ones are added
  --routers R    with --shards: how many routers (1), up to 8. The first listens on the port P; config servers, shards
                 and further routers on those after it. pandod's options are for all servers, not for routers
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
    match several::wanted(args) {
        None => match configure(args) {
            Ok(one) => up(one),
            Err(refusal) => refused(&refusal),
        },
        Some(Ok(Several::Set(plan))) => set::up(plan),
        Some(Ok(Several::Cluster(plan))) => cluster::up(plan),
        Some(Err(refusal)) => refused(&refusal),
    }
}

fn refused(refusal: &str) -> u8 {
    eprintln!("{refusal}\n'pando up --help' tells more.");
    exit::BAD_OPTIONS
}

/// One member, in this process.
struct One {
    config: Box<Config>,
    tls: Option<Local>,
    admin: Option<Admin>,
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
