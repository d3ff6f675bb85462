//! Replays golden answers on a running server: `cargo run -p pando-testkit --example goldens -- HOST:PORT [TOPIC ...]`.

use pando_testkit::goldens::{Explained, Setups, Way, run_topic, topics};

fn main() {
    let mut args = std::env::args().skip(1);
    let host_port = args.next().unwrap_or_else(|| "127.0.0.1:27017".to_owned());
    let only: Vec<String> = args.collect();
    let (setups, explained) = (Setups::read(), Explained::read(&["explained.json"]));
    let (mut cases, mut bad) = (0, 0);
    for topic in topics().iter().filter(|t| only.is_empty() || only.iter().any(|o| t.starts_with(o.as_str())))
    {
        let r = run_topic(&host_port, topic, 1, &setups, &explained, Way::Set);
        println!(
            "{topic:22} {:5} cases, {} differ in text only, {} explained, {} unexplained",
            r.cases,
            r.messages.len(),
            r.explained.len(),
            r.unexplained.len()
        );
        for d in r.unexplained.iter().take(5) {
            println!("  {} {:?}\n    want {:.600}\n    got  {:.600}", d.id, d.kind, d.want, d.got);
        }
        cases += r.cases;
        bad += r.unexplained.len();
    }
    println!("{cases} cases, {bad} unexplained differences");
    std::process::exit(i32::from(bad > 0));
}
