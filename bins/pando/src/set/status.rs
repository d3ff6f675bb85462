//! What servers say about themselves, and how it is shown: one table that is drawn anew in a terminal, a line per change
//! elsewhere.

use super::{CALL, TICK, command};
use pando_base::limits;
use pando_bson::{RawDoc, Value, doc};
use pando_env::Env;
use pando_rpc::{Kind, Pool, Retry};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The last word of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    state: String,
    term: i64,
    /// Milliseconds: wall time of its newest applied entry.
    applied_ms: Option<i64>,
}

impl Seen {
    pub(crate) fn down() -> Seen {
        Seen::only("DOWN")
    }
    fn only(state: &str) -> Seen {
        Seen { state: state.to_owned(), term: 0, applied_ms: None }
    }
    /// From its `replSetGetStatus`.
    fn of(status: &RawDoc) -> Seen {
        let own = status.get("members").and_then(|v| v.as_array()).and_then(|list| {
            list.iter().filter_map(|e| e.value().as_doc()).find(|m| m.get("self").is_some())
        });
        Seen {
            state: own.and_then(|m| m.get("stateStr")?.as_str()).unwrap_or("STARTUP").to_owned(),
            term: status.get("term").and_then(|v| v.as_i64()).unwrap_or(0),
            applied_ms: match status
                .get("lastAppliedWallTime")
                .or_else(|| status.get_path("optimes.lastAppliedWallTime"))
            {
                Some(Value::DateTime(ms)) if ms > 0 => Some(ms),
                _ => None,
            },
        }
    }
}

/// One line of the table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    host: String,
    seen: Seen,
    lag_ms: Option<i64>,
    pid: Option<u32>,
}

pub(crate) struct Watch {
    hosts: Vec<String>,
    seen: Mutex<Vec<Seen>>,
}

impl Watch {
    pub(crate) fn new(hosts: Vec<String>) -> Watch {
        let seen = Mutex::new(vec![Seen::only("STARTUP"); hosts.len()]);
        Watch { hosts, seen }
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn set(&self, i: usize, seen: Seen) {
        self.lock()[i] = seen;
    }
    /// Asks server `i` again and again; one that hangs holds up nobody else.
    pub(crate) fn follow(self: Arc<Self>, env: &Env, pool: Pool, i: usize, asks: Asks) {
        let clock = env.clock.clone();
        env.spawn("status", async move {
            let question = match asks {
                Asks::Member => command(doc! { "replSetGetStatus": 1 }),
                Asks::Router => command(doc! { "ping": 1 }),
            };
            loop {
                let answer = pool.call(&self.hosts[i], &question, Retry::Idempotent, CALL).await;
                self.set(
                    i,
                    match answer {
                        Ok(status) if asks == Asks::Member => Seen::of(&status),
                        Ok(_) => Seen::only("UP"),
                        Err(f) if f.kind == Kind::TimedOut => Seen::only("SILENT"),
                        Err(f) if f.kind == Kind::Command => Seen::only("STARTUP"),
                        Err(_) => Seen::down(),
                    },
                );
                clock.sleep(Duration::from_millis(limits::SET_STATUS_MS).max(TICK)).await;
            }
        });
    }
    /// The set whose first member is server `first`, and whose processes are `pids`.
    pub(crate) fn rows(&self, first: usize, pids: &[Option<u32>]) -> Vec<Row> {
        let seen = self.lock();
        let seen = &seen[first..first + pids.len()];
        let newest = seen.iter().find(|s| s.state == "PRIMARY").and_then(|s| s.applied_ms);
        let row = |(i, s): (usize, &Seen)| Row {
            host: self.hosts[first + i].clone(),
            seen: s.clone(),
            lag_ms: newest.zip(s.applied_ms).map(|(n, own)| (n - own).max(0)),
            pid: pids[i],
        };
        seen.iter().enumerate().map(row).collect()
    }
}

/// What a server is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asks {
    /// A set's member: how the set is.
    Member,
    /// A router: whether it answers.
    Router,
}

impl Row {
    /// In columns of the same widths as [`Row::titles`].
    pub(crate) fn line(&self) -> String {
        let known = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        let lag = known(self.lag_ms.map(|ms| format!("{:.1} s", ms as f64 / 1000.0)));
        let term = known((self.seen.term > 0).then(|| self.seen.term.to_string()));
        let pid = known(self.pid.map(|pid| pid.to_string()));
        columns([&self.host, &self.seen.state, &term, &lag, &pid])
    }
    pub(crate) fn titles() -> String {
        columns(["member", "state", "term", "lag", "pid"])
    }
    pub(crate) fn host(&self) -> &str {
        &self.host
    }
    pub(crate) fn state(&self) -> &str {
        &self.seen.state
    }
    #[cfg(test)]
    pub(crate) fn for_tests(host: &str, state: &str) -> Row {
        Row { host: host.to_owned(), seen: Seen::only(state), lag_ms: None, pid: None }
    }
    /// What is worth a line of its own when it is another than before.
    pub(crate) fn fact(&self) -> String {
        let pid = self.pid.map_or_else(|| "no process".to_owned(), |pid| format!("process {pid}"));
        match self.seen.state.as_str() {
            "UP" => format!("{} UP {pid}", self.host),
            state => format!("{} {state} term {} {pid}", self.host, self.seen.term),
        }
    }
}

fn columns([host, state, term, lag, pid]: [&str; 5]) -> String {
    format!("{host:<22}{state:<12}{term:>5}{lag:>10}{pid:>10}")
}

/// Lines of a table.
pub(crate) fn table(rows: &[Row]) -> Vec<String> {
    [Row::titles()].into_iter().chain(rows.iter().map(Row::line)).collect()
}

pub(crate) fn facts(rows: &[Row]) -> Vec<String> {
    rows.iter().map(Row::fact).collect()
}

/// Lines that fit into the terminal; all of them where there is none.
pub(crate) fn room() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        // A line is left for the cursor.
        Ok(size) if size.ws_row > 1 => usize::from(size.ws_row) - 1,
        _ => usize::MAX,
    }
}

fn put(text: &str) {
    let mut out = std::io::stdout().lock();
    // A closed terminal is no reason to leave a database alone.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// A line for who may still be there to read it.
pub(crate) fn tell(line: &str) {
    put(&format!("{line}\n"));
}

/// The same about what went wrong.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The terminal, or a file.
pub(crate) struct Show {
    is_terminal: bool,
    /// What stands there, in a terminal.
    table: Vec<String>,
    /// What was told last, elsewhere.
    facts: Vec<String>,
}

impl Show {
    pub(crate) fn new() -> Show {
        Show { is_terminal: std::io::stdout().is_terminal(), table: Vec::new(), facts: Vec::new() }
    }
    /// A line that stays, above the table.
    pub(crate) fn say(&mut self, line: &str) {
        let up = self.back();
        put(&format!("{up}{line}\n"));
        self.table.clear();
    }
    /// To the table's first line, what follows erased.
    fn back(&self) -> String {
        match self.table.len() {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\x1b[J"),
        }
    }
    /// A terminal shows the table; elsewhere those facts are told, by their places, that are others than before and
    /// not empty.
    pub(crate) fn state(&mut self, table: Vec<String>, facts: Vec<String>) {
        if self.is_terminal {
            if self.table != table {
                put(&format!("{}{}\n", self.back(), table.join("\n")));
                self.table = table;
            }
            return;
        }
        for (i, fact) in facts.iter().enumerate() {
            if self.facts.get(i) != Some(fact) && !fact.is_empty() {
                put(&format!("{fact}\n"));
            }
        }
        self.facts = facts;
    }
}
