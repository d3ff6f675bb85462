//! Two sets of three members between which tenants move under faults, and users who go where their tenant goes.
//!
//! Some tenants go from one of the sets to the other at the same time, then some go the same way or back, for as long as the run lasts
//! ([`moves`], [`operator`]); some are called off, some go where something of the tenant is already. Or one set is merged into the other one, with all
//! tenants that it has, again and again ([`merges`]), while new ones come into being ([`newcomers`]) and others write what is no tenant's ([`nobodys`]). Members of both sets are killed, lose
//! power or stand still, links are cut, clocks jump, primaries step down, at any time and before some step of most migrations
//! ([`super::faults`]). Both sets are looked at all the time as a set alone is ([`super::side`]), and so is what their members say of
//! tenants ([`decisions`]). At the end everything heals and is judged: by what users were told ([`super::users`], [`definitions`],
//! [`strays`]), and by what the two sets are ([`judgement`]).

mod decisions;
mod definitions;
mod imports;
mod judgement;
mod knowledge;
mod merges;
mod moves;
mod newcomers;
mod nobodys;
mod operator;
mod shape;
mod strays;

use super::board::Board;
use super::field::{Field, LOOK_MS};
use super::side::Side;
use super::users::Place;
use super::{Home, MEMBERS};
use crate::executor::lock;
use crate::set::broken::Counts;
use crate::set::{Failure, Options};
use crate::{NetOptions, ProcessId, World};
use definitions::Definitions;
use knowledge::{Knowledge, Said};
use shape::Shape;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The names of the sets.
const SETS: [&str; 2] = ["first", "second"];
const TENANTS: usize = 12;
/// Where they are at the beginning: two thirds of them at the first set.
const HOMES: [Home; TENANTS] = {
    let mut homes = [Home::First; TENANTS];
    let mut i = 8;
    while i < TENANTS {
        homes[i] = Home::Second;
        i += 1;
    }
    homes
};
const RECIPIENTS: &str = "tenantMigrationRecipients";
/// Once everything has healed, there are primaries and agreement within this time.
const LIVELY: Duration = Duration::from_secs(180);
/// Until users have ended.
const LAST_COMMANDS: Duration = Duration::from_secs(30);

