//! What breaks, for how long, and how it heals. Several faults may be under way at once.

use super::Run;
use super::broken::{Heal, Sick, Stage};
use super::orders::Order;
use super::replace::Back;
use crate::ProcessId;
use crate::cuts::Cut;
use crate::links::{Machine, Refusal};
use pando_repl::MemberState;
use std::sync::Arc;
use std::time::Duration;

/// Within this a process has ended whose disk has failed.
const MUST_END: Duration = Duration::from_secs(60);
/// As long as a forced configuration may be on its way nobody changes who votes.
const FORCING: Duration = Duration::from_secs(90);

impl Run {
    /// A member comes back now, on whatever machine.
    pub(super) fn boots_now(&mut self, who: usize) {
        self.broken.due.retain(|(_, heal)| !matches!(heal, Heal::Boot(i) | Heal::Disk(i) if *i == who));
        self.broken.sick.remove(&who);
    }
    fn machines(&self) -> Vec<Machine> {
        self.nodes.iter().map(crate::Node::machine).collect()
    }
    fn relink(&mut self) {
        let (members, clients) = (self.machines(), self.clients.clone());
        let mut links = self.world.net.links();
        links.heal();
        for cut in self.broken.cuts.values() {
            cut.apply(&members, &clients, &mut links);
        }
    }
    pub(super) fn below(&self, n: u64) -> u64 {
        self.world.sim.below(n)
    }
    fn heal_after(&mut self, ms: u64, heal: Heal) {
        let at = self.world.sim.now() + Duration::from_millis(ms);
        self.broken.due.push((at, heal));
    }
    pub(super) fn cut(&mut self, what: &'static str, cut: Cut) {
        let ms = match self.below(3) {
            0 => self.below(2000),
            _ => self.below(self.options.longest_ms),
        };
        self.cut_for(what, cut, ms);
    }
    pub(super) fn cut_for(&mut self, what: &'static str, cut: Cut, ms: u64) {
        let id = self.broken.next_id;
        self.broken.next_id += 1;
        self.broken.cuts.insert(id, cut);
        self.broken.count(what);
        self.relink();
        self.heal_after(ms, Heal::Cut(id));
    }
    /// A stage that was held goes on.
    pub(super) fn go_on_after(&mut self, ms: u64, who: usize, process: ProcessId, stage: Stage) {
        self.heal_after(ms, Heal::Stall(who, process, stage));
    }
    /// The primary more often than others.
    fn somebody(&self) -> usize {
        let leader = self.watch.newest_leader();
        let anyone = self.below(self.nodes.len() as u64) as usize;
        if self.below(2) == 0 { leader.unwrap_or(anyone) } else { anyone }
    }

    /// Something breaks.
    pub(super) fn fault(&mut self) {
        let who = self.somebody();
        match self.below(40) {
            0..=2 => self.stop(who, false),
            3..=5 => self.stop(who, true),
            6 if self.below(4) == 0 => {
                self.broken.count("power loss of all");
                let absent = self.below(5000);
                for i in 0..self.nodes.len() {
                    self.take_down(i, true, absent);
                }
            }
            6 | 7 => self.cut("cut off from members", Cut::Member(who)),
            8 | 9 => self.cut("cut off", Cut::Machine(who)),
            10 => self.cut("mute", Cut::Mute(who)),
            11 => self.cut("deaf", Cut::Deaf(who)),
            12 => self.cut("ring", Cut::Ring(who)),
            13 => {
                let other = (who + 1 + self.below(self.nodes.len() as u64 - 1) as usize) % self.nodes.len();
                self.cut("pair apart", Cut::Pair(who, other));
            }
            14 => {
                let ms = 20 + self.below(2000);
                self.cut("slow", Cut::Slow(who, ms));
            }
            15 => {
                let ppm = 10_000 + self.below(200_000);
                self.cut("loss", Cut::Loss(ppm));
            }
            16 => self.reset(who),
            17 => {
                let ms = self.below(120_000) as i64 - 60_000;
                self.broken.count("clock jump");
                self.world.set_skew(self.nodes[who].machine(), ms);
            }
            18 => self.replace(who, Back::AsNewMachine),
            19 => self.order("step-down", who, Order::StepDown),
            20 => self.order("reconfiguration", who, Order::Prefer(who)),
            21 => self.cut("connections refused", Cut::Refusing(who, Refusal::Refused)),
            22 => self.cut("connections closed", Cut::Refusing(who, Refusal::Closed)),
            23 | 24 => self.pause(who),
            25 | 26 => self.slow_disk(who),
            27 => self.spoil_disk(who),
            28 => self.replace(who, Back::AsItWas),
            29 | 30 => self.order("vote turned", who, Order::TurnVote(who)),
            31 => self.force(who),
            32 => {
                let stage = if self.below(2) == 0 { Stage::Fetching } else { Stage::Applying };
                let ms = self.below(self.options.longest_ms);
                self.stall(who, stage, ms);
            }
            33 => self.order("asked to lead", who, Order::Lead(who)),
            34 | 35 => self.scene(0),
            36 | 37 => self.scene(1),
            _ => self.scene(2),
        }
    }

