//! What breaks around two sets, by the numbers of their machines; and what breaks at some step of a split or a migration.

use super::copying::Copying;
use super::field::Field;
use super::{EACH, Home, MEMBERS};
use crate::cuts::Cut;
use crate::links::{Machine, Refusal};
use crate::set::broken::{Heal, Stage};
use crate::set::orders::{self, Order};
use pando_bson::{Document, doc};
use std::time::Duration;

/// Where a workflow stands still before one of its steps.
const STEP: &str = "hangBeforeWorkflowAction";
/// Nobody comes to that step any more.
const STEP_WITHIN: Duration = Duration::from_secs(20);
/// Steps of a split or of one side of a migration, and a few more: looks again, tries again.
const STEPS: u64 = 18;

/// When something breaks amid what is under way.
#[derive(Clone, Debug)]
pub(super) enum Hit {
    At(Duration),
    /// Before a step of whoever leads it, by how often each member had stood still before; given up at that time.
    BeforeStep(u64, Vec<(usize, u32, i64)>, Duration),
    /// When the copy of a merge is so far; given up at that time.
    Copying(Copying, Duration),
    /// Amid the copy of a merge.
    CopyingAt(Duration),
}

impl Field {
    pub(super) fn below(&self, n: u64) -> u64 {
        self.world.sim.below(n)
    }
    pub(super) fn machines(&self) -> Vec<Machine> {
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
    fn heal_after(&mut self, ms: u64, heal: Heal) {
        self.broken.due.push((self.world.sim.now() + Duration::from_millis(ms), heal));
    }
    fn lasts(&self) -> u64 {
        match self.below(3) {
            0 => self.below(2000),
            _ => self.below(self.options.longest_ms),
        }
    }
    pub(super) fn cut(&mut self, what: &'static str, cut: Cut) {
        let ms = self.lasts();
        let id = self.broken.next_id;
        self.broken.next_id += 1;
        self.broken.cuts.insert(id, cut);
        self.broken.count(what);
        self.relink();
        self.heal_after(ms, Heal::Cut(id));
    }
    fn anybody(&self) -> usize {
        self.below(MEMBERS as u64) as usize
    }
    /// Of the set that tenants go to.
    fn somebody_who_takes(&self) -> usize {
        let to = self.from.other();
        let leader = self.sides[to as usize].leader().filter(|_| self.takers_lead && self.below(3) != 0);
        leader.unwrap_or_else(|| to.machines().start + self.below(EACH as u64) as usize)
    }
    /// Some primary more often than others.
    fn somebody(&self) -> usize {
        let leader = match self.below(4) {
            0 | 1 => self.sides[0].leader(),
            2 => self.sides[1].leader(),
            _ => None,
        };
        leader.unwrap_or_else(|| self.anybody())
    }
    fn other_than(&self, who: usize) -> usize {
        (who + 1 + self.below(MEMBERS as u64 - 1) as usize) % MEMBERS
    }

    /// Something breaks.
    pub(super) fn fault(&mut self) {
        let who = self.somebody();
        match self.below(32) {
            0..=3 => self.stop(who, false),
            4..=6 => self.stop(who, true),
            7 => self.many_lose_power(),
            8 | 9 => self.cut("cut off from members", Cut::Member(who)),
            10 | 11 => self.cut("cut off", Cut::Machine(who)),
            12 => self.cut("mute", Cut::Mute(who)),
            13 => self.cut("deaf", Cut::Deaf(who)),
            14 | 15 => self.cut("pair apart", Cut::Pair(who, self.other_than(who))),
            16 | 17 => self.cut("one way", Cut::OneWay(who, self.other_than(who))),
            18 => self.cut("slow", Cut::Slow(who, 20 + self.below(2000))),
            19 => self.cut("loss", Cut::Loss(10_000 + self.below(200_000))),
            20 => self.reset(who),
            21 => self.clock_jump(who),
            22..=24 => self.step_down(),
            25 => self.cut("connections refused", Cut::Refusing(who, Refusal::Refused)),
            26 => self.cut("connections closed", Cut::Refusing(who, Refusal::Closed)),
            27 | 28 => self.pause(who),
            29 | 30 => self.slow_disk(who),
            _ => self.stall(who),
        }
    }
    /// Somebody who is to take tenants stands still: they are blocked until it goes on.
    pub(super) fn hold_up(&mut self) {
        let who = self.somebody_who_takes();
        match self.below(3) {
            0 => self.stop(who, false),
            1 => self.pause(who),
            _ => self.stall(who),
        }
    }
    /// Somebody who takes part in what is under way is lost.
    fn fault_amid(&mut self) {
        self.broken.count(self.amid);
        let first = self.from.machines().start;
        let leader = self.sides[self.from as usize].leader().unwrap_or(first);
        let takes = self.somebody_who_takes();
        match self.below(20) {
            0..=2 => self.stop(leader, false),
            3 | 4 => self.stop(leader, true),
            5 | 6 => self.step_down(),
            7 | 8 => self.cut("cut off from members", Cut::Member(leader)),
            9 => self.cut("cut off", Cut::Machine(leader)),
            10 => self.pause(leader),
            11 | 12 => self.stop(takes, false),
            13 => self.stop(takes, true),
            14 => self.cut("cut off from members", Cut::Member(takes)),
            15 => self.pause(takes),
            16 => self.cut("pair apart", Cut::Pair(leader, takes)),
            17 => self.stall(takes),
            18 => self.many_lose_power(),
            _ => self.cut("one way", Cut::OneWay(leader, takes)),
        }
    }

    /// Something will break amid what begins now.
    pub(super) fn plan_hit(&mut self) {
        let now = self.world.sim.now();
        if self.below(2) == 0 {
            // Most are quick.
            let longest = [30, 300, 3000][self.below(3) as usize];
            self.hit = Some(Hit::At(now + Duration::from_micros(self.below(longest * 1000))));
            return;
        }
        let step = self.below(STEPS);
        let mut before = Vec::new();
        for i in self.stepping.clone() {
            self.set_step(i, Some(step));
            before.push((i, self.nodes[i].boots(), self.entered(i)));
        }
        self.hit = Some(Hit::BeforeStep(step, before, now + STEP_WITHIN));
    }
    fn entered(&self, who: usize) -> i64 {
        let server = self.nodes[who].server();
        server.and_then(|s| Some(s.instance.fail_points.get(STEP)?.times_entered())).unwrap_or(0)
    }
    /// Workflows stand still before that step on a member, or nowhere.
    fn set_step(&self, who: usize, step: Option<u64>) {
        let mut body = Document::new();
        match step {
            Some(n) => body.push("mode", doc! { "skip": n as i32 }),
            None => body.push("mode", "off"),
        }
        if let Some(server) = self.nodes[who].server() {
            let _ = server.instance.fail_points.configure(STEP, &body.to_raw());
        }
    }
    /// Whether something is to break amid what is under way: looked at often.
    pub(super) fn has_hit(&self) -> bool {
        self.hit.is_some()
    }
    /// Breaks what was to break at this moment.
    pub(super) fn hit_if_due(&mut self) {
        let now = self.world.sim.now();
        match &self.hit {
            Some(Hit::At(at)) if *at <= now => {
                self.hit = None;
                self.fault_amid();
            }
            Some(Hit::BeforeStep(step, before, until)) => {
                let stands = |known: &(usize, u32, i64)| {
                    let (who, boots, entered) = *known;
                    self.nodes[who].boots() == boots && self.entered(who) > entered
                };
                let (step, over) = (*step, *until <= now);
                if before.iter().any(stands) {
                    *self.steps.entry(step).or_default() += 1;
                    self.fault_amid();
                } else if !over {
                    return;
                }
                self.end_hit();
            }
            Some(Hit::Copying(how_far, until)) => {
                let (how_far, over) = (*how_far, *until <= now);
                if self.is_copying(how_far) {
                    self.hit_copying(how_far);
                } else if over {
                    self.end_hit();
                }
            }
            Some(Hit::CopyingAt(at)) if *at <= now => {
                self.end_hit();
                self.fault_amid_copying("amid a taking-in");
            }
            _ => {}
        }
    }
    pub(super) fn end_hit(&mut self) {
        self.hit = None;
        self.stepping.clone().for_each(|i| self.set_step(i, None));
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
    pub(super) fn pause(&mut self, who: usize) {
        if self.is_down(who) {
            return;
        }
        self.broken.count("pause");
        let process = self.nodes[who].process();
        self.world.sim.pause(process);
        let ms = self.lasts();
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
    pub(super) fn stall(&mut self, who: usize) {
        let stage = if self.below(2) == 0 { Stage::Fetching } else { Stage::Applying };
        if self.set_stalled(who, stage, true) {
            self.broken.count("a follower lags");
            let ms = self.lasts();
            self.heal_after(ms, Heal::Stall(who, self.nodes[who].process(), stage));
        }
    }
    fn set_stalled(&self, who: usize, stage: Stage, on: bool) -> bool {
        let mode = doc! { "mode": if on { "alwaysOn" } else { "off" } }.to_raw();
        let server = self.nodes[who].server();
        server.is_some_and(|s| s.instance.fail_points.configure(stage.held_by(), &mode).is_ok())
    }
    /// The primary of one of the sets.
    pub(super) fn step_down(&mut self) {
        self.broken.count("step-down");
        let to = self.from.other();
        let of_taker = self.sides[to as usize].leader().is_some() && self.below(3) == 0;
        let addrs = self.addrs()[if of_taker { to } else { self.from }.machines()].to_vec();
        let env = self.env(self.operator);
        self.world.sim.spawn(self.operator, "operator", orders::give(env, addrs, 0, Order::StepDown));
    }
    /// All at once, or those of one side.
    fn many_lose_power(&mut self) {
        let (what, who) = match self.below(3) {
            0 => ("power loss of all", 0..MEMBERS),
            1 => ("power loss of the first side", Home::First.machines()),
            _ => ("power loss of the second side", Home::Second.machines()),
        };
        self.broken.count(what);
        let absent = self.below(5000);
        for i in who {
            self.take_down(i, true, absent);
        }
    }
    pub(super) fn stop(&mut self, who: usize, power: bool) {
        self.broken.count(if power { "power loss" } else { "kill" });
        let absent = match self.below(3) {
            0 => 0,
            _ => self.lasts(),
        };
        self.take_down(who, power, absent);
    }
    pub(super) fn take_down(&mut self, who: usize, power: bool, absent_ms: u64) {
        if self.is_down(who) {
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
                Heal::Boot(who) => self.nodes[who].boot(),
                Heal::GoOn(process) => self.world.sim.unpause(process),
                Heal::Pace(who) => self.world.pace(self.machines()[who]).set_slow_ms(0),
                Heal::Stall(who, process, stage) if self.nodes[who].process() == process => {
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
