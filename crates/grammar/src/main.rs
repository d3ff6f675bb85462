//! `grammar`: the command line of the grammar fuzzer.

// It runs against real servers, in real time.
#![allow(clippy::disallowed_methods)]

use pando_grammar::admin::Admin;
use pando_grammar::draw::Class;
use pando_grammar::program::Program;
use pando_grammar::report::json;
use pando_grammar::run::{Options, Run};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str =
    "usage: grammar [--programs N] [--seed N] [--seconds N] [--against mongodb://HOST:PORT] [--admin]
               [--only read|write|definitions|server] [--shrink N] [--port N] [--out FILE] | grammar show SEED";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", folder, port] => {
            pando_grammar::server::serve(folder, port.parse().unwrap_or(0), false);
            ExitCode::SUCCESS
        }
        ["show", seed] => {
            let p = Program::of(seed.parse().unwrap_or(0));
            for call in p.calls() {
                println!("{}: {}", call.db, json(&call.cmd));
            }
            ExitCode::SUCCESS
        }
        _ => fuzz(&args),
    }
}

fn class(name: &str) -> Option<Class> {
    match name {
        "read" => Some(Class::Read),
        "write" => Some(Class::Write),
        "definitions" => Some(Class::Ddl),
        "server" => Some(Class::Server),
        _ => None,
    }
}

/// What the command line asks for.
struct Asked {
    options: Options,
    /// Also write the report there.
    out: Option<String>,
    /// Commands of administration, instead of programs.
    admin: bool,
}

impl Asked {
    /// `None` when it asks for what there is not.
    fn parse(args: &[String]) -> Option<Asked> {
        let mut options = Options {
            seed: 1,
            programs: u64::MAX,
            until: None,
            against: None,
            folder: std::env::temp_dir().join(format!("pando-grammar-{}", std::process::id())),
            port: 0,
            shrunk: 20,
            only: None,
        };
        let (mut out, mut admin) = (None, false);
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if arg == "--admin" {
                admin = true;
                continue;
            }
            let v = rest.next()?;
            match arg.as_str() {
                "--seed" => options.seed = v.parse().unwrap_or(1),
                "--programs" => options.programs = v.parse().unwrap_or(1000),
                "--seconds" => {
                    options.until = Some(Instant::now() + Duration::from_secs(v.parse().unwrap_or(60)))
                }
                "--against" => options.against = Some(v.clone()),
                "--shrink" => options.shrunk = v.parse().unwrap_or(20),
                "--only" => options.only = Some(class(v)?),
                "--port" => options.port = v.parse().unwrap_or(0),
                "--out" => out = Some(v.clone()),
                _ => return None,
            }
        }
        Some(Asked { options, out, admin })
    }
}

fn fuzz(args: &[String]) -> ExitCode {
    let Some(asked) = Asked::parse(args) else {
        eprintln!("{USAGE}");
        return ExitCode::FAILURE;
    };
    let (text, is_clean) = match asked.admin {
        true => administer(&asked.options),
        false => match run_programs(asked.options) {
            Ok(done) => done,
            Err(e) => {
                eprintln!("{e}");
                return ExitCode::FAILURE;
            }
        },
    };
    println!("{text}");
    if let Some(out) = asked.out
        && let Err(e) = std::fs::write(&out, &text)
    {
        eprintln!("{out}: {e}");
    }
    if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The report, and whether nothing was found.
fn administer(options: &Options) -> (String, bool) {
    let begun = Instant::now();
    let port = if options.port == 0 { 31680 } else { options.port };
    let mut run = Admin::new(options.folder.clone(), port);
    if let Err(e) = run.run(options.seed, options.programs, options.until) {
        eprintln!("it ended early: {e}");
    }
    let mut text = format!("{} commands of administration in {:.0?}\n", run.done, begun.elapsed());
    for (key, t) in &run.troubles {
        text.push_str(&format!("\n# {key}  ({})\n{}\n", t.count, t.example));
    }
    (text, run.troubles.is_empty())
}

/// The same for programs.
fn run_programs(options: Options) -> std::io::Result<(String, bool)> {
    let begun = Instant::now();
    let mut run = Run::new(options)?;
    if let Err(e) = run.run() {
        eprintln!("it ended early: {e}");
    }
    let text = report(&run, begun.elapsed());
    Ok((text, run.troubles.is_empty() && run.differences == 0))
}

fn report(run: &Run, took: Duration) -> String {
    let mut text = format!(
        "{} programs in {:.0} s ({:.0} a second), slack {}: {} kinds of trouble, {} unexplained differences in {} kinds\n",
        run.done,
        took.as_secs_f64(),
        run.done as f64 / took.as_secs_f64(),
        run.slack(),
        run.troubles.len(),
        run.differences,
        run.groups.all.len()
    );
    for (key, t) in &run.troubles {
        text.push_str(&format!("\n# {key}  ({})\n{}\n", t.count, t.example));
    }
    for seed in &run.reference_ended {
        text.push_str(&format!("the reference ended in the batch of seed {seed}\n"));
    }
    if !run.gone.is_empty() {
        let seeds: Vec<String> = run.gone.iter().map(u64::to_string).collect();
        text.push_str(&format!("answered alike when they ran alone: {}\n", seeds.join(" ")));
    }
    text.push_str(&run.groups.print());
    text.push_str(&run.print_rough());
    text.push_str(&format!("\nexplained:\n{}", run.reasons.print()));
    if run.orders > 0 {
        text.push_str(&format!(
            "  {} × Both servers know all mistakes of the program and tell another one first.\n",
            run.orders
        ));
    }
    text
}
