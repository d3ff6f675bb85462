use super::*;
use pando_base::{Error, Timestamp};

struct Scribe {
    name: &'static str,
    lines: Arc<Mutex<Vec<String>>>,
    refuses: bool,
}

impl Scribe {
    fn note(&self, what: String) {
        self.lines.lock().unwrap().push(format!("{}:{what}", self.name));
    }
}

impl ReplicaSetAware for Scribe {
    fn name(&self) -> &'static str {
        self.name
    }
    fn on_startup_recovery_complete(&self) {
        self.note("on_startup_recovery_complete".into());
    }
    fn on_initial_data_available(&self) {
        self.note("on_initial_data_available".into());
    }
    fn on_become_arbiter(&self) {
        self.note("on_become_arbiter".into());
    }
    fn on_step_up_begin(&self, term: Term) -> Result<()> {
        self.note(format!("on_step_up_begin {term}"));
        if self.refuses { Err(Error::internal("not now")) } else { Ok(()) }
    }
    fn on_step_up_complete(&self, term: Term) {
        self.note(format!("on_step_up_complete {term}"));
    }
    fn on_commit_point(&self, at: OpTime) {
        self.note(format!("on_commit_point {}", at.ts.secs()));
    }
    fn on_recipient_config_installed(&self) {
        self.note("on_recipient_config_installed".into());
    }
    fn on_step_down(&self) {
        self.note("on_step_down".into());
    }
    fn on_rollback_begin(&self) {
        self.note("on_rollback_begin".into());
    }
    fn on_rollback_end(&self, taken_back: bool) {
        self.note(format!("on_rollback_end {taken_back}"));
    }
    fn on_shutdown(&self) {
        self.note("on_shutdown".into());
    }
}

struct World {
    hooks: Hooks,
    lines: Arc<Mutex<Vec<String>>>,
}

impl World {
    /// Services `a` and `b`.
    fn new(a_refuses: bool) -> World {
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let scribe = |name, refuses| Arc::new(Scribe { name, lines: lines.clone(), refuses }) as _;
        World { hooks: Hooks::new(vec![scribe("a", a_refuses), scribe("b", false)]), lines }
    }
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().unwrap())
    }
}

fn at(secs: u32) -> OpTime {
    OpTime::new(Timestamp::new(secs, 1), 1)
}

#[test]
fn each_change_is_told_once() {
    let w = World::new(false);
    let h = &w.hooks;
    h.startup_recovery_complete();
    h.initial_data_available();
    h.initial_data_available();
    h.step_down();
    h.step_up_begin(3).unwrap();
    h.step_up_complete(3);
    // A failed conditional step-down makes the same primary writable again.
    h.step_up_complete(3);
    h.commit_point(at(1));
    h.commit_point(at(1));
    h.commit_point(at(2));
    h.commit_point(at(1));
    // Another set, another commit point.
    h.recipient_config_installed();
    h.commit_point(at(1));
    h.step_down();
    h.step_down();
    // Elected, and gone before it wrote.
    h.step_up_begin(5).unwrap();
    h.step_down();
    h.step_up_complete(5);
    // Each one is told.
    for taken_back in [true, false] {
        h.rollback_begin();
        h.rollback_end(taken_back);
        h.rollback_end(false);
    }
    h.shutdown();
    h.shutdown();
    let of_a: Vec<String> = w.take().iter().filter_map(|l| l.strip_prefix("a:").map(str::to_owned)).collect();
    let story = [
        "on_startup_recovery_complete",
        "on_initial_data_available",
        "on_step_up_begin 3",
        "on_step_up_complete 3",
        "on_commit_point 1",
        "on_commit_point 2",
        "on_recipient_config_installed",
        "on_commit_point 1",
        "on_step_down",
        "on_step_up_begin 5",
        "on_step_down",
        "on_rollback_begin",
        "on_rollback_end true",
        "on_rollback_begin",
        "on_rollback_end false",
        "on_shutdown",
    ];
    assert_eq!(of_a, story);
}

/// Hook and order, as the table above the code has them.
fn documented() -> Vec<(&'static str, &'static str)> {
    let rows = include_str!("aware.rs").lines().filter_map(|l| l.strip_prefix("//! | `"));
    let cells = rows.filter_map(|row| row.split_once("` | "));
    cells.filter_map(|(hook, rest)| Some((hook, rest.split_once(" |")?.0))).collect()
}

#[test]
fn services_are_told_in_the_order_that_is_documented() {
    let w = World::new(false);
    let mut shown = Vec::new();
    let mut see = |tell: &dyn Fn(&Hooks)| {
        tell(&w.hooks);
        let lines = w.take();
        let [first, second] = &lines[..] else { panic!("{lines:?}") };
        let order = if first.starts_with("a:") { "forward" } else { "reverse" };
        assert_eq!(first[2..], second[2..]);
        let hook = first[2..].split(' ').next().unwrap_or_default().to_owned();
        shown.push((hook, order));
    };
    see(&|h| h.startup_recovery_complete());
    see(&|h| h.initial_data_available());
    see(&|h| h.become_arbiter());
    see(&|h| h.step_up_begin(1).unwrap());
    see(&|h| h.step_up_complete(1));
    see(&|h| h.commit_point(at(1)));
    see(&|h| h.recipient_config_installed());
    see(&|h| h.step_down());
    see(&|h| h.rollback_begin());
    see(&|h| h.rollback_end(true));
    see(&|h| h.shutdown());
    let shown: Vec<(&str, &str)> = shown.iter().map(|(hook, order)| (hook.as_str(), *order)).collect();
    assert_eq!(shown, documented());
}

#[test]
fn whoever_cannot_step_up_keeps_the_others_from_it_and_is_told_of_the_end() {
    let w = World::new(true);
    assert!(w.hooks.step_up_begin(1).is_err());
    w.hooks.step_down();
    assert_eq!(w.take(), ["a:on_step_up_begin 1", "b:on_step_down", "a:on_step_down"]);
}