    /// Nothing of its process runs for a while, as after `SIGSTOP`.
    fn pause(&mut self, who: usize) {
        if self.is_down(who) {
            return;
        }
        self.broken.count("pause");
        let process = self.nodes[who].process();
        self.world.sim.pause(process);
        let ms = self.below(self.options.longest_ms);
        self.heal_after(ms, Heal::GoOn(process));
    }
    fn slow_disk(&mut self, who: usize) {
        self.broken.count("slow disk");
        let worst = [20, 200, 2000][self.below(3) as usize];
        self.world.pace(self.nodes[who].machine()).set_slow_ms(worst);
        let ms = self.below(2 * self.options.longest_ms);
        self.heal_after(ms, Heal::Pace(who));
    }
    /// The disk is full, or fails: the process has to end, and starts again once the disk is mended.
    fn spoil_disk(&mut self, who: usize) {
        if self.is_down(who) || self.broken.sick.contains_key(&who) {
            return;
        }
        let disk = self.nodes[who].disk.clone();
        match self.below(4) {
            0 => {
                self.broken.count("disk full");
                disk.set_capacity(Some(disk.used_bytes() + self.below(60_000)));
            }
            1 => {
                self.broken.count("writes fail");
                disk.fail_write_in(self.below(20));
            }
            2 => {
                self.broken.count("syncs fail");
                disk.fail_sync_in(self.below(20));
            }
            _ => {
                self.broken.count("a sync fails and loses");
                disk.lose_sync_in(self.below(20));
            }
        }
        self.broken.sick.insert(who, Sick { boots: self.nodes[who].boots(), since: None });
        let ms = self.below(self.options.longest_ms);
        self.heal_after(ms, Heal::Disk(who));
    }
    /// Whether this member's process may end by itself.
    pub(super) fn is_sick(&self, who: usize) -> bool {
        self.broken.sick.contains_key(&who)
    }
    /// Mends a disk once its process has ended, if it noticed anything; what is wrong when it goes on.
    fn mend_disk(&mut self, who: usize) -> Option<String> {
        let (node, now) = (&self.nodes[who], self.world.sim.now());
        let sick = self.broken.sick.get_mut(&who)?;
        let noticed = node.disk.errors() > 0;
        let runs_on = node.boots() == sick.boots && node.server().is_some() && node.exit().is_none();
        if noticed && runs_on {
            let since = *sick.since.get_or_insert(now);
            let copying = self.watch.state(who).is_some_and(|s| s == MemberState::Startup2);
            if now - since < MUST_END && !copying {
                self.heal_after(1000, Heal::Disk(who));
                return None;
            }
            if !copying {
                return Some(format!("member {who} goes on with a disk that failed"));
            }
        }
        self.broken.sick.remove(&who);
        self.nodes[who].disk.mend();
        if self.nodes[who].exit().is_some() {
            // What a failed sync has dropped is still in the machine's memory. Its loss shows what is left; without, the next
            // start finds what the disk has not got.
            if self.below(2) == 0 {
                self.nodes[who].lose_power();
            }
            if !self.is_down(who) {
                self.nodes[who].boot();
            }
        }
        None
    }

