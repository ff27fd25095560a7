//! Runs servers, copies and proxies for a long time, while the path, the programs and the disks fail at random. No
//! wrong data is delivered, nothing hangs, and the memory and descriptors of servers do not grow. `./ci.sh soak` runs
//! it for an hour; a short version is one of the tests.
//!
//! Every decision derives from a seed, which is printed. `SOAK_SEED` repeats a run, as far as timing allows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::disallowed_methods, reason = "real programs take real time")]

mod copies;
#[path = "../peers/mod.rs"]
mod peers;
mod programs;
mod site;
mod weather;

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{RwLock, RwLockReadGuard};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};

use site::{Held, Site};
use weather::{Draws, Weather};

/// State shared by all actors.
pub(crate) struct World {
    pub seed: u64,
    /// Longest outage of a path, and longest suspension of a program.
    pub outage: Duration,
    is_over: AtomicBool,
    /// Actors hold it for reading during an action. A measurement of the servers holds it for writing.
    silence: RwLock<()>,
    pub done: Done,
}

/// Counts of actions, printed at the end, because a soak in which nothing happens proves nothing.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub copies: AtomicU64,
    pub copies_killed: AtomicU64,
    pub copies_failed: AtomicU64,
    /// Did not reach the server within half a minute.
    pub copies_without_server: AtomicU64,
    pub disks_full: AtomicU64,
    pub echoes: AtomicU64,
    pub echoes_broken: AtomicU64,
    pub stalls: AtomicU64,
    pub pauses: AtomicU64,
    pub restarts: AtomicU64,
    pub weathers: AtomicU64,
}

impl World {
    /// Waits until an action is allowed; `None` once the soak is over.
    pub fn turn(&self) -> Option<RwLockReadGuard<'_, ()>> {
        let turn = self.silence.read().unwrap();
        (!self.is_over.load(Relaxed)).then_some(turn)
    }

    /// Performs one action of an actor. If it fails, the soak is over.
    fn acting(&self, act: impl FnOnce()) {
        let _actor = Actor(self);
        act();
    }

    fn sleep(&self, ms: u64) {
        let until = Instant::now() + Duration::from_millis(ms);
        while Instant::now() < until && !self.is_over.load(Relaxed) {
            sleep(Duration::from_millis(20));
        }
    }
}

/// An actor whose failure ends the soak.
struct Actor<'a>(&'a World);

impl Drop for Actor<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_over.store(true, Relaxed);
        }
    }
}

pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// Changes the weather of a site every few seconds. Programs are stopped for a while and, if `kills` is set, killed and
/// restarted.
fn fate(world: &World, site: &Site, kills: bool, actor: u64) {
    let mut draws = Draws::new(world.seed, actor);
    loop {
        world.sleep(500 + draws.below(4_000));
        let Some(_turn) = world.turn() else { return };
        let weather = Weather::drawn(&mut draws);
        site.set(weather);
        add(&world.done.weathers);
        if weather.closed {
            // Either shorter than the idle timeout of a connection, or longer.
            let until = Instant::now() + Duration::from_millis(outage_ms(world, &mut draws));
            while Instant::now() < until {
                sleep(Duration::from_millis(20));
            }
            site.set(Weather::default());
        }
        if draws.happens(15) {
            site.pause(draws.below(4), outage_ms(world, &mut draws));
            add(&world.done.pauses);
        }
        if kills && draws.happens(20) {
            site.restart(draws.below(2) == 0);
            add(&world.done.restarts);
        }
    }
}

/// The length of an outage: one in five may be long.
fn outage_ms(world: &World, draws: &mut Draws) -> u64 {
    let longest = if draws.happens(20) { world.outage } else { Duration::from_secs(3) };
    draws.below(u64::try_from(longest.as_millis()).unwrap())
}

