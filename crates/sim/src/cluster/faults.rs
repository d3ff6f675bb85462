//! What breaks in a cluster. Everybody has a number: the members of all sets in their order, then the routers.

use super::Run;
use crate::ProcessId;
use crate::cuts::Cut;
use crate::links::{Machine, Refusal};
use crate::set::broken::{Heal, Stage};
use crate::set::orders::{self, Order};
use pando_bson::doc;
use std::time::Duration;

/// Who is meant by a number.
enum Who {
    Member(usize, usize),
    Router(usize),
}

impl Run {
    fn below(&self, n: u64) -> u64 {
        self.world.sim.below(n)
    }
    fn who(&self, mut number: usize) -> Who {
        for (set, s) in self.sets.iter().enumerate() {
            if number < s.nodes.len() {
                return Who::Member(set, number);
            }
            number -= s.nodes.len();
        }
        Who::Router(number)
    }
    fn number(&self, set: usize, member: usize) -> usize {
        self.sets[..set].iter().map(|s| s.nodes.len()).sum::<usize>() + member
    }
    /// Everybody's, by number.
    pub(super) fn machines(&self) -> Vec<Machine> {
        let members = self.sets.iter().flat_map(|s| &s.nodes).map(crate::Node::machine);
        members.chain(self.routers.iter().map(crate::RouterNode::machine)).collect()
    }
    fn process(&self, who: usize) -> ProcessId {
        match self.who(who) {
            Who::Member(set, i) => self.sets[set].nodes[i].process(),
            Who::Router(i) => self.routers[i].process(),
        }
    }
    fn boot(&mut self, who: usize) {
        match self.who(who) {
            Who::Member(set, i) => self.sets[set].nodes[i].boot(),
            Who::Router(i) => self.routers[i].boot(),
        }
    }
    fn relink(&mut self) {
        let (members, clients) = (self.machines(), self.clients.clone());
        let mut links = self.world.net.links();
        links.heal();
        for cut in self.broken.cuts.values() {
            cut.apply(&members, &clients, &mut links);
        }
    }
    fn heal_after(&mut self, ms: u64, heal: Heal) {
        self.broken.due.push((self.world.sim.now() + Duration::from_millis(ms), heal));
    }
    fn cut(&mut self, what: &'static str, cut: Cut) {
        let ms = match self.below(3) {
            0 => self.below(2000),
            _ => self.below(self.options.longest_ms),
        };
        self.cut_for(what, cut, ms);
    }
    fn cut_for(&mut self, what: &'static str, cut: Cut, ms: u64) {
        let id = self.broken.next_id;
        self.broken.next_id += 1;
        self.broken.cuts.insert(id, cut);
        self.broken.count(what);
        self.relink();
        self.heal_after(ms, Heal::Cut(id));
    }
    fn anybody(&self) -> usize {
        self.below(self.machines().len() as u64) as usize
    }
    /// Half of the time the primary of some set, now and then a router.
    fn somebody(&self) -> usize {
        let set = self.below(self.sets.len() as u64) as usize;
        let leader = self.sets[set].watch.newest_leader().map(|i| self.number(set, i));
        match (self.below(8), leader) {
            (0, _) => self.machines().len() - 1 - self.below(self.routers.len() as u64) as usize,
            (1..=4, Some(leader)) => leader,
            _ => self.anybody(),
        }
    }
    fn other_than(&self, who: usize) -> usize {
        let all = self.machines().len() as u64;
        (who + 1 + self.below(all - 1) as usize) % all as usize
    }