    fn force(&mut self, who: usize) {
        let idle = self.replacement.is_none() && self.orders.strong_count() == 0;
        if idle && !self.is_forcing() {
            self.forcing_until = self.world.sim.now() + FORCING;
            self.order("forced reconfiguration", who, Order::Force(who));
        }
    }
    /// A forced configuration may be on its way.
    pub(super) fn is_forcing(&self) -> bool {
        self.world.sim.now() < self.forcing_until
    }

    pub(super) fn order(&mut self, what: &'static str, who: usize, order: Order) {
        if self.is_forcing() && !matches!(order, Order::Force(_) | Order::StepDown | Order::Lead(_)) {
            return;
        }
        self.broken.count(what);
        let env = self.env(self.operator);
        let addrs = self.addrs();
        let open = self.orders.upgrade().unwrap_or_default();
        self.orders = Arc::downgrade(&open);
        self.world.sim.spawn(self.operator, "operator", async move {
            super::orders::give(env, addrs, who, order).await;
            drop(open);
        });
    }

    /// Every connection of a member breaks.
    fn reset(&mut self, who: usize) {
        self.broken.count("reset");
        let machine = self.nodes[who].machine();
        self.world.net.reset_connections(|a, _| a == machine);
    }

    pub(super) fn stop(&mut self, who: usize, power: bool) {
        self.broken.count(if power { "power loss" } else { "kill" });
        let absent = match self.below(3) {
            0 => 0,
            1 => self.below(3000),
            _ => self.below(self.options.longest_ms),
        };
        self.take_down(who, power, absent);
    }

    fn take_down(&mut self, who: usize, power: bool, absent_ms: u64) {
        if self.is_down(who) || self.is_sick(who) {
            return;
        }
        if power {
            self.nodes[who].lose_power();
        } else {
            self.nodes[who].kill();
        }
        self.heal_after(absent_ms, Heal::Boot(who));
    }
    fn is_down(&self, who: usize) -> bool {
        self.broken.due.iter().any(|(_, h)| matches!(h, Heal::Boot(i) if *i == who))
    }

    /// Heals what is due.
    pub(super) fn heal_due(&mut self) -> Vec<String> {
        let now = self.world.sim.now();
        let (due, later) = std::mem::take(&mut self.broken.due).into_iter().partition(|(at, _)| *at <= now);
        self.broken.due = later;
        self.heal(due)
    }
    /// Heals everything but a disk whose process has yet to end.
    pub(super) fn heal_all(&mut self) -> Vec<String> {
        let due = std::mem::take(&mut self.broken.due);
        self.heal(due)
    }
    /// Whether anything is broken.
    pub(super) fn is_whole(&self) -> bool {
        self.broken.due.is_empty()
    }
    fn heal(&mut self, due: Vec<(Duration, Heal)>) -> Vec<String> {
        let mut problems = Vec::new();
        for (_, heal) in due {
            match heal {
                Heal::Boot(who) => self.nodes[who].boot(),
                Heal::GoOn(process) => self.world.sim.unpause(process),
                Heal::Pace(who) => self.world.pace(self.nodes[who].machine()).set_slow_ms(0),
                Heal::Stall(who, process, stage) => self.end_stall(who, process, stage),
                Heal::Disk(who) => problems.extend(self.mend_disk(who)),
                Heal::Cut(id) => {
                    self.broken.cuts.remove(&id);
                    self.relink();
                    // Some connections have given up meanwhile, others go on where they stood.
                    if self.below(2) == 0 {
                        let members = self.machines();
                        let who = members[self.below(members.len() as u64) as usize];
                        self.world.net.reset_connections(|a, b| a == who && members.contains(&b));
                    }
                }
            }
        }
        problems
    }
}
