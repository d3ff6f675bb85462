//! Every order of events of one tenant's migration, with what may go wrong: primaries that end at any moment, with or without what no majority
//! has; commands that are lost, late or doubled; refusals; somebody who calls it off; writes of clients on both sides, and of somebody who uses the
//! tenant's name at the recipient.
//!
//! `MODEL_STATES=20000000 cargo test --release -p pando-workflows --test tenants -- --ignored --nocapture` looks at more.

use crate::world::{BLOCKING_LIMIT_MS, Carried, DONOR, Left, RECIPIENT, World, to_of};
use pando_base::{Error, ErrorCode, Millis, limits};
use pando_workflows::kit::notice;
use pando_workflows::{Action, Id, Retry, Target, donate_tenants, receive_tenants};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

fn digest(w: &World) -> u128 {
    let text = w.essence();
    let of = |salt: u64| {
        let mut h = std::collections::hash_map::DefaultHasher::new();
        (salt, &text).hash(&mut h);
        h.finish()
    };
    u128::from(of(1)) << 64 | u128::from(of(2))
}

/// The failure that its action is answered with: one that is told at once, or one that is tried again.
fn failure(retry: Retry) -> Error {
    let code = match retry {
        Retry::Never | Retry::Transient => ErrorCode::BadValue,
        Retry::UntilRefused | Retry::Always => ErrorCode::HostUnreachable,
    };
    Error::new(code, "lost")
}

fn is_committed(doc: &pando_bson::DocBuf) -> bool {
    doc.get("state").and_then(|v| v.as_str()) == Some("committed")
}

type Next = Vec<(String, World)>;

fn label(i: usize, what: &str, action: &Action) -> String {
    let side = ["donor", "recipient"][i];
    match action {
        Action::Call { to, body } => {
            format!("{side} {what}: {to:?} {}", body.first().map_or(String::new(), |e| e.name().to_owned()))
        }
        Action::Checkpoint(doc) => {
            format!(
                "{side} {what}: checkpoint {:?}",
                doc.get("state").and_then(|v| v.as_str().map(str::to_owned))
            )
        }
        other => format!("{side} {what}: {other:?}"),
    }
}

/// The end of the donor's patience with a recipient that is to hear that it was called off.
fn is_end_of_patience(action: &Action) -> bool {
    matches!(action, Action::Rest(ms) if *ms == limits::TENANT_MIGRATION_UNTOLD_MS as Millis)
}

/// The end of the time for which tenants may be blocked.
fn is_blocking_limit(action: &Action) -> bool {
    matches!(action, Action::Rest(BLOCKING_LIMIT_MS))
}

/// What may come of one action.
fn of_action(w: &World, i: usize, id: Id, action: &Action, retry: Retry, out: &mut Next) {
    let mut after = w.clone();
    if is_end_of_patience(action) {
        if w.left.losses == 0 {
            return;
        }
        after.left.losses -= 1;
        after.untold = true;
    }
    match after.carry(i, action) {
        Carried::Answer(said) => {
            after.answer(i, id, said);
            out.push((label(i, "", action), after));
        }
        Carried::Waits => out.push((label(i, "waits", action), after)),
    }
    if w.left.crashes > 0 && !matches!(action, Action::Rest(_) | Action::AwaitNudge | Action::Draw) {
        for lost in [true, false] {
            let mut w = w.clone();
            w.left.crashes -= 1;
            let _ = w.carry(i, action);
            w.fail_over(i, lost);
            out.push((label(i, if lost { "ends behind, lost" } else { "ends behind" }, action), w));
        }
    }
    let Action::Call { to, body } = action else {
        return;
    };
    if w.left.losses > 0 && *to != Target::Own {
        let mut w = w.clone();
        w.left.losses -= 1;
        let mut heard = w.clone();
        let _ = heard.carry(i, action);
        heard.answer(i, id, Err(failure(retry)));
        out.push((label(i, "answer lost", action), heard));
        w.network.push((to_of(i, to), body.clone()));
        w.answer(i, id, Err(failure(retry)));
        out.push((label(i, "late", action), w));
    }
    if w.left.refusals > 0 && retry != Retry::Always {
        let mut w = w.clone();
        w.left.refusals -= 1;
        w.untold |= body.first().is_some_and(|e| e.name() == donate_tenants::FORGET);
        w.answer(i, id, Err(failure(Retry::Never)));
        out.push((label(i, "refused", action), w));
    }
}

fn next(w: &World) -> Next {
    let mut out = Vec::new();
    for i in [DONOR, RECIPIENT] {
        let Some(machine) = &w.sides[i].machine else { continue };
        for (id, action, retry) in machine.under_way() {
            of_action(w, i, id, &action, retry, &mut out);
        }
        if w.left.crashes > 0 {
            for lost in [true, false] {
                let mut w = w.clone();
                w.left.crashes -= 1;
                w.fail_over(i, lost);
                out.push((format!("side {i} ends, lost: {lost}"), w));
            }
        }
    }
    if w.left.aborts > 0 && w.sides[DONOR].machine.is_some() {
        let mut w = w.clone();
        w.left.aborts -= 1;
        w.abort(DONOR);
        out.push(("called off".into(), w));
    }
    if w.left.aborts > 0 && w.sides[RECIPIENT].kept.doc.as_ref().is_some_and(is_committed) {
        let mut w = w.clone();
        w.left.aborts -= 1;
        w.abort(RECIPIENT);
        out.push(("called off at the recipient, too late".into(), w));
    }
    for at in 0..w.network.len() {
        let mut w = w.clone();
        let (to, body) = w.network.remove(at);
        let _ = w.send(to, &body);
        out.push((format!("{} arrives", body.first().map_or(String::new(), |e| e.name().to_owned())), w));
    }
    for i in [DONOR, RECIPIENT] {
        let mut after = w.clone();
        if w.left.writes > 0 && after.client_writes(i) {
            after.left.writes -= 1;
            out.push((format!("a client writes on {i}"), after));
        }
    }
    let mut after = w.clone();
    if w.left.strangers > 0 && after.stranger_writes() {
        after.left.strangers -= 1;
        out.push(("somebody uses the tenant's name".into(), after));
    }
    out
}

