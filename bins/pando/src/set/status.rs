//! What the members say about themselves, and how it is shown: one table that is drawn anew in a terminal, a line per
//! change elsewhere.

use super::{CALL, TICK, command};
use pando_base::limits;
use pando_bson::{RawDoc, Value, doc};
use pando_env::Env;
use pando_rpc::{Pool, Retry};
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The last word of one member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    state: String,
    term: i64,
    /// Milliseconds: wall time of its newest applied entry.
    applied_ms: Option<i64>,
}

impl Seen {
    pub(crate) fn down() -> Seen {
        Seen { state: "DOWN".to_owned(), term: 0, applied_ms: None }
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
        let seen = Mutex::new(vec![Seen { state: "STARTUP".to_owned(), ..Seen::down() }; hosts.len()]);
        Watch { hosts, seen }
    }
    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(crate) fn set(&self, i: usize, seen: Seen) {
        self.lock()[i] = seen;
    }
    /// Asks member `i` again and again; a member that hangs holds up nobody else.
    pub(crate) fn follow(self: Arc<Self>, env: &Env, pool: Pool, i: usize) {
        let clock = env.clock.clone();
        env.spawn("status", async move {
            loop {
                let answer = pool
                    .call(&self.hosts[i], &command(doc! { "replSetGetStatus": 1 }), Retry::Idempotent, CALL)
                    .await;
                self.set(
                    i,
                    match answer {
                        Ok(status) => Seen::of(&status),
                        Err(f) if f.kind == pando_rpc::Kind::TimedOut => {
                            Seen { state: "SILENT".to_owned(), ..Seen::down() }
                        }
                        Err(f) if f.kind == pando_rpc::Kind::Command => {
                            Seen { state: "STARTUP".to_owned(), ..Seen::down() }
                        }
                        Err(_) => Seen::down(),
                    },
                );
                clock.sleep(Duration::from_millis(limits::SET_STATUS_MS).max(TICK)).await;
            }
        });
    }
    pub(crate) fn rows(&self, pids: &[Option<u32>]) -> Vec<Row> {
        let seen = self.lock();
        let newest = seen.iter().find(|s| s.state == "PRIMARY").and_then(|s| s.applied_ms);
        let row = |(i, s): (usize, &Seen)| Row {
            host: self.hosts[i].clone(),
            seen: s.clone(),
            lag_ms: newest.zip(s.applied_ms).map(|(n, own)| (n - own).max(0)),
            pid: pids[i],
        };
        seen.iter().enumerate().map(row).collect()
    }
}

fn table(rows: &[Row]) -> String {
    let mut out = format!("{:<22}{:<12}{:>5}{:>10}{:>10}\n", "member", "state", "term", "lag", "pid");
    for r in rows {
        let lag = r.lag_ms.map_or_else(|| "-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1000.0));
        let pid = r.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        out.push_str(&format!("{:<22}{:<12}{:>5}{lag:>10}{pid:>10}\n", r.host, r.seen.state, r.seen.term));
    }
    out
}

/// The terminal, or a file.
pub(crate) struct Show {
    is_terminal: bool,
    /// What stands there.
    rows: Vec<Row>,
}

impl Show {
    pub(crate) fn new() -> Show {
        Show { is_terminal: std::io::stdout().is_terminal(), rows: Vec::new() }
    }
    fn put(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed terminal is no reason to stop a database.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }
    /// A line that stays, above the table.
    pub(crate) fn say(&mut self, line: &str) {
        let up = self.back();
        self.put(&format!("{up}{line}\n"));
        if self.is_terminal {
            self.rows.clear();
        }
    }
    /// To the table's first line, what follows erased.
    fn back(&self) -> String {
        if self.is_terminal && !self.rows.is_empty() {
            format!("\x1b[{}A\x1b[J", self.rows.len() + 1)
        } else {
            String::new()
        }
    }
    pub(crate) fn state(&mut self, rows: &[Row]) {
        if self.rows == rows {
            return;
        }
        let text =
            if self.is_terminal { format!("{}{}", self.back(), table(rows)) } else { self.changes(rows) };
        self.rows = rows.to_vec();
        self.put(&text);
    }
    /// Lines for the members whose state, term or process is another.
    fn changes(&self, rows: &[Row]) -> String {
        let mut out = String::new();
        for (i, r) in rows.iter().enumerate() {
            let key = |r: &Row| (r.seen.state.clone(), r.seen.term, r.pid);
            if self.rows.get(i).map(key) != Some(key(r)) {
                let pid = r.pid.map_or_else(|| "no process".to_owned(), |pid| format!("process {pid}"));
                out.push_str(&format!("{} {} term {} {pid}\n", r.host, r.seen.state, r.seen.term));
            }
        }
        out
    }
}