    /// Something breaks.
    pub(super) fn fault(&mut self) {
        let who = self.somebody();
        match self.below(32) {
            0..=3 => self.stop(who, false),
            4..=6 => self.stop(who, true),
            7 if self.below(3) == 0 => self.all_of_a_set_lose_power(),
            7 | 8 => self.cut("cut off from the others", Cut::Member(who)),
            9 | 10 => self.cut("cut off", Cut::Machine(who)),
            11 => self.cut("mute", Cut::Mute(who)),
            12 => self.cut("deaf", Cut::Deaf(who)),
            13..=15 => self.cut("pair apart", Cut::Pair(who, self.other_than(who))),
            16 | 17 => self.cut("one way", Cut::OneWay(who, self.other_than(who))),
            18 => self.cut("slow", Cut::Slow(who, 20 + self.below(2000))),
            19 => self.cut("loss", Cut::Loss(10_000 + self.below(200_000))),
            20 => self.reset(who),
            21 => self.clock_jump(who),
            22 | 23 => self.step_down(who),
            24 => self.cut("connections refused", Cut::Refusing(who, Refusal::Refused)),
            25 => self.cut("connections closed", Cut::Refusing(who, Refusal::Closed)),
            26 | 27 => self.pause(who),
            28 => self.slow_disk(who),
            29 => self.stall(who),
            _ => self.part_router_from_config(),
        }
    }

    /// Somebody who may take part in a definition that is under way is lost.
    pub(super) fn fault_amid_definition(&mut self) {
        self.broken.count("amid a definition");
        let set = self.below(self.sets.len() as u64) as usize;
        let Some(leader) = self.sets[set].watch.newest_leader().map(|i| self.number(set, i)) else { return };
        let router = self.machines().len() - 1 - self.below(self.routers.len() as u64) as usize;
        match self.below(12) {
            8.. => self.hold_commit_back(),
            0 | 1 => self.stop(leader, false),
            2 => self.stop(leader, true),
            3 => self.step_down(leader),
            4 => self.stop(router, false),
            5 => self.cut("cut off from the others", Cut::Member(leader)),
            6 => self.cut("pair apart", Cut::Pair(leader, self.other_than(leader))),
            _ => self.pause(leader),
        }
    }

    /// What the primary of a shard tells the config servers arrives late, when somebody else leads the shard.
    fn hold_commit_back(&mut self) {
        let set = 1 + self.below(self.sets.len() as u64 - 1) as usize;
        let leader = |set: usize| self.sets[set].watch.newest_leader().map(|i| self.number(set, i));
        let (Some(config), Some(shard)) = (leader(0), leader(set)) else { return };
        let ms = 1000 + self.below(self.options.longest_ms);
        self.cut_for("held back", Cut::Pair(shard, config), ms);
        let at = self.world.sim.now() + Duration::from_millis(self.below(400));
        self.lost.push((at, shard));
    }
    /// Who was to be lost by now is.
    pub(super) fn lose_due(&mut self) {
        let now = self.world.sim.now();
        let (due, later) = std::mem::take(&mut self.lost).into_iter().partition(|(at, _)| *at <= now);
        self.lost = later;
        let due: Vec<(Duration, usize)> = due;
        for (_, who) in due {
            match self.below(3) {
                0 => self.stop(who, self.below(2) == 0),
                1 => self.step_down(who),
                _ => {
                    let ms = self.below(self.options.longest_ms);
                    self.cut_for("cut off from the others", Cut::Member(who), ms);
                }
            }
        }
    }