/// Nothing goes wrong any more: all comes to an end.
fn ends(w: &World) -> Result<(), String> {
    let mut w = w.clone();
    for round in 0..400 {
        let mut moved = false;
        for i in [DONOR, RECIPIENT] {
            let Some(machine) = &w.sides[i].machine else { continue };
            let mut all = machine.under_way();
            all.retain(|(_, action, _)| !is_end_of_patience(action) && !is_blocking_limit(action));
            let Some((id, action, _)) = all.get(round % all.len().max(1)).cloned() else { continue };
            if let Carried::Answer(said) = w.carry(i, &action) {
                w.answer(i, id, said);
            }
            moved = true;
        }
        if let Some(wrong) = &w.wrong {
            return Err(wrong.clone());
        }
        if !moved || w.untold && w.sides[DONOR].machine.is_none() {
            return Ok(());
        }
    }
    Err("it does not come to an end".into())
}

/// How a state was reached.
struct Trail {
    label: String,
    before: Option<Rc<Trail>>,
}

fn story(trail: &Option<Rc<Trail>>) -> String {
    let (mut at, mut all) = (trail, Vec::new());
    while let Some(t) = at {
        all.push(t.label.clone());
        at = &t.before;
    }
    all.reverse();
    all.join("\n  ")
}

/// States seen, or what is wrong.
fn explore(left: Left, most: usize) -> Result<usize, String> {
    let (mut seen, mut stack) = (HashSet::new(), vec![(World::new(left), None::<Rc<Trail>>)]);
    while let Some((w, trail)) = stack.pop() {
        if !seen.insert(digest(&w)) {
            continue;
        }
        let told = |what: &str, trail: &Option<Rc<Trail>>| format!("{what}\n  {}\n{w:?}", story(trail));
        if seen.len() % 16 == 0 {
            ends(&w).map_err(|e| told(&format!("from here on, {e}"), &trail))?;
        }
        if seen.len() >= most {
            break;
        }
        for (label, after) in next(&w) {
            let trail = Some(Rc::new(Trail { label, before: trail.clone() }));
            if let Some(wrong) = &after.wrong {
                return Err(told(wrong, &trail));
            }
            stack.push((after, trail));
        }
    }
    Ok(seen.len())
}

const NOTHING: Left = Left { crashes: 0, losses: 0, refusals: 0, writes: 1, aborts: 0, strangers: 0 };

/// Spaces that are looked at as a whole, each with one kind of trouble.
fn small() -> Result<usize, String> {
    let mut seen = 0;
    for left in [
        NOTHING,
        Left { crashes: 1, ..NOTHING },
        Left { losses: 1, ..NOTHING },
        Left { strangers: 1, crashes: 1, ..NOTHING },
        Left { refusals: 1, losses: 1, ..NOTHING },
        Left { aborts: 1, losses: 1, ..NOTHING },
    ] {
        let one = explore(left, usize::MAX).map_err(|e| format!("{left:?}: {e}"))?;
        seen += one;
    }
    Ok(seen)
}

#[test]
fn a_tenant_has_one_owner_whatever_happens() {
    let seen = small().unwrap();
    println!("{seen} states");
    assert!(seen > 2000, "{seen} states only");
}

fn is_noticed<M: Copy + std::fmt::Debug>(all: &[M], activate: fn(Option<M>)) {
    let run = || std::panic::catch_unwind(small).unwrap_or_else(|_| Err("an assertion of its own".into()));
    for (mutant, noticed) in notice(all, activate, run) {
        println!("{mutant:?}: {}", noticed.as_deref().unwrap_or("-").lines().next().unwrap_or(""));
        assert!(noticed.is_some(), "nobody notices {mutant:?}");
    }
}

#[test]
fn every_broken_rule_of_the_donor_is_noticed() {
    is_noticed(donate_tenants::mutants::Mutant::ALL, donate_tenants::mutants::activate);
}

#[test]
fn every_broken_rule_of_the_recipient_is_noticed() {
    is_noticed(receive_tenants::mutants::Mutant::ALL, receive_tenants::mutants::activate);
}

/// More at once; see above.
#[test]
#[ignore = "minutes; `cargo test --release` and MODEL_STATES"]
fn all_at_once() {
    let most = std::env::var("MODEL_STATES").ok().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let left = Left { crashes: 2, losses: 2, refusals: 1, writes: 2, aborts: 1, strangers: 1 };
    println!("{} states", explore(left, most).unwrap());
}