/// Pauses all actors, measures memory and descriptors of the programs of `site`, and resumes the actors.
fn look(world: &World, site: &Site, other: &Site, first: Option<&Vec<Held>>) -> Vec<Held> {
    // Good weather, so that actions in progress end sooner.
    for site in [site, other] {
        site.set(Weather::default());
    }
    let silence = world.silence.write().unwrap();
    site.set(Weather::default());
    site.wait_idle();
    let held = site.held(first.map(Vec::as_slice));
    drop(silence);
    held
}

/// Runs for `span` and measures memory and descriptors `looks` times.
fn soak(seed: u64, span: Duration, looks: u32, outage: Duration) {
    eprintln!("soak: SOAK_SEED={seed}, {} s, outages of at most {} s", span.as_secs(), outage.as_secs());
    let (is_over, silence, done) = (AtomicBool::new(false), RwLock::new(()), Done::default());
    let world = World { seed, outage, is_over, silence, done };
    let (steady, shaky) = (Site::new(seed), Site::new(seed + 1));
    let (echo, flood) = (peers::echo(), programs::flood());
    let mut held = Vec::new();
    scope(|scope| {
        let world = &world;
        for (site, kills, first) in [(&steady, false, 0), (&shaky, true, 100)] {
            scope.spawn(move || world.acting(|| fate(world, site, kills, first)));
            for lane in first + 1..first + 3 {
                scope.spawn(move || world.acting(|| copies::lane(world, site, lane)));
            }
            scope.spawn(move || world.acting(|| copies::full_disks(world, site, first + 10)));
            for lane in first + 20..first + 23 {
                scope.spawn(move || world.acting(|| programs::lane(world, site, lane, echo, flood)));
            }
        }
        let begun = Instant::now();
        for number in 1..=looks {
            // A look waits for outages in progress, which must not lengthen the soak.
            let due = (span * number / looks).saturating_sub(begun.elapsed());
            world.sleep(u64::try_from(due.as_millis()).unwrap());
            if world.is_over.load(Relaxed) {
                break;
            }
            let now = look(world, &steady, &shaky, held.first());
            held.push(now);
            eprintln!("soak: {:?}, {:?}", held.last().unwrap(), world.done);
        }
        world.is_over.store(true, Relaxed);
    });
    for program in 0..held[0].len() {
        let samples: Vec<&Held> = held.iter().map(|held| &held[program]).collect();
        let name = samples[0].name;
        let most = |held: &[&Held]| held.iter().map(|held| held.resident_kb).max().unwrap();
        let (first, then) = samples.split_at(samples.len().div_ceil(2));
        assert!(
            then.iter().all(|held| held.descriptors <= samples[0].descriptors),
            "descriptors of {name}: {samples:?}"
        );
        // In the first half, the caches of allocators have been filled.
        let bound_kb = most(first) * 5 / 4 + 16_384;
        assert!(then.is_empty() || most(then) <= bound_kb, "memory of {name}: {samples:?}");
    }
    let Done { copies, echoes, stalls, weathers, .. } = &world.done;
    for (counter, name) in
        [(copies, "copies"), (echoes, "echoes"), (stalls, "stalls"), (weathers, "weathers")]
    {
        assert!(counter.load(Relaxed) > 0, "no {name} in all that time: {:?}", world.done);
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

#[test]
fn a_short_soak() {
    soak(number("SOAK_SEED").unwrap_or(1), Duration::from_secs(10), 2, Duration::from_secs(15));
}

/// `./ci.sh soak`
#[test]
#[ignore = "takes an hour"]
fn a_long_soak() {
    // Random by default.
    let seed = || RandomState::new().build_hasher().finish() >> 32;
    let span = Duration::from_secs(number("SOAK_SECONDS").unwrap_or(3600));
    let outage = Duration::from_secs(number("SOAK_OUTAGE_SECONDS").unwrap_or(300));
    soak(number("SOAK_SEED").unwrap_or_else(seed), span, 8, outage);
}