    /// Every connection of a machine breaks.
    fn reset(&mut self, who: usize) {
        self.broken.count("reset");
        let machine = self.machines()[who];
        self.world.net.reset_connections(|a, _| a == machine);
    }
    fn clock_jump(&mut self, who: usize) {
        let ms = self.below(120_000) as i64 - 60_000;
        self.broken.count("clock jump");
        self.world.set_skew(self.machines()[who], ms);
    }
    /// Nothing of its process runs for a while, as after `SIGSTOP`.
    fn pause(&mut self, who: usize) {
        if self.is_down(who) {
            return;
        }
        self.broken.count("pause");
        let process = self.process(who);
        self.world.sim.pause(process);
        let ms = self.below(self.options.longest_ms);
        self.heal_after(ms, Heal::GoOn(process));
    }
    fn slow_disk(&mut self, who: usize) {
        self.broken.count("slow disk");
        let worst = [20, 200, 2000][self.below(3) as usize];
        self.world.pace(self.machines()[who]).set_slow_ms(worst);
        let ms = self.below(2 * self.options.longest_ms);
        self.heal_after(ms, Heal::Pace(who));
    }
    /// A follower fetches or applies nothing.
    fn stall(&mut self, who: usize) {
        let stage = if self.below(2) == 0 { Stage::Fetching } else { Stage::Applying };
        if self.set_stalled(who, stage, true) {
            self.broken.count("a follower lags");
            let ms = self.below(self.options.longest_ms);
            self.heal_after(ms, Heal::Stall(who, self.process(who), stage));
        }
    }
    fn set_stalled(&self, who: usize, stage: Stage, on: bool) -> bool {
        let Who::Member(set, i) = self.who(who) else { return false };
        let mode = doc! { "mode": if on { "alwaysOn" } else { "off" } }.to_raw();
        let server = self.sets[set].nodes[i].server();
        server.is_some_and(|s| s.instance.fail_points.configure(stage.held_by(), &mode).is_ok())
    }
    fn step_down(&mut self, who: usize) {
        let Who::Member(set, i) = self.who(who) else { return };
        self.broken.count("step-down");
        let (env, addrs) = (self.env(self.operator), self.sets[set].addrs());
        self.world.sim.spawn(self.operator, "operator", orders::give(env, addrs, i, Order::StepDown));
    }
    /// A router's view stays as old as it is, as long as it does not notice.
    fn part_router_from_config(&mut self) {
        let routers = self.routers.len() as u64;
        let router = self.machines().len() - 1 - self.below(routers) as usize;
        self.broken.count("router without config servers");
        let ms = self.below(2 * self.options.longest_ms);
        for i in 0..self.sets[0].nodes.len() {
            self.cut_for("pair apart", Cut::Pair(router, i), ms);
        }
    }
    fn all_of_a_set_lose_power(&mut self) {
        self.broken.count("power loss of a set");
        let set = self.below(self.sets.len() as u64) as usize;
        let absent = self.below(5000);
        for i in 0..self.sets[set].nodes.len() {
            self.take_down(self.number(set, i), true, absent);
        }
    }
    fn stop(&mut self, who: usize, power: bool) {
        self.broken.count(match (self.who(who), power) {
            (Who::Router(_), _) => "router killed",
            (_, true) => "power loss",
            (_, false) => "kill",
        });
        let absent = match self.below(3) {
            0 => 0,
            1 => self.below(3000),
            _ => self.below(self.options.longest_ms),
        };
        self.take_down(who, power, absent);
    }
    fn take_down(&mut self, who: usize, power: bool, absent_ms: u64) {
        if self.is_down(who) {
            return;
        }
        match (self.who(who), power) {
            (Who::Member(set, i), true) => self.sets[set].nodes[i].lose_power(),
            (Who::Member(set, i), false) => self.sets[set].nodes[i].kill(),
            (Who::Router(i), true) => self.routers[i].lose_power(),
            (Who::Router(i), false) => self.routers[i].kill(),
        }
        self.heal_after(absent_ms, Heal::Boot(who));
    }
    fn is_down(&self, who: usize) -> bool {
        self.broken.due.iter().any(|(_, h)| matches!(h, Heal::Boot(i) if *i == who))
    }

    /// Heals what is due.
    pub(super) fn heal_due(&mut self) {
        let now = self.world.sim.now();
        let (due, later) = std::mem::take(&mut self.broken.due).into_iter().partition(|(at, _)| *at <= now);
        self.broken.due = later;
        self.heal(due);
    }
    /// Heals everything.
    pub(super) fn heal_all(&mut self) {
        let due = std::mem::take(&mut self.broken.due);
        self.heal(due);
    }
    fn heal(&mut self, due: Vec<(Duration, Heal)>) {
        for (_, heal) in due {
            match heal {
                Heal::Boot(who) => self.boot(who),
                Heal::GoOn(process) => self.world.sim.unpause(process),
                Heal::Pace(who) => self.world.pace(self.machines()[who]).set_slow_ms(0),
                Heal::Stall(who, process, stage) if self.process(who) == process => {
                    self.set_stalled(who, stage, false);
                }
                Heal::Stall(..) | Heal::Disk(_) => {}
                Heal::Cut(id) => {
                    self.broken.cuts.remove(&id);
                    self.relink();
                    // Some connections have given up meanwhile, others go on where they stood.
                    if self.below(2) == 0 {
                        let all = self.machines();
                        let who = all[self.anybody()];
                        self.world.net.reset_connections(|a, b| a == who && all.contains(&b));
                    }
                }
            }
        }
    }
}
