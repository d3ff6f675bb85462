//! Faults that belong together. Single ones meet in every order by chance; some orders are needed for a rule to matter at all,
//! and chance alone would take days to find them.
//!
//! | scene | what happens |
//! |---|---|
//! | primary lost while others lag | some followers apply nothing or fetch nothing; then the primary is lost and somebody is asked to stand |
//! | votes turned in a row | the same, and whoever leads next has votes turned as fast as it takes it; then it is lost, too |
//! | parted primary | a primary without its members goes on with its clients until another one leads |
//! | after a rollback | the primary is lost, or who rolled back is made to lead, or both, or it is killed |

use super::Run;
use super::broken::{Act, Stage};
use super::orders::Order;
use crate::ProcessId;
use crate::cuts::Cut;
use pando_bson::doc;
use std::time::Duration;

/// Without hearing a primary so long, others elect one.
const ELECTION_MS: u64 = 10_000;

impl Run {
    pub(super) fn scene(&mut self, number: u64) {
        match number {
            0 => self.lose_primary_while_others_lag(),
            1 => self.turn_votes_in_a_row(),
            _ => self.part_primary(),
        }
    }

    /// A follower's data path stands still for a while, as on a machine that does something else.
    pub(super) fn stall(&mut self, who: usize, stage: Stage, ms: u64) {
        if self.set_stalled(who, stage, true) {
            self.broken.count(match stage {
                Stage::Fetching => "fetches nothing",
                Stage::Applying => "applies nothing",
            });
            let process = self.nodes[who].process();
            self.go_on_after(ms, who, process, stage);
        }
    }
    /// What was held goes on, unless the process has ended meanwhile.
    pub(super) fn end_stall(&mut self, who: usize, process: ProcessId, stage: Stage) {
        if self.nodes[who].process() == process {
            self.set_stalled(who, stage, false);
        }
    }
    fn set_stalled(&self, who: usize, stage: Stage, on: bool) -> bool {
        let mode = doc! { "mode": if on { "alwaysOn" } else { "off" } }.to_raw();
        let server = self.nodes[who].server();
        server.is_some_and(|s| s.instance.fail_points.configure(stage.held_by(), &mode).is_ok())
    }

    fn lose_primary_while_others_lag(&mut self) {
        let Some(leader) = self.watch.newest_leader() else { return };
        self.broken.count("primary lost while others lag");
        self.let_lag(leader);
        let heir = self.other_than(leader);
        if self.below(2) == 0 {
            // Who has least is asked first: those that have more must not let it win, applied or not.
            let ms = 1000 + self.below(self.options.longest_ms);
            self.stall(heir, Stage::Fetching, ms);
        }
        let lost = 200 + self.below(3000);
        self.later(lost, Act::LosePrimary);
        let asked = lost + self.below(500);
        self.later(asked, Act::Lead(heir));
    }
    fn turn_votes_in_a_row(&mut self) {
        let Some(leader) = self.watch.newest_leader() else { return };
        self.broken.count("votes turned in a row");
        self.let_lag(leader);
        let lost = 200 + self.below(2000);
        self.later(lost, Act::LosePrimary);
        let heir = self.other_than(leader);
        self.later(lost + 20, Act::Lead(heir));
        self.later(lost + 50, Act::TurnVotes);
        let again = lost + 500 + self.below(8000);
        self.later(again, Act::LosePrimary);
        let heir = self.other_than(leader);
        self.later(again + 20, Act::Lead(heir));
    }
    fn part_primary(&mut self) {
        let Some(leader) = self.watch.newest_leader() else { return };
        let ms = ELECTION_MS + self.below(self.options.longest_ms);
        self.cut_for("parted primary", Cut::Member(leader), ms);
    }
    pub(super) fn after_rollback(&mut self, who: usize) {
        let soon = self.below(1000);
        match self.below(5) {
            0 => self.later(0, Act::LosePrimary),
            1 => {
                self.later(soon, Act::LosePrimary);
                self.later(soon + 20, Act::Lead(who));
            }
            2 | 3 => self.later(5 * soon, Act::Lead(who)),
            _ => self.stop(who, false),
        }
    }

    /// Followers that apply nothing or fetch nothing from now on, for a while.
    fn let_lag(&mut self, leader: usize) {
        for who in (0..self.nodes.len()).filter(|who| *who != leader) {
            let ms = 1000 + self.below(self.options.longest_ms);
            match self.below(3) {
                0 => self.stall(who, Stage::Applying, ms),
                1 => self.stall(who, Stage::Fetching, ms),
                _ => {}
            }
        }
    }
    fn other_than(&self, who: usize) -> usize {
        let others = self.nodes.len() as u64 - 1;
        (who + 1 + self.below(others) as usize) % self.nodes.len()
    }

    fn later(&mut self, ms: u64, act: Act) {
        let at = self.world.sim.now() + Duration::from_millis(ms);
        self.broken.acts.push((at, act));
    }
    /// What scenes have left for now.
    pub(super) fn go_on_with_scenes(&mut self) {
        for who in std::mem::take(&mut self.rolled_back) {
            self.after_rollback(who);
        }
        let now = self.world.sim.now();
        let (due, later) = std::mem::take(&mut self.broken.acts).into_iter().partition(|(at, _)| *at <= now);
        self.broken.acts = later;
        let due: Vec<(Duration, Act)> = due;
        for (_, act) in due {
            self.act(act);
        }
    }
    fn act(&mut self, act: Act) {
        match act {
            Act::LosePrimary => {
                let Some(leader) = self.watch.newest_leader() else { return };
                match self.below(4) {
                    0 => self.stop(leader, true),
                    1 => self.cut("cut off", Cut::Machine(leader)),
                    2 => self.cut("cut off from members", Cut::Member(leader)),
                    _ => self.stop(leader, false),
                }
            }
            Act::Lead(who) => self.order("asked to lead", who, Order::Lead(who)),
            Act::TurnVotes => self.order("votes turned in a row", 0, Order::TurnVotes),
        }
    }
}
