//! `sim shards`: a cluster of so many shards, or several of different sizes, and a table of what operations cost in each.

use pando_sim::shards::cost::{Outside, Row};
use pando_sim::shards::{Options, Report, growth, run};

/// What is asked for on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// Numbers of shards, one after the other.
    pub(crate) shards: Vec<u16>,
    pub(crate) config_members: u16,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { shards: vec![10, 100, 1000], config_members: 1 }
    }
}

/// The system's own figures of this process; nothing where it has none.
fn figures(file: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    text.split_whitespace().map_while(|word| word.parse().ok()).collect()
}
fn cpu_ns() -> u64 {
    figures("schedstat").first().copied().unwrap_or(0)
}
fn resident() -> u64 {
    figures("statm").get(1).copied().unwrap_or(0) * 4096
}
fn tell(row: &Row) {
    println!(
        "  {}: {} times, {:?}, router {} messages {} bytes {} polls, all {} messages {} bytes, {:.2} s of the processor",
        row.name,
        row.times,
        row.time,
        row.of_router.messages,
        row.of_router.bytes,
        row.work,
        row.of_all.messages,
        row.of_all.bytes,
        row.cpu.as_secs_f64()
    );
}

/// Runs them all; how many failed.
pub(crate) fn run_all(seed: u64, wanted: &Wanted, twice: bool) -> usize {
    let (mut failed, mut reports) = (0, Vec::new());
    for shards in &wanted.shards {
        println!("seed {seed}, {shards} shards");
        let outside = Outside { cpu_ns, resident };
        let options = Options { shards: *shards, config_members: wanted.config_members, outside, tell };
        match once(seed, &options) {
            Ok(report) => {
                if twice && once(seed, &options).map(|again| again.trace) != Ok(report.trace) {
                    failed += 1;
                    println!("seed {seed}: two runs DIFFER");
                }
                println!(
                    "  {:.0} simulated seconds, {} polls, {:.1} s of the processor, {} MiB resident, trace {:016x}",
                    report.time.as_secs_f64(),
                    report.polls,
                    cpu_ns() as f64 / 1e9,
                    resident() >> 20,
                    report.trace
                );
                reports.push(report);
            }
            Err(why) => {
                failed += 1;
                println!(
                    "{why}\nseed {seed} FAILED with {shards} shards\nagain with: sim shards --seed {seed} --shards {shards}"
                );
            }
        }
    }
    show(&reports);
    for pair in reports.windows(2) {
        for problem in growth::problems(&pair[0], &pair[1]) {
            failed += 1;
            println!("  * {problem}");
        }
    }
    failed
}

/// A panic of a server is a failure as any other.
fn once(seed: u64, options: &Options) -> Result<Report, String> {
    let run = || run(seed, options);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err("the simulation panicked".to_owned()))
}

/// A table as documents have them: for each number of shards the time of one such step, and the router's messages.
fn show(reports: &[Report]) {
    let Some(first) = reports.first() else { return };
    let heads = reports.iter().map(|r| format!(" {} shards: time | messages |", r.shards));
    println!("\n| step |{}", heads.collect::<String>());
    println!("|---|{}", "---|".repeat(2 * reports.len()));
    for row in &first.rows {
        let cells = reports.iter().map(|r| match r.rows.iter().find(|other| other.name == row.name) {
            Some(row) => format!(" {} | {} |", time_of(row), messages_of(row)),
            None => " | |".to_owned(),
        });
        println!("| {} |{}", row.name, cells.collect::<String>());
    }
    let line = |what: &str, of: &dyn Fn(&Report) -> String| {
        let cells = reports.iter().map(|r| format!(" | {} |", of(r)));
        println!("| {what} |{}", cells.collect::<String>());
    };
    line("open connections of the router", &|r| r.connections.to_string());
    line("open connections of the config server", &|r| r.connections_of_config.to_string());
    line("memory of another router, KiB", &|r| (r.router_bytes >> 10).to_string());
}

fn time_of(row: &Row) -> String {
    let ms = row.each_time().as_secs_f64() * 1000.0;
    if ms < 100.0 { format!("{ms:.1} ms") } else { format!("{:.2} s", ms / 1000.0) }
}
fn messages_of(row: &Row) -> String {
    let each = row.each_messages();
    if each < 100.0 { format!("{each:.1}") } else { format!("{each:.0}") }
}
