//! A set of many tenants that splits under faults: three members that stay and three that leave, all of it the servers' own code, and
//! users who go where their tenant goes.
//!
//! A split is asked for at some moment, called off now and then, asked for again under another name; two may be asked for at once
//! ([`splits`], [`operator`]). Members are killed, lose power or stand still, links are cut, clocks jump, primaries step down, at any time and
//! before some step of most splits ([`super::faults`]).
//! Both sets are looked at all the time, and every rule of a set must hold for each ([`super::side`]).
//! At the end everything heals and is judged: by what users were told ([`super::users`]), and by what the two sets are ([`judgement`]).

mod judgement;
mod knowledge;
mod operator;
mod shape;
mod splits;

use super::board::Board;
use super::field::{Field, LOOK_MS};
use super::side::Side;
use super::{EACH, Home, MEMBERS};
use crate::executor::lock;
use crate::set::broken::Counts;
use crate::set::{Failure, Options};
use crate::{NetOptions, ProcessId, World};
use knowledge::{Knowledge, Said};
use shape::{DONOR, OTHER_RECIPIENT, RECIPIENT, Shape, TENANTS};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Once everything has healed, there are primaries and agreement within this time.
const LIVELY: Duration = Duration::from_secs(180);
/// Until users have ended.
const LAST_COMMANDS: Duration = Duration::from_secs(15);
/// Both sets go on so long under faults once a split has committed.
const AFTERWARDS: Duration = Duration::from_secs(12);

/// What a run is asked for, where nobody says otherwise: short, and wild.
pub fn options() -> Options {
    Options {
        users: 3,
        seconds: 40,
        between_ms: 2500,
        longest_ms: 7000,
        pause_ms: 300,
        calm_ms: 3000,
        ..Options::default()
    }
}

/// What a run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub trace: u64,
    pub time: Duration,
    pub polls: u64,
    pub elections: u64,
    pub rollbacks: u64,
    /// Entries that the sets have committed.
    pub entries: usize,
    pub committed: usize,
    pub aborted: usize,
    pub refused: usize,
    /// Commands that were told to go elsewhere, or to stay after they had waited.
    pub moved: usize,
    pub stayed: usize,
    pub acknowledged: usize,
    pub repeated: usize,
    /// Of those, the ones that were acknowledged by the other set before.
    pub repeated_elsewhere: usize,
    pub reads: usize,
    pub register_commands: usize,
    pub transactions: usize,
    /// Steps of splits at which something broke.
    pub steps: BTreeMap<u64, u32>,
    pub faults: Counts,
}

struct Run {
    field: Field,
    shape: Shape,
    schedule: splits::Schedule,
    knowledge: Arc<Mutex<Knowledge>>,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(seed, options);
    let (config, logins) = (run.shape.config(&run.field.addrs()), run.shape.asks_for_logins);
    run.field.initiate(0..MEMBERS, config, logins)?;
    let stop = Arc::new(AtomicBool::new(false));
    let people = run.field.world.sim.start_process();
    for place in run.field.places(people, &stop) {
        run.field.users.come(&run.field.world, people, &place);
    }
    run.field.world.net.set_options(NetOptions { break_ppm: options.break_ppm, ..NetOptions::default() });
    run.go_wild()?;
    run.field.world.net.set_options(NetOptions::default());
    run.field.end_faults()?;
    run.end_splits()?;
    run.field.go_on(Duration::from_millis(options.calm_ms))?;
    stop.store(true, Relaxed);
    run.field.go_on(LAST_COMMANDS)?;
    run.check(people)
}

impl Run {
    fn new(seed: u64, options: &Options) -> Run {
        let world = World::new(seed, NetOptions::default());
        let shape = Shape::of(seed);
        let nodes = Field::nodes_of(seed, |seed, i| shape.node(&world, seed, i));
        let sides = [
            Side::splitting(&[DONOR], 0..MEMBERS, Home::First),
            Side::splitting(&[RECIPIENT, OTHER_RECIPIENT], EACH..MEMBERS, Home::Second),
        ];
        let board = Board::new((0..TENANTS).map(|_| Home::First), true);
        let mut field = Field::new(world, options, nodes, sides, board);
        let knowledge: Arc<Mutex<Knowledge>> = Arc::default();
        let known = knowledge.clone();
        field.told = Box::new(move || lock(&known).splits.iter().map(|s| format!("{s:?}")).collect());
        let schedule = splits::Schedule { next: Duration::ZERO, attempts: 0, last_id: 0, committed_at: None };
        Run { field, schedule, knowledge, shape }
    }

    /// Faults and splits, until both sets have lived with a split for a while, or the time is over.
    fn go_wild(&mut self) -> Result<(), Box<Failure>> {
        let (begun, options) = (self.field.now(), self.field.options);
        let end = begun + Duration::from_secs(options.seconds);
        let mut next = begun + Duration::from_millis(self.field.below(options.between_ms * 2));
        self.schedule.next = begun + Duration::from_millis(500 + self.field.below(6000));
        while self.field.now() < end
            && self.schedule.committed_at.is_none_or(|at| self.field.now() < at + AFTERWARDS)
        {
            if self.field.now() >= next {
                self.field.look()?;
                self.field.fault();
                next += Duration::from_millis(self.field.below(options.between_ms * 2));
            }
            self.split_if_due();
            self.field.go_on(Duration::from_millis(LOOK_MS))?;
            self.field.heal_due();
        }
        Ok(())
    }

    fn check(mut self, people: ProcessId) -> Result<Report, Box<Failure>> {
        let (knowledge, board) = (self.knowledge.clone(), self.field.board.clone());
        self.field.judge(LIVELY, |parts| judgement::run(judgement::Judge { parts, knowledge, board }))?;
        let sim = &self.field.world.sim;
        sim.kill(people);
        sim.kill(self.field.operator);
        self.field.stop_if(lock(&self.field.users.registers).problems())?;
        Ok(self.reported())
    }
    fn reported(&self) -> Report {
        let field = &self.field;
        let (sim, knowledge, board) = (&field.world.sim, lock(&self.knowledge), lock(&field.board));
        let written = lock(&field.users.written);
        Report {
            trace: sim.trace(),
            time: sim.now(),
            polls: sim.polls(),
            elections: field.elections,
            rollbacks: field.rollbacks,
            entries: field.sides.iter().map(|s| s.watch.committed.chain.len()).sum(),
            committed: knowledge.count(|s| *s == Said::Committed),
            aborted: knowledge.count(|s| *s == Said::Aborted),
            refused: knowledge.count(|s| matches!(s, Said::Refused(_))),
            moved: board.moved,
            stayed: board.stayed,
            acknowledged: written.acknowledged(),
            repeated: written.repeated,
            repeated_elsewhere: written.repeated_elsewhere,
            reads: written.reads,
            register_commands: lock(&field.users.registers).commands(),
            transactions: lock(&field.users.transactions).committed(),
            steps: field.steps.clone(),
            faults: field.broken.counts.clone(),
        }
    }
}