/// What a run is asked for, where nobody says otherwise: short, and wild.
pub fn options() -> Options {
    Options {
        users: 3,
        seconds: 90,
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
    /// Of merges: how they ended, and how many tenants went with those that committed.
    pub merged: usize,
    pub merges_aborted: usize,
    pub merges_refused: usize,
    pub tenants_merged: usize,
    /// Members that copied their set's data because they lacked what the set had taken in.
    pub lacking: usize,
    /// Rollbacks of members that had just published what they had taken in.
    pub imports_undone: usize,
    /// Tenants that came into being meanwhile, and documents that are no tenant's.
    pub newcomers: usize,
    pub nobodys: usize,
    /// Why, of those that nobody had called off and that had nothing in their way.
    pub reasons: BTreeMap<String, u32>,
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
    pub definitions: usize,
    /// What was in a tenant's way and stayed there; and writes that a set refused which did not have the tenant.
    pub plants_kept: usize,
    pub turned_away: usize,
    /// Steps of migrations at which something broke.
    pub steps: BTreeMap<u64, u32>,
    pub faults: Counts,
}

struct Run {
    field: Field,
    shape: Shape,
    schedule: moves::Schedule,
    knowledge: Arc<Mutex<Knowledge>>,
    definitions: Arc<Mutex<Definitions>>,
    imports: Arc<Mutex<imports::Seen>>,
}

/// Runs one seed.
pub fn run(seed: u64, options: &Options) -> Result<Report, Box<Failure>> {
    let mut run = Run::new(seed, options);
    for home in Home::BOTH {
        let config = run.shape.config(home, &run.field.addrs()[home.machines()]);
        run.field.initiate(home.machines(), config, run.shape.asks_for_logins)?;
    }
    if options.merges {
        run.settle()?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    let people = run.field.world.sim.start_process();
    for place in run.field.places(people, &stop) {
        run.invite(people, &place);
    }
    run.field.world.net.set_options(NetOptions { break_ppm: options.break_ppm, ..NetOptions::default() });
    run.go_wild()?;
    run.field.world.net.set_options(NetOptions::default());
    run.field.end_faults()?;
    run.end_migrations()?;
    run.field.go_on(Duration::from_millis(options.calm_ms))?;
    stop.store(true, Relaxed);
    run.field.go_on(LAST_COMMANDS)?;
    run.check(people)
}

impl Run {
    fn new(seed: u64, options: &Options) -> Run {
        let world = World::new(seed, NetOptions::default());
        let shape = Shape::of(seed, options.merges);
        let nodes = Field::nodes_of(seed, |seed, i| shape.node(&world, seed, i));
        let sides = Home::BOTH.map(|home| Side::apart(SETS[home as usize], home));
        let board = Board::new(HOMES.into_iter(), false);
        let mut field = Field::new(world, options, nodes, sides, board);
        let knowledge: Arc<Mutex<Knowledge>> = Arc::default();
        let known = knowledge.clone();
        field.told = Box::new(move || {
            let known = lock(&known);
            let all = known.migrations.iter().map(|m| format!("{m:?}"));
            all.chain([format!("in the way: {:?}", known.plants)]).chain(known.newcomers.lines()).collect()
        });
        let mut decisions = decisions::Decisions::default();
        let imports: Arc<Mutex<imports::Seen>> = Arc::default();
        let seen = imports.clone();
        field.looking = Box::new(move |nodes, lines, problems| {
            decisions.look(nodes, problems);
            lock(&seen).look(nodes, lines);
        });
        (field.takers_lead, field.stepping, field.amid) = (true, 0..MEMBERS, "amid a migration");
        let schedule = moves::Schedule::new(Duration::ZERO);
        Run { field, shape, schedule, knowledge, definitions: Arc::default(), imports }
    }
    fn invite(&self, people: ProcessId, place: &Place) {
        let (sim, users) = (&self.field.world.sim, &self.field.users);
        users.come(&self.field.world, people, place);
        let defines = definitions::run(place.clone(), self.definitions.clone(), self.knowledge.clone());
        sim.spawn(people, "definer", defines);
        let merges = self.field.options.merges;
        let strays = strays::run(place.clone(), users.written.clone(), self.knowledge.clone(), merges);
        sim.spawn(people, "stray", strays);
        if !merges || place.user != 0 {
            return;
        }
        sim.spawn(people, "newcomer", newcomers::run(place.clone(), self.knowledge.clone()));
        for home in Home::BOTH {
            sim.spawn(people, "nobody", nobodys::run(place.clone(), home, self.knowledge.clone()));
        }
    }

    /// Faults and migrations, until the time is over.
    fn go_wild(&mut self) -> Result<(), Box<Failure>> {
        let (begun, options) = (self.field.now(), self.field.options);
        let end = begun + Duration::from_secs(options.seconds);
        let mut next = begun + Duration::from_millis(self.field.below(options.between_ms * 2));
        self.schedule.next = begun + Duration::from_millis(500 + self.field.below(4000));
        while self.field.now() < end {
            if self.field.now() >= next {
                self.field.look()?;
                self.field.fault();
                next += Duration::from_millis(self.field.below(options.between_ms * 2));
            }
            match options.merges {
                true => self.merge_if_due(),
                false => self.move_if_due(),
            }
            self.field.go_on(Duration::from_millis(LOOK_MS))?;
            self.field.heal_due();
        }
        Ok(())
    }

    fn check(mut self, people: ProcessId) -> Result<Report, Box<Failure>> {
        let (knowledge, board) = (self.knowledge.clone(), self.field.board.clone());
        let definitions = self.definitions.clone();
        let merges = self.field.options.merges;
        let judge = |parts| judgement::Judge { parts, knowledge, board, definitions, merges }.run();
        self.field.judge(LIVELY, judge)?;
        if merges {
            self.field.stop_if(self.imports_left())?;
        }
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
        let imports = lock(&self.imports).counts;
        let merged = |m: &&knowledge::Migration| m.merges && m.said == Some(Said::Committed);
        let mut reasons: BTreeMap<String, u32> = BTreeMap::new();
        for migration in knowledge.migrations.iter().filter(|m| !m.called_off && !m.in_its_way) {
            if let Some(Said::Aborted(code)) = migration.said {
                let why = migration.why.rsplit(" :: ").next().unwrap_or_default();
                // Without what is different in each.
                let why: String = why.chars().filter(|c| !c.is_ascii_digit()).take(60).collect();
                let what = if migration.merges { "merge " } else { "" };
                *reasons.entry(format!("{what}{code}: {why}")).or_default() += 1;
            }
        }
        Report {
            trace: sim.trace(),
            time: sim.now(),
            polls: sim.polls(),
            elections: field.elections,
            rollbacks: field.rollbacks,
            entries: field.sides.iter().map(|s| s.watch.committed.chain.len()).sum(),
            committed: knowledge.count(false, |s| *s == Said::Committed),
            aborted: knowledge.count(false, |s| matches!(s, Said::Aborted(_))),
            refused: knowledge.count(false, |s| matches!(s, Said::Refused(_))),
            merged: knowledge.count(true, |s| *s == Said::Committed),
            merges_aborted: knowledge.count(true, |s| matches!(s, Said::Aborted(_))),
            merges_refused: knowledge.count(true, |s| matches!(s, Said::Refused(_))),
            tenants_merged: knowledge.migrations.iter().filter(merged).map(|m| m.tenants.len()).sum(),
            lacking: imports.lacking,
            imports_undone: imports.undone,
            newcomers: knowledge.newcomers.let_in(),
            nobodys: knowledge.nobodys.acknowledged(),
            reasons,
            moved: board.moved,
            stayed: board.stayed,
            acknowledged: written.acknowledged(),
            repeated: written.repeated,
            repeated_elsewhere: written.repeated_elsewhere,
            reads: written.reads,
            register_commands: lock(&field.users.registers).commands(),
            transactions: lock(&field.users.transactions).committed(),
            definitions: knowledge.definitions,
            plants_kept: knowledge.plants_kept,
            turned_away: knowledge.turned_away,
            steps: field.steps.clone(),
            faults: field.broken.counts.clone(),
        }
    }
}
